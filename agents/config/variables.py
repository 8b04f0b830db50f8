"""`${VAR}` and `${VAR:-default}` in the texts of a configuration; `$${` stands for a plain `${`.

>>> expand("${MODEL:-small}", {"MODEL": "large"})
('large', [])
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# A `${` that begins neither form is a mistake; the last alternative finds it.
_PIECE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}|\$\{")
SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which no encoding can write


class Expanded(str):
    """A text that is one expansion and nothing else, so that a number field may read it as a number."""

    source: str

    def __new__(cls, text: str, source: str) -> Expanded:  # noqa: D102 - of str
        expanded = super().__new__(cls, text)
        expanded.source = source
        return expanded


def expand(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the text with its variables replaced, and what is wrong with it. A text with mistakes stays as written."""
    mistakes: list[str] = []

    def value(piece: re.Match[str]) -> str:
        name: str | None = piece["name"]
        default: str | None = piece["default"]
        if piece[0] == "${":
            shown = text[piece.start() : piece.start() + 30].split("\n", maxsplit=1)[0]
            forms = "Write ${VAR} or ${VAR:-default} (without braces in the default), or $${ for a plain ${."
            mistakes.append(f"{shown!r} is not a variable. {forms}")
        if name is None:
            return "${"
        found = environ.get(name, default)
        if found is None:
            mistakes.append(f"the environment variable {name} is not set. Set it, or give a default: ${{{name}:-...}}.")
        elif not found and default is None:
            mistakes.append(f"the environment variable {name} is empty. Set it, or allow that: ${{{name}:-}}.")
        elif SURROGATE.search(found):
            mistakes.append(f"the environment variable {name} is not valid UTF-8. Set it again.")
        return found or default or ""  # `:-` as in the shell

    expanded = _PIECE.sub(value, text) if "${" in text else text
    only = _PIECE.fullmatch(text)
    if mistakes:
        return text, list(dict.fromkeys(mistakes))
    return (Expanded(expanded, text) if only and only["name"] else expanded), []


def escape(text: str) -> str:
    """Return the text so that `expand` gives it back unchanged."""
    return text.replace("${", "$${")
