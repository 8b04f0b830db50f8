"""What pydantic finds wrong with a configuration, in plain words and with the place where it is written.

>>> [str(problem) for problem in explain(error, tree, AgentConfig)]
["agent.yaml:3:3: unknown key 'limt_tokens' in window; did you mean 'limit_tokens'?"]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from agents.config.nodes import Expanded, Node, Place, Problem

RULES_BROKEN = "rules_broken"  # an error whose context holds the problems itself: (path, message), ...
NEITHER_OR_BOTH = "neither_or_both"  # of the keys that tell which alternative is meant; its text is ours
SECRET = ("api_key", "env", "headers")
SHOWN_CHARACTERS = 60

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "model": "a mapping (lines of 'key: value' below it)",
    "dict": "a mapping (lines of 'key: value' below it)",
    "tuple": "a list (lines of '- ...' below it)",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
Path = Sequence[str | int]


def explain(error: ValidationError, root: Node, model: type[BaseModel]) -> list[Problem]:
    return [
        problem
        for details in error.errors(include_url=False)
        if details["type"] != "default_factory_not_called"  # only says that another problem was found before
        for problem in _problems(details, root, model)
    ]


def _problems(details: ErrorDetails, root: Node, model: type[BaseModel]) -> Iterator[Problem]:
    context: dict[str, Any] = details.get("ctx", {})
    if details["type"] == RULES_BROKEN:
        for path, message in context["broken"]:
            yield Problem(root.at(path).key_place or root.place, f"{'.'.join(path)} {message}")
        return
    path, within, of_key = _followed(details["loc"], model)
    node = root.at(path)
    key_place = node.key_place or node.place
    where = dotted(path)
    match details["type"]:
        case "extra_forbidden":
            yield Problem(key_place, _unknown(str(path[-1]), path[:-1], within))
        case "missing":
            inside = (
                f"{dotted(path[:-1])} needs it" if path[:-1] else "every agent needs one, such as 'name: assistant'"
            )
            yield Problem(key_place, f"{str(path[-1])!r} is missing; {inside}.")
        case "neither_or_both":
            yield Problem(key_place, f"{where} {details['msg']}")
        case _:
            message = _message(details["type"], details["input"], context, secret=bool({*path} & {*SECRET}))
            yield Problem(_narrow(node, key_place, of_key=of_key), f"{where} {message}".strip())


def _narrow(node: Node, key_place: Place, *, of_key: bool) -> Place:
    """A plain value is shown where it stands, a key or a whole section where it begins."""
    return key_place if of_key or isinstance(node.value, list | dict) else node.place


def _message(kind: str, value: Any, context: Mapping[str, Any], *, secret: bool) -> str:
    shown = _kind_of(value) if secret else _described(value)
    if kind == "value_error":
        return str(context.get("error", "")) or "is not allowed."
    if kind == "literal_error":
        return _choice(value, str(context["expected"]))
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"has to be {words} {context[key]:g}, not {shown}."
    if kind in ("string_too_short", "too_short"):
        return "must not be empty."
    stem = kind.split("_", maxsplit=1)[0]
    if stem not in _KINDS:
        return f"cannot be {shown}."
    quoted = _quoted(value, secret=secret) if stem == "string" else ""
    source = f" (from {value.source})" if isinstance(value, Expanded) else ""
    return f"needs {_KINDS[stem]}, not {shown}{source}.{quoted}"


def _quoted(value: Any, *, secret: bool) -> str:
    """YAML reads 4711 and true as a number and a truth; who means the text says so by quotes."""
    if not isinstance(value, bool | int | float):
        return ""
    return " Put it in quotes." if secret else f' Put it in quotes: "{str(value).lower()}".'


def _described(value: Any) -> str:
    if isinstance(value, str):
        text = str(value)
        return f"the text {text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + '...'!r}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"the number {value}" if isinstance(value, int | float) else _kind_of(value)


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case dict():
            return "a mapping"
        case _:
            return "a list"


def _choice(value: Any, expected: str) -> str:
    """`expected` as pydantic writes it: 'a', 'b' or 'c'."""
    allowed = [part.strip("' ") for part in expected.replace(" or ", ",").split(",")]
    return f"has to be {expected}, not {_described(value)}{_meant(str(value), allowed, '.')}"


def _unknown(key: str, parent: Path, within: Any) -> str:
    allowed = list(within.model_fields) if isinstance(within, type) and issubclass(within, BaseModel) else []
    inside = f" in {dotted(parent)}" if parent else ""
    return f"unknown key {key!r}{inside}{_meant(key, allowed, '; known are ' + ', '.join(allowed) + '.')}"


def _meant(word: str, allowed: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(word.lower(), allowed, n=1)
    return f"; did you mean {near[0]!r}?" if near else otherwise


def dotted(path: Path) -> str:
    text = "".join(f"[{item}]" if isinstance(item, int) else f".{item}" for item in path)
    return text.removeprefix(".")


# Where pydantic found it: its location names also which alternative of a union it tried, and these are no keys.


def _followed(location: Path, model: type[BaseModel]) -> tuple[list[str | int], Any, bool]:
    """The path in the file, the model that its last item is a key of, and whether the key itself is meant."""
    path: list[str | int] = []
    kind: Any = model
    within: Any = model
    inside_free_keys = False
    for item in location:
        alternatives = _alternatives(kind)
        if item in alternatives:
            kind = alternatives[str(item)]
        elif item == "[key]" and inside_free_keys:
            return path, within, True
        else:
            path.append(item)
            inside_free_keys = get_origin(_bare(kind)) is dict
            within, kind = kind, _below(kind, item)
    return path, within, False


def _alternatives(kind: Any) -> dict[str, Any]:
    """The tagged members of a union by their tags."""
    found: dict[str, Any] = {}
    for member in get_args(_bare(kind)):
        if get_origin(member) is Annotated:
            inner, *notes = get_args(member)
            found.update({note.tag: inner for note in notes if isinstance(note, Tag)})
    return found


def _bare(kind: Any) -> Any:
    """Without Annotated, and without `| None`."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    members = [member for member in get_args(kind) if member is not NoneType]
    return _bare(members[0]) if NoneType in get_args(kind) and len(members) == 1 else kind


def _below(kind: Any, item: str | int) -> Any:
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(item))
        return field.annotation if field else None
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return get_args(kind)[0] if get_origin(kind) is tuple else None
