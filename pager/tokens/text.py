"""Counts the tokens of a text for tiktoken's o200k_base, by kind of text. The only module that imports tiktoken.

The table is part of the package and is loaded at the first count, in a tenth of a second. Any string is counted, as
plain text: `<|endoftext|>` is seven tokens, and a lone surrogate counts as the U+FFFD that is sent for it. Long texts
are encoded in pieces, cut where tiktoken cuts as well. Only a run of 15,000 characters without a space is cut inside;
there a count may be off by about a token per cut.

    >>> count("Call 0800 123, please!")
    Counts(words=2, digits=3, other=0, code=4, media=0)
    >>> exceeds("a" * 10_000_000, 8000)
    True
    >>> head("one two three four", 2), tail("one two three four", 2)
    ('one two', ' three four')
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from pager.errors import PagerError
from pager.types import Counts

if TYPE_CHECKING:
    from tiktoken import Encoding

TABLE = Path(__file__).parent.parent / "data" / "o200k_base.zlib"
TABLE_SHA256 = "75a984bf59dfb77b03d00f651cb144e88345efa853f75797f4fdb2eb674a1c7e"  # of what it expands to
LONGEST_TOKEN_BYTES = 128
PIECE_CHARACTERS = 16_384  # tiktoken's pattern overflows its stack, and panics, at a million spaces or so
NEAR_CHARACTERS = 1_024  # how far from the end of a piece a good cut is looked for
LONGEST_JOINED = 32  # characters that `head` and `tail` give up to keep an emoji or an accented letter whole

# o200k_base as in tiktoken_ext/openai_public.py, which would download the table.
PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def count(text: str) -> Counts:
    """Return the tokens of a text by kind."""
    frequencies: Counter[int] = Counter()
    for start, end in _pieces(text):
        frequencies.update(_encode(text[start:end]))
    sums = [0] * len(Counts._fields)
    for token, times in frequencies.items():
        sums[_kind(token)] += times
    return Counts(*sums)


def total(text: str) -> int:
    """Return the number of tokens of a text."""
    return sum(len(_encode(text[start:end])) for start, end in _pieces(text))


def exceeds(text: str, limit_tokens: int) -> bool:
    """Return `total(text) > limit_tokens`, reading no more of the text than that takes."""
    if len(text) > LONGEST_TOKEN_BYTES * limit_tokens:
        return limit_tokens < 0 or bool(text)
    if upper_bound(text) <= limit_tokens:
        return False
    sizes = (len(_encode(text[start:end])) for start, end in _pieces(text))
    return any(used > limit_tokens for used in accumulate(sizes))


def head(text: str, limit_tokens: int) -> str:
    """Return as many whole tokens from the beginning as the limit allows; no composed letter or emoji is split."""
    if limit_tokens <= 0:
        return ""
    window = text[: LONGEST_TOKEN_BYTES * limit_tokens + 1]
    left = limit_tokens
    for start, end in _pieces(window):
        piece = window[start:end]
        size = len(_encode(piece))
        if size > left:
            return window[: start + _fitting(piece, left, at_end=False)]
        left -= size
    return text


def tail(text: str, limit_tokens: int) -> str:
    """Return as many whole tokens from the end as the limit allows; see `head`."""
    if limit_tokens <= 0:
        return ""
    start = len(text)
    left = limit_tokens
    for begin, end in reversed(list(_pieces(text))):
        piece = text[begin:end]
        size = len(_encode(piece))
        if size > left:
            start = begin + _fitting(piece, left, at_end=True)
            break
        start, left = begin, left - size
    # A run without spaces is cut at other places when it is counted from here.
    while (excess := total(text[start:]) - limit_tokens) > 0:
        start += excess
    return text[start:]


def upper_bound(text: str) -> int:
    """Return the number of UTF-8 bytes: no tokenizer gives more tokens. Loads nothing."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def byte_bound(text: str) -> int:
    """Return a bound by kind of character: more than any plausible tokenizer gives, never less than `total`.

    One token per byte; but a space directly before a letter belongs to its word, and the lower-case letters of a
    word count half, except a letter that stands alone and five consonants in a row, as in keys and hashes. English
    prose gets about twice its tokens. Strings exist that are worse for tiktoken ("xqkqxq"), hence also `total`.
    """
    shape = text.encode("utf-8", "surrogatepass").translate(_SHAPES)
    halved = shape.count(b"v") + shape.count(b"c") - sum(map(len, _ODD_LETTERS.findall(shape)))
    joined = shape.count(b" v") + shape.count(b" c") + shape.count(b" U")
    return max(len(shape) - joined - halved // 2, total(text))


_SHAPES = bytearray(b"." * 256)  # vowels, consonants, capital letters, the space, and all else
_SHAPES[ord("A") : ord("Z") + 1] = b"U" * 26
_SHAPES[ord("a") : ord("z") + 1] = b"vcccvcccvcccccvcccccvcccvc"
_SHAPES[ord(" ")] = ord(" ")
_ODD_LETTERS = re.compile(rb"c{5,}|(?<![Uvc])[vc](?![vc])")


def _fitting(piece: str, limit_tokens: int, *, at_end: bool) -> int:
    """Return where to cut a piece that is too large, so that its beginning, or its end, fits in whole tokens."""
    tokens, keep = _encode(piece), limit_tokens
    while True:
        # Tokens that end inside a character are left out with it.
        fitting = tokens[max(0, len(tokens) - keep) :] if at_end else tokens[:keep]
        length = len(_encoding().decode_bytes(fitting).decode(errors="ignore"))
        start, step, last = (len(piece) - length, 1, len(piece)) if at_end else (length, -1, 0)
        cuts = range(start, last + step, step)[:LONGEST_JOINED]
        cut = next((at for at in cuts if not _joined(piece, at)), start)
        # Counted alone, a part may have a token more than it had in the whole.
        excess = len(_encode(piece[cut:] if at_end else piece[:cut])) - limit_tokens
        if excess <= 0:
            return cut
        keep = max(0, keep - excess)


def _joined(text: str, at: int) -> bool:
    """Return True if a cut at this place would split what is read as one character."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return (
        after == "\u200d"
        or before == "\u200d"
        or unicodedata.category(after) in ("Mn", "Mc", "Me")
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\udc00" <= after <= "\udfff"
        or (before == "\r" and after == "\n")
    )


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield pieces (start, end), cut where a word of tiktoken's pattern begins: their tokens are those of the whole."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        end = start + PIECE_CHARACTERS
        for cut in _CUT.finditer(text, end - NEAR_CHARACTERS, end):
            end = cut.start()
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


_loading = Lock()
_CUT = re.compile(r"(?<=\S) ")


@cache
def _kind(number: int) -> int:
    token = _encoding().decode_single_token_bytes(number)
    if not token.isascii():
        name = "other"
    elif any(byte in b"0123456789" for byte in token):
        name = "digits"
    elif token.removeprefix(b" ").replace(b"'", b"").isalpha():
        name = "words"
    else:
        name = "code"
    return Counts._fields.index(name)


def _encode(text: str) -> list[int]:
    return _encoding().encode_ordinary(text)


def _encoding() -> Encoding:
    if _load.cache_info().currsize:  # without the lock, which an interrupt at its end would leave taken
        return _load()
    with _loading:  # 80 MB: threads that come first share them
        return _load()


@cache
def _load() -> Encoding:
    import tiktoken

    table = zlib.decompress(TABLE.read_bytes())
    if hashlib.sha256(table).hexdigest() != TABLE_SHA256:
        raise PagerError(f"{TABLE} is not the file that was shipped: install selfpager again.")
    tokens = table.split(b"\xff")
    tokens[tokens.index(b"")] = b"\xff"
    ranks = dict(zip(tokens, range(len(tokens)), strict=True))
    return tiktoken.Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
