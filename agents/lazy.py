"""Packages that load a module when one of its names is first used, so that importing them is quick."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, names: Sequence[str], modules: Sequence[str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that exports `names` out of these modules in it."""

    def load(name: str) -> Any:
        for module in modules if name in names else ():
            found = getattr(import_module(f"{package}.{module}"), name, None)
            if found is not None:
                return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
