"""Make texts of others safe for a terminal: nothing in them moves the cursor or changes colours.

>>> visible("a\\x1b[2Jb\\nc")        # on one line, and in the order in which it reads
'a␛[2Jb␊c'
>>> harmless("a\\x1b[2Jb\\nc")       # as it is, but for the characters that a terminal obeys
'a␛[2Jb\\nc'
"""

import re
import unicodedata

JOINERS = "\u200c\u200d"  # inside of emoji and of Persian words
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a new line and a tab are as they should be


def visible(text: str) -> str:
    """Return `text` on one line, with control characters and those that turn the direction of writing made visible."""
    return "".join(map(_shown, text))


def harmless(text: str) -> str:
    """Return `text` with the characters that a terminal obeys made visible; line breaks and tabs stay."""
    return CONTROLS.sub(lambda found: _shown(found[0]), text)


def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of a control character
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in INVISIBLE and character not in JOINERS:
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
    return character
