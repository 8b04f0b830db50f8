"""Checks of what a program or a person hands over, used by every room.

Each returns the value, or raises `RejectedError` that names the value and says what to give.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, cast

from pager.blocks import clean
from pager.errors import RejectedError, brief

LONGEST_NAME = 200
# More marks, or other signs, than any writing puts on a letter.
_MANY_MARKS = re.compile("(?:[^\\w\0-\x7f]|[\uff9e\uff9f]){31,}")


def require_text(value: Any, name: str) -> str:
    """Return `value` if it is a text."""
    if not isinstance(value, str):
        raise RejectedError(f"{name} is {brief(value)}; give a text.")
    return value


def optional_text(value: Any, name: str) -> str | None:
    """Return `value` if it is a text or None."""
    if value is not None and not isinstance(value, str):
        raise RejectedError(f"{name} is {brief(value)}; give a text, or leave it out.")
    return value


def require_int(value: Any, name: str) -> int:
    """Return `value` if it is a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RejectedError(f"{name} is {brief(value)}; give a whole number.")
    return value


def require_limit(value: Any) -> int:
    """Return how many hits are asked for."""
    if require_int(value, "limit") < 1:
        raise RejectedError(f"limit is {value}; ask for at least 1.")
    return value


def require_texts(value: Any, name: str) -> list[str]:
    """Return the items of `value` if it is a list of texts."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise RejectedError(f"{name} is {brief(value)}; give a list of texts.")
    return [require_text(item, f"an item of {name}") for item in cast("Sequence[Any]", value)]


def require_actor(value: Any) -> str:
    """Return the name of who asks, for the ledger."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        raise RejectedError(f"actor is {brief(value)}; give a name, such as 'person' or 'agent'.")
    return value


def require_path(value: Any, what: str) -> Path:
    """Return a path that a file system can take."""
    path = str(cast("Any", value)) if isinstance(value, str | os.PathLike) else ""
    with suppress(ValueError):
        if path and b"\0" not in os.fsencode(path):
            return Path(path)
    raise RejectedError(f"{what} is {brief(cast(object, value))}; give a path.")


CHECKS: dict[Any, Callable[[Any, str], object]] = {  # by the type hint of an argument
    str: require_text, str | None: optional_text, int: require_int, Sequence[str]: require_texts,
}  # fmt: skip


def require_hinted(hints: Mapping[str, Any], given: Iterable[tuple[str, Any]]) -> None:
    """Check the arguments of a call by the type hints of its method, those in `CHECKS` and plain classes."""
    for name, value in given:
        hint = hints.get(name)
        if hint in CHECKS:
            CHECKS[hint](value, name)
        elif isinstance(hint, type) and not isinstance(value, hint):
            raise RejectedError(f"{name} is {brief(value)}; give a {hint.__name__}.")


def normalized(name: str) -> str:
    """Return a key or a tag as it is stored and looked up: letters that look the same have one form."""
    return normalize("NFC", str(clean(name)).strip())


def normalize(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return what `unicodedata.normalize` does, in linear time: it sorts a run of marks in quadratic time."""
    if text.isascii():
        return text
    apart = "NFKD" if "K" in form else "NFD"

    def sorted_marks(run: re.Match[str]) -> str:
        signs = "".join(unicodedata.normalize(apart, sign) for sign in run[0])
        groups = groupby(signs, key=lambda sign: unicodedata.combining(sign) > 0)
        return "".join(sign for _, group in groups for sign in sorted(group, key=unicodedata.combining))

    return unicodedata.normalize(form, _MANY_MARKS.sub(sorted_marks, text))
