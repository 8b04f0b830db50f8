"""Texts of others on a terminal, with nothing in them that it would obey.

>>> visible("a\\x1b[2Jb\\nc")        # on one line, and in the order in which it reads
'a␛[2Jb␊c'
>>> harmless("a\\x1b[2Jb\\nc")       # as it is, but for the characters that a terminal obeys
'a␛[2Jb\\nc'
"""

from __future__ import annotations

import re
import unicodedata

JOINERS = "\u200c\u200d"  # inside of emoji and of Persian words
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a new line and a tab are as they should be
LEFT_BY_JSON = re.compile("[\x7f-\x9f]")


def visible(text: str) -> str:
    """`text` on one line; also what turns the direction of writing is made visible."""
    return "".join(map(_seen, text))


def harmless(text: str) -> str:
    return OBEYED.sub(lambda found: _seen(found[0]), text)


def escaped(line: str) -> str:
    """A line of JSON, which says the same: without what JSON itself would leave as it is."""
    return LEFT_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _seen(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of a control character
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in UNSEEN and character not in JOINERS:
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
    return character
