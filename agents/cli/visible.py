"""Print texts of others safely: nothing in them moves the cursor, changes colours, or reads otherwise than it is.

All that a command prints goes through `say`, `confirm` or `visible`. Emoji and the writing of all languages stay.

>>> visible("a\\x1b[2Jb\\nc\\u202e")     # on one line, and in the order in which it reads
'a␛[2Jb\\\\nc\\\\u202e'
>>> Harmless().feed("a\\x1b[2Jb\\nc")     # with its lines; a streamed text is fed piece by piece
'a␛[2Jb\\nc'
"""

import unicodedata
from typing import Any

import click

from pager import one_line

JOINERS = "\u200c\u200d"  # inside of emoji and of words in some scripts
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
UNSEEN_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # and signs
SELECTORS = range(0xFE00, 0xFE10)  # of a variant of the character before
IDEOGRAPH_SELECTORS = range(0xE0100, 0xE01F0)
NEW_PICTURES = range(0x1F000, 0x1FC00)  # emoji that this Python does not know yet
BLACK_FLAG, TAGS, MAX_TAGS = "\U0001f3f4", range(0xE0020, 0xE0080), 6  # the flag of Wales is one with six tags
JOINED_SCRIPTS = ((0x600, 0x8FF), (0x900, 0xDFF), (0x1000, 0x109F), (0x1780, 0x18AF), (0xFB50, 0xFEFC))
MAX_MARKS = 8  # on one letter


class Harmless:
    """A text that comes in pieces. Line breaks and tabs stay; `strict` lets no character stay that is not seen."""

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._before = " "  # the character before
        self._in_row = 0  # marks or tags since the last other character
        self._is_flag = False

    def feed(self, text: str) -> str:
        """Return a piece with the characters made visible that a terminal obeys or does not show."""
        return text if text.isascii() and text.isprintable() and self._pass(text) else "".join(map(self._shown, text))

    def _pass(self, text: str) -> bool:
        self._before, self._in_row, self._is_flag = text[-1:] or self._before, 0, False
        return True

    def _shown(self, character: str) -> str:
        code, kind = ord(character), unicodedata.category(character)
        is_selector = code in SELECTORS or code in IDEOGRAPH_SELECTORS
        is_tag, is_mark = code in TAGS, kind in ("Mn", "Me")
        is_unseen = kind in UNSEEN or is_selector or character in UNSEEN_LETTERS or (kind == "Zs" and self._strict)
        if is_tag or is_mark:
            self._in_row += 1
        else:
            self._in_row, self._is_flag = 0, character == BLACK_FLAG
        stays = character in " \n\t" or (is_unseen and not self._strict and self._may_stay(character, code))
        if not stays and (is_unseen or (is_mark and self._in_row > MAX_MARKS)):
            return _escaped(character)
        self._before = character
        return character

    def _may_stay(self, character: str, code: int) -> bool:
        before = ord(self._before)
        if character in JOINERS:
            is_joined = any(first <= before <= last for first, last in JOINED_SCRIPTS)
            is_picture = before == 0xFE0F or before in NEW_PICTURES
            return is_joined or is_picture or unicodedata.category(self._before) in ("So", "Sk")
        if code in TAGS:
            return self._is_flag and self._in_row <= MAX_TAGS + 1
        if code in IDEOGRAPH_SELECTORS:
            return unicodedata.name(self._before, "").startswith("CJK ")
        if code in SELECTORS:
            return before not in SELECTORS and not self._before.isspace()
        return code in NEW_PICTURES


def visible(text: str, *, strict: bool = False) -> str:
    """Return `text` on one line, harmless. `strict` is for what a person approves."""
    return Harmless(strict=strict).feed(one_line(text)).replace("\t", "\u2409")


def say(text: str, *, err: bool = False, nl: bool = True, stream: Harmless | None = None, **style: Any) -> None:
    """Print a text in this style. The pieces of one text share a `stream`."""
    shown = (stream or Harmless()).feed(text)
    click.echo(click.style(shown, **style) if style else shown, err=err, nl=nl)


def confirm(question: str) -> bool:
    """Ask a person a question on one line. Raises click.Abort at the end of the input."""
    return click.confirm(visible(question, strict=True), default=False)


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of a control character
    if code == 0x7F:
        return "\u2421"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def counted(number: int, what: str) -> str:
    """Return a number with its word.

    >>> counted(1, "step"), counted(2_000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
