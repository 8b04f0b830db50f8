"""Tools from Python functions: the schema from type hints and docstring, arguments checked before the call.

A tool's function may be sync or async. It answers with text, with content blocks, or with anything JSON can carry; in
`Sourced`, or a list of those, if it knows from where it has that.
What it raises becomes an error result for the model: the message without a trace, and the trace in the log.

    >>> def add(a: int, b: int) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> tool = Tool.of(add)
    >>> tool.run({"a": 1, "b": 2})
    '3'
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from importlib.machinery import all_suffixes
from pathlib import Path
from threading import Thread
from types import MethodType
from typing import Any, Literal, cast, get_args, get_type_hints

from docstring_parser import parse
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model

from pager.errors import PagerError, RejectedError
from pager.safety.sources import read_source
from pager.types import Json

Output = str | list[Json]
DEFAULT_TIMEOUT_SECONDS = 120.0
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what the Messages API takes
FIELD = "argument_"  # an argument may be called `json` or `_x`, a field of pydantic's may not
BLOCK_KINDS = frozenset({"text", "image", "document", "search_result"})
SLICE_SECONDS = 0.2  # a Ctrl-C that comes in the instant before a wait begins is noticed when that wait ends


@dataclass(frozen=True, slots=True)
class Sourced:
    """The answer of a tool that knows its source, or its sources, more exactly: `Sourced("web:example.org", text)`."""

    source: str | tuple[str, ...]
    content: Any

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Return the names of its sources that are untrusted."""
        names = (self.source,) if isinstance(self.source, str) else self.source
        return tuple(each for name in names for each in read_source(name).untrusted)


class ErrorText(str):
    """The answer of a memory tool that is an error result, although what it did stays."""

    __slots__ = ()


class ToolConfigError(PagerError):
    """A tool cannot be loaded: the text says which, why and what to do."""


class ToolCallError(PagerError):
    """A call did not succeed; the text is the error result that the model gets."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as the model sees it and as it is run."""

    name: str
    description: str
    schema: Json
    call: Callable[[Json], Any]
    idempotent: bool = False
    approve: Literal["never", "always"] = "never"
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    memory: bool = False  # one of the memory's own: its effect and its result are one transaction
    of_provider: Json | None = None  # the definition of a tool that the provider knows by its type
    source: str | None = None  # of its results, if they are untrusted
    names_sources: bool = False  # its results may be `Sourced`
    unasked: Callable[[Json], bool] | None = (
        None  # of the calls for which `approve: always` asks, those that it need not
    )
    leave: Callable[[], object] | None = None  # ends what a call has started, when nobody waits for it any longer

    @classmethod
    def of(
        cls, function: Callable[..., Any], *, name: str | None = None,
        trust: Literal["trusted", "untrusted"] = "trusted", **options: Any,
    ) -> Tool:  # fmt: skip
        """Return a tool made from a function with type hints and a docstring. Raise ToolConfigError if it cannot be."""
        if not inspect.isroutine(function):
            raise ToolConfigError(f"{function!r} is no function; a tool is a function with type hints and a docstring.")
        name = name or function.__name__
        if not NAME.fullmatch(name):
            raise ToolConfigError(f"a tool cannot be called {name!r}: letters, digits, _ and -, at most 64.")
        is_method = inspect.ismethod(function)
        described = _describe(function.__func__ if is_method else function, name, is_method)
        description, arguments, schema, names_sources = described

        def call(raw: Json) -> Any:
            try:
                checked = arguments.model_validate(raw)
            except ValidationError as error:
                known = ", ".join(field.removeprefix(FIELD) for field in arguments.model_fields) or "none"
                wrong: list[str] = []
                for item in error.errors():
                    is_unknown = item["type"] == "extra_forbidden" and len(item["loc"]) == 1
                    message = f"there is no such argument, there are {known}" if is_unknown else item["msg"]
                    wrong.append(f"{'.'.join(map(str, item['loc'])) or 'input'}: {message}")
                what = f"{name} was not run, its arguments are wrong: {'; '.join(wrong)}."
                raise RejectedError(f"{what} Call it again with them right.") from None
            given = checked.model_fields_set
            return function(**{field.removeprefix(FIELD): getattr(checked, field) for field in given})

        source = f"tool:{name}" if trust == "untrusted" else None
        return cls(name, description, schema, call, source=source, names_sources=names_sources, **options)

    @property
    def error_source(self) -> str | None:
        """Return the untrusted source of its errors: they may quote what it was about to name the source of."""
        return self.source or (f"tool:{self.name}" if self.names_sources else None)

    @property
    def definition(self) -> Json:
        """Return the tool as a request names it."""
        if self.of_provider is not None:
            return dict(self.of_provider)
        return {"name": self.name, "description": self.description, "input_schema": self.schema}

    def asks(self, raw: Json) -> bool:
        """Return True if a person has to approve a call with this input."""
        return self.approve == "always" and not (self.unasked and self.unasked(raw))

    def run(self, raw: Json) -> Output:
        """Run a call in this thread, without a time limit."""
        return self.run_sourced(raw)[0]

    def run_sourced(self, raw: Json) -> tuple[Output, Collection[str]]:
        """Run a call. Return its result, and the untrusted sources of that."""
        value = self.call(raw)

        async def finished() -> Any:
            return await value

        value = asyncio.run(finished()) if inspect.isawaitable(value) else value
        several = cast("list[Any]", value) if isinstance(value, list) else []
        is_list = any(isinstance(each, Sourced) for each in several)
        parts: list[Any] = several if is_list else [value]
        sources, contents = set[str](), list[Any]()
        for part in parts:
            named = part.untrusted if isinstance(part, Sourced) else ()
            sources.update(named or ([self.source] if self.source else ()))  # one that is not trusted stays so
            contents.append(part.content if isinstance(part, Sourced) else part)
        return as_output(contents if is_list else contents[0]), sources

    def run_limited(self, raw: Json) -> tuple[Output, Collection[str]]:
        """Run a call like `run_sourced`, within the tool's time limit. A thread that overruns is left behind, and so is
        one when an interrupt comes; what it has started is ended if the tool can do that."""
        answer = Future[tuple[Output, Collection[str]]]()

        def work() -> None:
            try:
                answer.set_result(self.run_sourced(raw))
            except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
                answer.set_exception(error)

        Thread(target=copy_context().run, args=(work,), name=f"tool {self.name}", daemon=True).start()
        left = self.timeout_seconds
        try:
            while left > 0 and not wait([answer], min(left, SLICE_SECONDS)).done:
                left -= SLICE_SECONDS
        finally:
            if self.leave and not answer.done():
                self.leave()
        if not answer.done():
            late = f"{self.name} did not finish within {self.timeout_seconds:g} s; it may still be running."
            raise ToolCallError(late)
        error = answer.exception()
        if error is None or isinstance(error, Exception):
            return answer.result()
        raise ToolCallError(f"{self.name} failed: {describe_error(error)}")  # it ended itself, not the program


def run_by_provider(definition: Json) -> Tool:
    """Return a tool that the provider runs on its own servers. A request carries its definition, and its results come
    within replies."""

    def refuse(_: Json) -> Any:
        raise ToolCallError(f"{definition['name']} runs on the provider's servers and cannot be called here.")

    return Tool(definition["name"], "", {}, refuse, of_provider=definition)


def definitions_of(kind: type, names: Sequence[str]) -> list[Json]:
    """Return the definitions of methods as tools, without an instance: a memory has to be opened with the definitions
    of the tools that will move it."""
    return [Tool.of(MethodType(getattr(kind, name), kind)).definition for name in names]


def find(reference: str, folder: Path, purpose: str) -> Callable[..., Any]:
    """Return the function `package.module:function`, also from a module in `folder`. Raise ToolConfigError."""
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise ToolConfigError(f"{reference!r} names no {purpose}; write package.module:function.")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    failed = f"the {purpose} {reference!r} cannot be imported: "
    beside = folder / module_name.partition(".")[0]
    if len(rivals := _importable(beside)) > 1:  # one of them may be made by a command of the agent's
        raise ToolConfigError(f"{failed}{' and '.join(map(str, rivals))} have one name. Remove or rename one of them.")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ToolConfigError(f"{failed}{error}. Is its package installed?") from error
    except Exception as error:
        raise ToolConfigError(f"{failed}{type(error).__name__}: {error}") from error
    # Python knows a module by its name: of two beside two YAML files it would run the first one's code for both.
    loaded = Path(getattr(module, "__file__", None) or "").resolve()
    is_beside = beside.is_dir() or beside.with_suffix(".py").is_file()
    if is_beside and not loaded.is_relative_to(folder.resolve()):
        what = f"{module_name} beside the YAML file cannot be used"
        raise ToolConfigError(f"{what}: {loaded} has that name already. Rename one of them.")
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ToolConfigError(f"{module_name} has no function {function_name!r}.")
    return function


def _importable(path: Path) -> list[Path]:
    """Return what Python would import by a name: a package, a module, an extension or a compiled module."""
    package = [path / "__init__.py"] if (path / "__init__.py").exists() else []
    modules = (path.parent / f"{path.name}{ending}" for ending in all_suffixes())
    return [*package, *(each for each in modules if each.exists())]


@cache  # by the function: its methods on all instances are described alike
def _describe(function: Callable[..., Any], name: str, is_method: bool) -> tuple[str, type[BaseModel], Json, bool]:  # noqa: FBT001 - for the cache
    """Return a tool's description, what checks its arguments, the schema in which the model is told of them, and if it
    names the sources of its results."""
    doc = parse(inspect.getdoc(function) or "")
    texts = {item.arg_name: " ".join((item.description or "").split()) for item in doc.params}
    description = "\n".join(text.strip() for text in (doc.short_description, doc.long_description) if text)
    if not description:
        raise ToolConfigError(f"the tool {name!r} has no docstring; its first paragraph is what the model is told.")
    fields: dict[str, Any] = {}
    try:
        hints = get_type_hints(function, include_extras=True)
        for parameter in [*inspect.signature(function).parameters.values()][is_method:]:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise ToolConfigError(f"the tool {name!r} takes {parameter}; a model needs named arguments.")
            if parameter.name not in hints:
                raise ToolConfigError(f"the argument {parameter.name!r} of the tool {name!r} has no type hint.")
            default = ... if parameter.default is parameter.empty else parameter.default
            text: Json = {"description": texts[parameter.name]} if texts.get(parameter.name) else {}
            field = Field(default, alias=parameter.name, **text)
            fields[FIELD + parameter.name] = (hints[parameter.name], field)
        arguments = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
        return description, arguments, _plain_schema(arguments.model_json_schema()), _holds_sourced(hints.get("return"))
    except (NameError, TypeError, PydanticUserError) as error:
        raise ToolConfigError(f"the arguments of the tool {name!r} cannot be described to a model: {error}") from error


def _holds_sourced(hint: Any) -> bool:
    return hint is Sourced or any(map(_holds_sourced, get_args(hint)))


def _plain_schema(schema: Any) -> Any:
    """Return the schema without what only costs tokens: titles, null defaults, and a null beside the one type."""
    if isinstance(schema, list):
        return [_plain_schema(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    source = cast("Mapping[str, Any]", schema)
    if "properties" in source:
        properties = {name: _plain_schema(item) for name, item in source["properties"].items()}
        rest = {k: _plain_schema(v) for k, v in source.items() if k not in ("title", "properties")}
        return {"type": "object", "properties": properties, **{k: v for k, v in rest.items() if k != "type"}}
    plain = {k: v for k, v in source.items() if k != "title" and not (k == "default" and v is None)}
    options = [option for option in plain.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        plain.pop("anyOf")
        plain = {**options[0], **plain}
    return {key: _plain_schema(value) for key, value in plain.items()}


def describe_error(error: BaseException) -> str:
    """Return an error of a tool's code as one line. The code that words it may fail as well."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its name is all there is to say
        return type(error).__name__


def as_output(value: Any) -> Output:
    """Return what the model is shown of a function's answer."""
    if isinstance(value, str):
        return value
    if value is None:
        return "done"
    if isinstance(value, list) and value:
        items = cast("list[Any]", value)
        if all(isinstance(item, Mapping) and cast(Json, item).get("type") in BLOCK_KINDS for item in items):
            return items
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return json.dumps(value, ensure_ascii=False, default=_as_text)


def _as_text(value: Any) -> str:
    if isinstance(value, Sourced):
        way = "Answer with one, or with a list of them"
        raise ToolCallError(f"the answer holds a Sourced ({value.source}) inside of other values. {way}.")
    return str(value)
