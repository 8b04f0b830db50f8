"""Explains what pydantic rejects in a configuration, in plain words and at the place where it is written.

>>> [str(problem) for problem in explain(error, document)]
["agent.yaml:3:3: unknown key 'limt_tokens' in window; did you mean 'limit_tokens'?"]
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from agents.config.errors import NEAR, ConfigProblem
from agents.config.variables import Expanded
from agents.config.yaml_file import Document, KeyPath
from pager.safety.redaction import redacted

SECRET = frozenset({"api_key", "env", "headers", "command"})
SHOWN_CHARACTERS = 60
_MAPPING = "needs a mapping (lines of 'key: value' below it), not {shown}."
# By pydantic's name of the error, or the beginning of that name.
_MESSAGES = {
    "value_error": "{error}",
    "literal_error": "has to be {expected}, not {shown}{guess}",
    "greater_than": "has to be more than {gt:g}, not {shown}.",
    "greater_than_equal": "has to be at least {ge:g}, not {shown}.",
    "less_than_equal": "has to be at most {le:g}, not {shown}.",
    "string_too_short": "must not be empty.",
    "int": "needs a whole number, not {shown}.",
    "float": "needs a number, not {shown}.",
    "finite": "needs a finite number, not {shown}.",
    "bool": "needs true or false, not {shown}.",
    "string": "needs text, not {shown}.{quote}",
    "model": _MAPPING,
    "dict": _MAPPING,
    "tuple": "needs a list (lines of '- ...' below it), not {shown}.",
}


class UnknownKey(NamedTuple):
    """The value of a key that a section does not have, with those that it has. `Section` puts it in."""

    value: Any
    known: tuple[str, ...]


def rule_error(path: KeyPath, message: str) -> PydanticCustomError:
    """Return the error of a rule between sections. It is reported at `path`, wherever it was found."""
    return PydanticCustomError("rule", "{text}", {"text": f"{_dotted(path)} {message}", "path": path})


def alternative(name: str) -> str:
    """Return the tag of a member of a union. pydantic puts it into its paths, where it must not look like a key."""
    return f"<{name}>"


def explain(error: ValidationError, document: Document) -> Iterator[ConfigProblem]:
    """Yield a problem for each of pydantic's errors."""
    for details in error.errors(include_url=False):
        if details["type"] == "rule":
            yield ConfigProblem(document.at(*details["ctx"]["path"]).key, details["msg"])  # pyright: ignore[reportTypedDictNotRequiredAccess]
        elif details["type"] != "default_factory_not_called":  # only says that another error was found before
            yield _problem(details, document)


def _problem(details: ErrorDetails, document: Document) -> ConfigProblem:
    location, value = details["loc"], details["input"]
    keys: list[str | int] = []
    for item in location:  # pydantic also names alternatives
        if (*keys, item) in document.written or not str(item).startswith(("<", "[key]")):
            keys.append(item)
    path = tuple(keys)
    written, parent = document.at(*path), _dotted(path[:-1])
    if details["type"] == "missing":
        needs = f"{parent} needs it" if parent else "every agent needs one, such as 'name: assistant'"
        return ConfigProblem(written.key, f"{path[-1]!r} is missing; {needs}.")
    if isinstance(value, UnknownKey):
        guess = did_you_mean(str(path[-1]), value.known, f"; known are {', '.join(value.known)}.")
        return ConfigProblem(written.key, f"unknown key {path[-1]!r}{f' in {parent}' if parent else ''}{guess}")
    is_about_key = isinstance(value, dict | list) or (location[-1:] == ("[key]",) and path != location)
    place, kind, context = written.key if is_about_key else written.value, details["type"], details.get("ctx", {})
    if kind == "one_of":
        return ConfigProblem(place, f"{_dotted(path)} {details['msg']}")
    allowed = [part.strip("' ") for part in str(context.get("expected", "")).replace(" or ", ",").split(",")]
    quote, secret = "", not SECRET.isdisjoint(path)
    if isinstance(value, bool | int | float):
        quote = " Put it in quotes." if secret else f' Put it in quotes: "{str(value).lower()}".'
    shown = _describe(value, secret=secret) + (f" (from {value.source})" if isinstance(value, Expanded) else "")
    message = _MESSAGES.get(kind) or _MESSAGES.get(kind.partition("_")[0], "needs another value, not {shown}.")
    guess = did_you_mean(str(details["input"]), allowed, ".")
    return ConfigProblem(place, f"{_dotted(path)} {message.format(**context, shown=shown, quote=quote, guess=guess)}")


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{item}]" if isinstance(item, int) else f".{item}" for item in path).removeprefix(".")


def _describe(value: Any, *, secret: bool) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false" if secret else str(value).lower()
        case int() | float():
            return "a number" if secret else f"the number {value}"
        case str():
            value = redacted(value)
            text = value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}…"
            return "a text" if secret else f"the text {str(text)!r}"
        case _:
            return "a mapping" if isinstance(value, dict) else "a list"


def did_you_mean(word: str, allowed: Iterable[str], otherwise: str) -> str:
    """Return the similar name that was probably meant, or else `otherwise`."""
    near = get_close_matches(word.lower(), allowed, n=1, cutoff=NEAR)
    return f"; did you mean {near[0]!r}?" if near else otherwise
