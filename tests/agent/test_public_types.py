"""What a public signature names can be resolved, and imported from where the signature is."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from pager import History, Inspection, Memory, MemoryReader, Place
from pager.sleep import SleepHistory, Sleeps

PACKAGES = ("agents", "agents.config", "agents.testing", "pager", "pager.inspect", "pager.memory_tool", "pager.sleep")
MODULES = ("agents.events",)  # without __all__: every class and function in it is public
OURS = ("agents", "pager")
# `Memory.open` and `MemoryReader.open` make these, out of parts that are nobody else's.
OPAQUE = (Place,)  # handed from a home to whoever opens it: its methods are nobody else's
MADE_BY_OPEN = (Memory, MemoryReader, Inspection, History, SleepHistory, Sleeps)


def exported(package: str) -> dict[str, Any]:
    module = import_module(package)
    mine = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == package]
    names = getattr(module, "__all__", [name for name in mine if not name.startswith("_")])
    return {name: getattr(module, name) for name in names}


PUBLIC = [pytest.param(package, value, id=f"{package}.{name}")
          for package in (*PACKAGES, *MODULES) for name, value in exported(package).items()]  # fmt: skip


def with_hints(public: Any) -> Iterator[Any]:
    """Yield a function; or a class for its fields, and its constructor, public methods and properties."""
    if not inspect.isclass(public):
        yield from [inspect.unwrap(public)] if inspect.isroutine(public) else []
        return
    yield public
    if public in OPAQUE:
        return
    for name in dir(public):
        member = inspect.getattr_static(public, name)
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        is_public = not name.startswith("_") or (name == "__init__" and public not in MADE_BY_OPEN)
        if is_public and inspect.isfunction(function) and function.__module__.startswith(OURS):
            yield inspect.unwrap(function)


def hints_of(public: Any) -> dict[str, Any]:
    if inspect.isclass(public) and issubclass(public, BaseModel):  # pydantic has resolved the hints already
        return {name: field.annotation for name, field in public.model_fields.items()}
    return get_type_hints(public)


def classes_in(hint: Any) -> Iterator[type]:
    for part in hint if isinstance(hint, list) else get_args(hint):  # a list: the arguments of a Callable
        yield from classes_in(part)
    kind = get_origin(hint) or hint
    if inspect.isclass(kind) and kind.__module__.startswith(OURS):
        yield kind


def homes(package: str) -> tuple[str, ...]:
    """Return the packages that export what a package names, as the docstring of `agents` says."""
    around = ("agents", "agents.events", "agents.config") if package.startswith("agents") else ()
    return (package, *around, *(each for each in PACKAGES if each.startswith("pager")))


@pytest.mark.parametrize(("package", "public"), PUBLIC)
def test_what_a_public_signature_names_can_be_resolved_and_imported(package: str, public: Any) -> None:
    importable = [id(value) for home in homes(package) for value in exported(home).values()]
    for each in with_hints(public):
        for name, hint in hints_of(each).items():
            if not name.startswith("_"):
                missing = [kind.__qualname__ for kind in classes_in(hint) if id(kind) not in importable]
                assert not missing, f"{each.__qualname__}: {name}"
