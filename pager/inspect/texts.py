"""Compare texts regardless of case, white space and the form of accents. Pure."""

from __future__ import annotations

import re
import unicodedata

LONGEST_CHARS = 1_000  # of a text that is looked for; a longer one is looked for by its beginning
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": " ", "t": " ", "r": " "}


def normal(text: str) -> str:
    """Return a text in the form in which texts are compared: casefolded, with single spaces and joined accents."""
    return composed(composed(" ".join(text.split())).casefold())


def composed(text: str) -> str:
    """Return a text with its accents joined to their letters, however they were typed."""
    return unicodedata.normalize("NFC", text)


def holds(text: str, wanted: str) -> bool:
    """Return True if a text contains a normal one, as it stands or as JSON, in which tool inputs are stored."""
    return wanted in normal(text) or (
        "\\" in text and wanted in normal(_ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text))
    )


def like_pattern(text: str) -> str:
    """Return a pattern of SQL's LIKE that matches every text which contains `text`, also in JSON.

    Whatever may be written in another way (another case, an escape, a line break, a decomposed letter) is a wildcard,
    so the pattern also matches texts that do not contain `text`.
    """
    shown = " ".join(composed(text).split())[:LONGEST_CHARS]
    fixed = "".join(char if _has_one_form(char) else "\0" for char in shown)
    return "%" + "".join(f"{word}%" for word in fixed.split("\0") if word)


def _has_one_form(char: str) -> bool:
    """LIKE ignores the case of ASCII letters only. Others are safe if they have one case and cannot be decomposed."""
    caseless = char.lower() == char.upper() == char.casefold() and unicodedata.is_normalized("NFD", char)
    return char.isalnum() and (char.isascii() or caseless)
