"""Estimates tokens for a model whose tokenizer is not at hand, from the usage that its responses report.

An estimate is tiktoken's counts by kind of text, times one ratio per kind. The ratios start pessimistic (above every
tokenizer seen so far) and move to what responses show. They are a least-squares fit in which the start weighs like a
few hundred tokens, so a kind that was never seen stays pessimistic. The margin grows with the shortfalls seen.

    >>> counter = Counter()
    >>> counter.estimate(Counts(words=1000)).tokens
    1600
    >>> learned = [counter.learn(Counts(words=1000), 1200) for _ in range(20)]
    >>> 1195 <= counter.estimate(Counts(words=1000)).tokens <= 1230
    True
"""

import json
import math
from dataclasses import dataclass
from operator import mul
from typing import Any, NamedTuple

from pager import blocks
from pager.errors import StorageError
from pager.limits import Limits
from pager.tokens import media, text
from pager.types import Counts, Json

KINDS = len(Counts._fields)
PESSIMISTIC = Counts(16, 25, 25, 17, 12)  # tenths of a token per tiktoken token, by kind
START = tuple(ratio / 10 for ratio in PESSIMISTIC)
SPREAD = (0.3, 0.8, 0.8, 0.4, 0.4)  # how far below them the true ratios may be: which kind a surprise is blamed on
START_WEIGHT = 5.0
DECAY = 0.98
MEDIA = KINDS - 1
MOSTLY = 0.3  # from this share on a surprise is blamed on images and documents
# An image counts by its known size. That other images were smaller than estimated must not shrink it.
BOUNDS = ((0.3, 4.0), (0.3, 4.0), (0.3, 4.0), (0.3, 4.0), (0.9, 4.0))
LEAST_TELLING = 48  # smaller differences say more about a message's overhead than about its text
PLAUSIBLE = (0.2, 6.0)
BLOCK_OVERHEAD = 3  # tokens of code
MEDIA_PARTS = 4  # an image cannot be read on in pieces, so it may be as large as several parts
SURELY_TOO_LARGE = 8  # times the limit: such a text is not even counted


class Estimate(NamedTuple):
    """The estimated tokens of a text, and how many more there may be."""

    tokens: int
    margin: int

    @property
    def safe(self) -> int:
        """Return the most that there may be."""
        return self.tokens + self.margin


class Counter:
    """The ratios of one model. A counter made from `state()` gives the same estimates."""

    def __init__(self, state: str | None = None) -> None:
        loaded: dict[str, Any] = json.loads(state) if state else {}
        self._seen: int = loaded.get("seen", 0)
        self._shortfalls: list[float] = loaded.get("shortfalls") or [0.05**2, 0.05**2]  # of text, of media
        self._products: list[list[float]] = loaded.get("products") or [[0.0] * KINDS for _ in range(KINDS)]
        self._targets: list[float] = loaded.get("targets") or [0.0] * KINDS
        if {len(row) for row in (*self._products, self._products, self._targets)} != {KINDS}:
            raise StorageError("the learned ratios in pager.db have another shape. Restore a backup of its directory.")
        self.ratios: tuple[float, ...] = START
        self._doubt: list[list[float]] = []
        self._fit()

    def state(self) -> str:
        """Return what was learned, as JSON."""
        state = {"seen": self._seen, "shortfalls": self._shortfalls}
        return json.dumps(state | {"products": self._products, "targets": self._targets})

    @property
    def learned(self) -> bool:
        """Return True if it has learned from any response."""
        return self._seen > 0

    def estimate(self, counts: Counts) -> Estimate:
        """Return the tokens of these counts, and how many more there may be."""
        tokens = sum(map(mul, self.ratios, counts))
        # Of kinds that only came together the sum is known, but not the share of each: any of them may be more.
        doubt = sum(x * sum(map(mul, row, counts)) for x, row in zip(counts, self._doubt, strict=True))
        unsure = math.sqrt(max(0.0, doubt))
        worst = sum(max(ratio, start) * x for ratio, start, x in zip(self.ratios, START, counts, strict=True))
        media = self.ratios[MEDIA] * counts.media
        of_text, of_media = (0.02 + 2.5 * math.sqrt(seen) for seen in self._shortfalls)
        margin = of_text * (tokens - media) + of_media * media + min(3 * unsure, worst - tokens)
        return Estimate(math.ceil(tokens), math.ceil(margin))

    def tokens(self, counts: Counts) -> int:
        """Return the tokens of these counts, without a margin."""
        return math.ceil(sum(map(mul, self.ratios, counts)))

    def double_margin(self) -> None:
        """Take the estimates as twice as unsure, after a refusal; what responses say makes them surer again."""
        self._shortfalls = [min(1.0, 4 * seen) for seen in self._shortfalls]  # of which the margin takes the root

    def learn(self, counts: Counts, true_tokens: int) -> bool:
        """Learn that text of these counts had `true_tokens`. Return False if that is implausible or says too little."""
        total = counts.total
        if total < LEAST_TELLING or not PLAUSIBLE[0] * total <= true_tokens <= PLAUSIBLE[1] * total:
            return False
        if self._seen:
            expected = max(LEAST_TELLING, self.estimate(counts).tokens)
            error = min(1.0, max(0.0, (true_tokens - expected) / expected))
            by = int(self.ratios[MEDIA] * counts.media > MOSTLY * expected)
            self._shortfalls[by] = 0.9 * self._shortfalls[by] + 0.1 * error * error
        weight = 1.0 / total
        for i, x in enumerate(counts):
            self._targets[i] = DECAY * self._targets[i] + weight * x * true_tokens
            row = self._products[i]
            for j, y in enumerate(counts):
                row[j] = DECAY * row[j] + weight * x * y
        self._seen += 1
        self._fit()
        return True

    def _fit(self) -> None:
        """Fit the ratios by least squares. The start is the prior; where it may be far off, it weighs less."""
        prior = [START_WEIGHT / (spread * spread) for spread in SPREAD]
        matrix = [[*row] for row in self._products]
        for i, weight in enumerate(prior):
            matrix[i][i] += weight
        right = [target + weight * start for target, weight, start in zip(self._targets, prior, START, strict=True)]
        inverse = _inverse(matrix)
        solved = zip((sum(map(mul, row, right)) for row in inverse), BOUNDS, strict=True)
        self.ratios = tuple(min(most, max(least, ratio)) for ratio, (least, most) in solved)
        self._doubt = [[START_WEIGHT * value for value in row] for row in inverse]


def _inverse(matrix: list[list[float]]) -> list[list[float]]:
    """Invert a small symmetric positive definite matrix by elimination; its diagonal is never near zero."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for pivot in range(size):
        rows[pivot] = [value / rows[pivot][pivot] for value in rows[pivot]]
        for other in set(range(size)) - {pivot}:
            factor = rows[other][pivot]
            rows[other] = [x - factor * y for x, y in zip(rows[other], rows[pivot], strict=True)]
    return [row[size:] for row in rows]


@dataclass(frozen=True, slots=True)
class Window:
    """The limits of an agent's window, and the counter of its model: what decides whether something fits."""

    limits: Limits
    counter: Counter

    def count_part(self, block: Json) -> Counts | None:
        """Return the counts of a block; None if it is larger than a part may be. Quick for many megabytes, too."""
        limit, content, images = self.limits.max_part_tokens, blocks.countable(block), list(blocks.media_in(block))
        if images and any(media.tokens(item) > MEDIA_PARTS * limit for item in images):
            return None
        if len(content) > limit and text.exceeds(content, SURELY_TOO_LARGE * limit):
            return None
        counts = text.count(content)
        return None if self.counter.tokens(counts) > limit else _with_media(counts, images)


def count_block(block: Json) -> Counts:
    """Return the counts of a content block, media included, with a little for the block itself."""
    counts = text.count(blocks.countable(block))
    sealed = blocks.sealed_tokens(block)
    return _with_media(counts._replace(media=counts.media + sealed), list(blocks.media_in(block)))


def _with_media(counts: Counts, images: list[Json]) -> Counts:
    size = sum(media.tokens(item) for item in images)
    return counts._replace(code=counts.code + BLOCK_OVERHEAD, media=counts.media + size)
