"""Vectors with few bits for each number, compared with floats. Pure.

`Int8Matrix` holds vectors in memory, one byte for each number. 100,000 vectors of 384 numbers take 40 MB and 10 ms to
compare. The rounding changes a cosine by about a thousandth. Every row is compared, so nothing near is missed.

Late interaction says how well each word piece of a question is matched by the word pieces of a text. A mean over a text
says what it is about; the vectors of its word pieces say what is in it. A piece of the question is matched by its best
cosine among the pieces of a text, and a text by the sum over the question's pieces, each weighed by how rare its word
is. A stored text is a row of bytes: each piece has 64 numbers of four bits. Pieces of function words are not stored:
nearly half of a text, and hardly ever what is asked for. In a question they count, as little as `COMMON_RARITY`: their
vectors know what is around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pager.search.growing_array import GrowingArray
from pager.search.words import FUNCTION_WORDS, folded
from pager.vectors.embedder import EmbedderUnavailableError, Rows, TokenVectors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LARGEST = 127
ROWS_AT_ONCE = 512  # so many rows are converted to floats at a time: they stay in the processor's cache

TOKEN_DIMENSION = 64
PIECE_BYTES = TOKEN_DIMENSION // 2
STEP = 0.045  # between two of the sixteen levels: they reach 2.7 times as far as a number of such a row deviates from 0
MIDDLE = 7.5  # of the sixteen levels: there is none for 0
AT_ONCE = 1 << 18  # products
CHUNK = 48  # pieces; a longer text counts by the best of its chunks, or it would hold something of everything
COMMON_RARITY = 0.5  # of a word that is not among the telling ones: as of one that six in ten texts hold


class Int8Matrix:
    """Rows with their ids, in the order in which they were appended."""

    def __init__(self, dimension: int) -> None:
        self._columns = GrowingArray("int64"), GrowingArray("float32"), GrowingArray("int8", width=(dimension,))
        self.extend((), (), self._columns[2].rows)

    def extend(self, ids: ArrayLike, scales: ArrayLike, numbers: ArrayLike) -> None:
        """Append rows in the form that `quantize` returns."""
        for column, fresh in zip(self._columns, (ids, scales, numbers), strict=True):
            column.extend(fresh)
        self.ids, self._scales, self._numbers = (column.rows for column in self._columns)

    def cosines(self, vector: Rows) -> Rows:
        """Return the cosine of each row with a vector of unit length."""
        import numpy as np

        # Integers on both sides: their sums are exact, so equal rows get equal cosines wherever they stand.
        [scale], [asked] = quantize(vector[np.newaxis])
        numbers, cosines = self._numbers, self._scales * scale
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            cosines[rows] *= numbers[rows].astype(np.float32) @ asked
        return cosines

    def nearest(self, vector: Rows, limit: int) -> list[tuple[int, float]]:
        """Return the ids and cosines of the nearest rows: `limit`, and all that rounding may have put behind those."""
        import numpy as np

        cosines, ids = self.cosines(vector), self.ids
        if limit < len(cosines):
            # A cosine is wrong by a third of a scale for each side, as a rule; six times as much is wrong nowhere.
            wrong = 2 * (self._scales.max() + np.abs(vector).max() / LARGEST)
            close = cosines >= np.partition(cosines, -limit)[-limit] - wrong
            cosines, ids = cosines[close], ids[close]
        return list(zip(ids.tolist(), cosines.tolist(), strict=True))


def quantize(rows: Rows) -> tuple[Rows, Rows]:
    """Return the scale of each row, and its numbers divided by that as integers from -LARGEST to LARGEST."""
    import numpy as np

    scales = (np.maximum(np.abs(rows).max(axis=1), 1e-9) / LARGEST).astype(np.float32)
    return scales, np.rint(rows / scales[:, np.newaxis])


def check_tokens(tokens: Sequence[TokenVectors], texts: int) -> None:
    """Raise EmbedderUnavailableError unless each text has finite token vectors, one for each word piece."""
    import numpy as np

    shapes = [np.shape(each.rows) for each in tokens]
    if shapes != [(len(each.words), TOKEN_DIMENSION) for each in tokens] or len(tokens) != texts:
        wanted = f"expected {texts} of {TOKEN_DIMENSION} numbers for each word"
        raise EmbedderUnavailableError(f"the embedder returned token vectors of the shapes {shapes!s:.200}; {wanted}.")
    if not all(np.isfinite(each.rows).all() for each in tokens):
        raise EmbedderUnavailableError("the embedder returned token vectors that are not finite.")


def is_packed(stored: bytes) -> bool:
    """Return True for the token vectors of at least one word piece."""
    return len(stored) > 0 and len(stored) % PIECE_BYTES == 0


def pack(tokens: TokenVectors) -> bytes:
    """Return the token vectors of a text as they are stored."""
    import numpy as np

    kept = [place for place, word in enumerate(tokens.words) if _is_stored(word)]
    levels = np.clip(np.rint(tokens.rows[kept] / STEP + MIDDLE), 0, 2 * MIDDLE).astype(np.uint8)
    return (levels[:, ::2] << 4 | levels[:, 1::2]).tobytes()


def cosines(rows: Rows, packed: bytes) -> Rows:
    """Return the cosines of rows of unit length with the stored pieces: a row for each row, a column for each piece."""
    import numpy as np

    # So many at a time as stay in the processor's cache and are not worth a second thread: half the time.
    size = PIECE_BYTES * max(64, AT_ONCE // (PIECE_BYTES * max(1, len(rows))))
    blocks = [packed[start : start + size] for start in range(0, len(packed), size)] or [b""]
    return np.concatenate([_cosines(rows, block) for block in blocks], axis=1)


def _cosines(rows: Rows, packed: bytes) -> Rows:
    import numpy as np

    pairs = np.frombuffer(packed, dtype=np.uint8).reshape(-1, PIECE_BYTES)
    high, low = (pairs >> 4).astype(np.float32), (pairs & 15).astype(np.float32)
    # The numbers are MIDDLE higher than they should be, and STEP is left out of both sides of the division.
    products = rows[:, ::2] @ high.T + rows[:, 1::2] @ low.T - MIDDLE * rows.sum(axis=1, keepdims=True)
    lengths = np.einsum("ij,ij->i", high, high) + np.einsum("ij,ij->i", low, low)
    lengths += TOKEN_DIMENSION * MIDDLE**2 - 2 * MIDDLE * (high.sum(axis=1) + low.sum(axis=1))
    return products / np.sqrt(lengths)


def weights(question: TokenVectors, rarities: Mapping[str, float]) -> Rows:
    """Return the weight of each piece of a question: how rare its word is, by the folded words that are telling."""
    import numpy as np

    words = [word.lower() if word.isascii() else folded(word).strip() for word in question.words]
    found = [rarities.get(word, COMMON_RARITY) if _has_word(word) else 0.0 for word in words]
    return np.array(found, dtype=np.float32)


def best_cosines(question: TokenVectors, rarities: Mapping[str, float], texts: Sequence[bytes]) -> tuple[Rows, Rows]:
    """Return the weight of each piece of the question, and its best cosine in each text; a text must hold a piece."""
    import numpy as np

    weighed = weights(question, rarities)
    sizes = np.array([len(text) for text in texts]) // PIECE_BYTES
    chunks = -(-sizes // CHUNK)
    text_of = np.repeat(np.arange(len(texts)), chunks)
    first = np.cumsum(chunks) - chunks  # of each text, its first chunk
    starts = (np.cumsum(sizes) - sizes)[text_of] + CHUNK * (np.arange(len(text_of)) - first[text_of])
    best = np.maximum.reduceat(cosines(question.rows, b"".join(texts)), starts, axis=1)
    if len(text_of) == len(texts):
        return weighed, best
    order = np.lexsort((weighed @ best, text_of))
    return weighed, best[:, order[np.cumsum(chunks) - 1]]


def _has_word(word: str) -> bool:
    return any(map(str.isalnum, word))


def _is_stored(word: str) -> bool:
    return _has_word(word) and word.lower() not in FUNCTION_WORDS
