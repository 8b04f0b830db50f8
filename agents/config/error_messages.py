"""What pydantic rejects in a configuration, in plain words and at the place where it is written.

>>> [str(problem) for problem in explain(error, document)]
["agent.yaml:3:3: unknown key 'limt_tokens' in window; did you mean 'limit_tokens'?"]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from agents.config.errors import Problem
from agents.config.variables import Expanded
from agents.config.yaml_file import Document, KeyPath

SECRET = frozenset({"api_key", "env", "headers"})
SHOWN_CHARACTERS = 60
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "model": "a mapping (lines of 'key: value' below it)",
    "dict": "a mapping (lines of 'key: value' below it)",
    "tuple": "a list (lines of '- ...' below it)",
}
_BOUNDS = {"greater_than": "more than", "greater_than_equal": "at least", "less_than_equal": "at most"}


class UnknownKey(NamedTuple):
    """The value of a key that a section does not have, with those that it has. `Section` puts it in."""

    value: Any
    known: tuple[str, ...]


def rule_error(path: Sequence[str], message: str) -> PydanticCustomError:
    """Return the error of a rule between sections. It is reported at `path`, wherever it was found."""
    return PydanticCustomError("rule", "{text}", {"text": f"{'.'.join(path)} {message}", "path": tuple(path)})


def alternative(name: str) -> str:
    """Return the tag of a member of a union. pydantic puts it into its paths, where it must not look like a key."""
    return f"<{name}>"


def explain(error: ValidationError, document: Document) -> Iterator[Problem]:
    """Yield a problem for each of pydantic's errors."""
    for details in error.errors(include_url=False):
        if details["type"] != "default_factory_not_called":  # only says that another error was found before
            yield _problem(details, document)


def _problem(details: ErrorDetails, document: Document) -> Problem:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    path, is_about_key = _path(details["loc"], document)
    if kind == "rule":
        return Problem(document.at(*context["path"]).key, details["msg"])
    written, dotted = document.at(*path), _dotted(path)
    parent = _dotted(path[:-1])
    if kind == "missing":
        needs = f"{parent} needs it" if parent else "every agent needs one, such as 'name: assistant'"
        return Problem(written.key, f"{path[-1]!r} is missing; {needs}.")
    if isinstance(value, UnknownKey):
        guess = _did_you_mean(str(path[-1]), value.known, f"; known are {', '.join(value.known)}.")
        return Problem(written.key, f"unknown key {path[-1]!r}{f' in {parent}' if parent else ''}{guess}")
    is_section = is_about_key or isinstance(value, dict | list)
    message = details["msg"] if kind == "one_of" else _message(kind, value, context, secret=not SECRET.isdisjoint(path))
    return Problem(written.key if is_section else written.value, f"{dotted} {message}")


def _path(location: KeyPath, document: Document) -> tuple[KeyPath, bool]:
    """Return the path in the file, and whether the key itself is wrong: pydantic's paths also name alternatives."""
    path: KeyPath = ()
    for item in location:
        longer = (*path, item)
        if longer in document.written or not str(item).startswith(("<", "[key]")):
            path = longer
    return path, location[-1:] == ("[key]",) and path != location


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{item}]" if isinstance(item, int) else f".{item}" for item in path).removeprefix(".")


def _message(kind: str, value: Any, context: Mapping[str, Any], *, secret: bool) -> str:
    shown = _type_of(value) if secret else _describe(value)
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        allowed = [part.strip("' ") for part in context["expected"].replace(" or ", ",").split(",")]
        return f"has to be {context['expected']}, not {shown}{_did_you_mean(str(value), allowed, '.')}"
    if kind in _BOUNDS:
        return f"has to be {_BOUNDS[kind]} {next(iter(context.values())):g}, not {shown}."
    if kind == "string_too_short":
        return "must not be empty."
    expected = kind.partition("_")[0]
    source = f" (from {value.source})" if isinstance(value, Expanded) else ""
    advice = ""
    if expected == "string" and isinstance(value, bool | int | float):
        advice = " Put it in quotes." if secret else f' Put it in quotes: "{str(value).lower()}".'
    return f"needs {_TYPES.get(expected, 'another value')}, not {shown}{source}.{advice}"


def _describe(value: Any) -> str:
    if isinstance(value, str):
        text = str(value)
        return f"the text {text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + '...'!r}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"the number {value}" if isinstance(value, int | float) else _type_of(value)


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case _:
            return "a mapping" if isinstance(value, dict) else "a list"


def _did_you_mean(word: str, allowed: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(word.lower(), allowed, n=1)
    return f"; did you mean {near[0]!r}?" if near else otherwise
