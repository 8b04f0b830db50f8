"""`${VAR}` and `${VAR:-default}` in the texts of a configuration; `$${` stands for a plain `${`.

>>> expand("${MODEL:-small}", {"MODEL": "large"})
('large', [])
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# A `${` that begins neither form is a mistake; the last alternative finds it.
_PIECE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}|\$\{")
SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which no encoding can write


class Expanded(str):
    """A text that is one expansion and nothing else, so that a number field may read it as a number."""

    source: str

    def __new__(cls, text: str, source: str) -> Expanded:
        expanded = super().__new__(cls, text)
        expanded.source = source
        return expanded


def expand(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the text with its variables replaced, and what is wrong with it. A text with mistakes stays as written."""
    mistakes = list(dict.fromkeys(_mistakes(text, environ)))
    if mistakes or "${" not in text:
        return text, mistakes

    def value(piece: re.Match[str]) -> str:
        name, default = piece["name"], piece["default"]
        if name is None:
            return "${"
        return environ[name] if default is None else environ.get(name) or default  # `:-` as in the shell

    expanded = _PIECE.sub(value, text)
    only = _PIECE.fullmatch(text)
    return (Expanded(expanded, text) if only and only["name"] else expanded), []


def _mistakes(text: str, environ: Mapping[str, str]) -> Iterator[str]:
    for piece in _PIECE.finditer(text):
        name = piece["name"]
        if piece[0] == "${":
            shown = text[piece.start() : piece.start() + 30].split("\n", maxsplit=1)[0]
            yield (
                f"{shown!r} is not a variable. Write ${{VAR}} or ${{VAR:-default}} (without braces in the default), or "
                "$${ for a plain ${."
            )
        elif name and piece["default"] is None and name not in environ:
            yield f"the environment variable {name} is not set. Set it, or give a default: ${{{name}:-...}}."
        elif name and SURROGATE.search(environ.get(name, "")):
            yield f"the environment variable {name} is not valid UTF-8. Set it again."


def escape(text: str) -> str:
    """Return the text so that `expand` gives it back unchanged."""
    return text.replace("${", "$${")
