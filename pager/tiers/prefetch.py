"""Put facts behind a user message before anyone asks for them, within a budget of their own.

A fact is near a message by as much as it is nearer than two texts that have nothing to do with each other; and it
covers the message by the words that they share, rare ones counting more. The thresholds were chosen on the questions of
bfcl_memory; `make bench-retrieval` judges them on other sets. Where the embedder finds everything near, words decide.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pager import tokens
from pager.arguments import require_int
from pager.clock import format_minute
from pager.errors import RejectedError
from pager.search.words import excerpt, folded, rarities, telling_words, words
from pager.store import Store
from pager.tiers.archive import Archive
from pager.types import Hit
from pager.vectors.embedder import EmbedderUnavailableError
from pager.vectors.embedding import Embedding

MAX_QUERY_CHARS = 2000  # a longer message is searched by its beginning
RELEVANT = 0.5  # the least sum of nearness and weighted coverage
COVERAGE_WEIGHT = 0.5
RELEVANT_BY_WORDS = 0.35  # the least coverage, where meaning says nothing
BLIND = 0.4  # from this cosine of unrelated texts on, an embedder knows too little of a language to judge
SENTENCES = Path(__file__).parent.parent / "data" / "unrelated_sentences.json"


class Recalled(NamedTuple):
    """A fact with the line that the prompt shows for it."""

    hit: Hit
    line: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Prefetch:
    """At most `k` facts, `budget_tokens` in all; off with k 0."""

    k: int = 0
    budget_tokens: int = 400

    def __post_init__(self) -> None:
        for name in ("k", "budget_tokens"):
            if require_int(getattr(self, name), f"{name} of prefetch") < 0:
                raise RejectedError(f"{name} of prefetch is {getattr(self, name)}; give 0 or more.")


class FactChooser:
    """Chooses the facts of one memory that help with a message."""

    def __init__(self, prefetch: Prefetch, archive: Archive, store: Store) -> None:
        self._prefetch = prefetch
        self._archive = archive
        self._store = store
        self._chance: dict[tuple[str, ...], float] = {}  # by the sentences that it was measured with

    def choose(self, text: str) -> list[Recalled]:
        """Return the facts that help with a message, best first; none for a greeting."""
        message = text[:MAX_QUERY_CHARS]
        telling = telling_words(message)
        if not telling:
            return []
        hits = self._archive.recall(message, self._prefetch.k)
        chosen: list[Recalled] = []
        left = self._prefetch.budget_tokens
        for hit in self._relevant(hits, message, telling):
            recalled = _recalled(hit)
            if recalled.tokens >= left:
                recalled = _recalled(replace(hit, text=excerpt(hit.text, words(text))))
            if recalled.tokens < left:
                chosen.append(recalled)
                left -= recalled.tokens + 1  # and a line break
        return chosen

    def _relevant(self, hits: Sequence[Hit], message: str, telling: Sequence[str]) -> list[Hit]:
        if not hits:
            return []
        asked, *texts = self._store.conversation.terms([" ".join(telling), *(folded(hit.text) for hit in hits)])
        facts, holding = self._store.archive.count_searchable(), self._store.archive.count_holding(asked)
        weights = rarities(holding, facts)
        total = sum(weights.values()) or 1.0
        vectors = self._archive.vectors if "meaning" in hits[0].parts else None
        by_chance = self._chance_cosine(vectors.embedding, message) if vectors else None
        relevant: list[Hit] = []
        for hit, terms in zip(hits, texts, strict=True):
            coverage = sum(weights.get(term, 0.0) for term in terms) / total
            cosine = hit.parts.get("meaning")
            if cosine is None or by_chance is None or by_chance >= BLIND:
                fits = coverage >= RELEVANT_BY_WORDS
            else:
                fits = (cosine - by_chance) / (1 - by_chance) + COVERAGE_WEIGHT * coverage >= RELEVANT
            if fits:
                relevant.append(hit)
        return relevant

    def _chance_cosine(self, embedding: Embedding, message: str) -> float | None:
        """Return the mean cosine of unrelated sentences in the script of a message; None if the embedder fails."""
        texts = unrelated_sentences(message)
        if texts not in self._chance:
            try:
                rows = embedding.embed_all(texts)
            except EmbedderUnavailableError as error:
                embedding.log_failure(error)
                return None
            self._chance[texts] = float((rows @ rows.T).sum() - len(texts)) / (len(texts) * (len(texts) - 1))
        return self._chance[texts]


def _recalled(hit: Hit) -> Recalled:
    line = f"{hit.page_id} ({format_minute(hit.at)}): {hit.text}"
    return Recalled(hit, line, tokens.total(line))


def unrelated_sentences(message: str) -> tuple[str, ...]:
    """Return sentences that have nothing to do with each other, in the script of most letters of a message."""
    return max(_scripts(), key=lambda script: len(script[0].findall(message)))[1]


@cache
def _scripts() -> list[tuple[re.Pattern[str], tuple[str, ...]]]:
    """Return the letters of each script, and its sentences. What no script has any letter of is taken for the first."""
    rows = json.loads(SENTENCES.read_text(encoding="utf-8"))
    return [(re.compile(f"[{row['letters']}]"), tuple(row["sentences"])) for row in rows]
