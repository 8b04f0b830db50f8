"""Put facts behind a user message before anyone asks for them, within a budget of their own.

A fact is near a message by as much as it is nearer than two texts that have nothing to do with each other; and it
covers the message by the words that they share, rare ones counting more. The thresholds were chosen on the questions of
bfcl_memory; `make bench-retrieval` judges them on other sets. Where the embedder finds everything near, words decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pager import tokens
from pager.arguments import require_int
from pager.clock import format_minute
from pager.errors import RejectedError
from pager.search.words import excerpt, folded, rarities, telling_words, words
from pager.store import Store
from pager.tiers.archive import Archive
from pager.types import Hit

MAX_QUERY_CHARS = 2000  # a longer message is searched by its beginning
RELEVANT = 0.5  # the least sum of nearness and weighted coverage
COVERAGE_WEIGHT = 0.5
RELEVANT_BY_WORDS = 0.35  # the least coverage, where meaning says nothing
BLIND = 0.4  # from this cosine of unrelated texts on, an embedder knows too little of a language to judge


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


def choose_facts(prefetch: Prefetch, text: str, archive: Archive, store: Store) -> list[Recalled]:
    """Return the facts that help with a message, best first; none for a greeting."""
    message = text[:MAX_QUERY_CHARS]
    telling = telling_words(message)
    if prefetch.k < 1 or not telling:
        return []
    hits = archive.recall(message, prefetch.k)
    chosen: list[Recalled] = []
    left = prefetch.budget_tokens
    for hit in _relevant(hits, message, telling, store, archive):
        recalled = _recalled(hit)
        if recalled.tokens >= left:
            recalled = _recalled(replace(hit, text=excerpt(hit.text, words(text))))
        if recalled.tokens < left:
            chosen.append(recalled)
            left -= recalled.tokens + 1  # and a line break
    return chosen


def _recalled(hit: Hit) -> Recalled:
    line = f"{hit.page_id} ({format_minute(hit.at)}): {hit.text}"
    return Recalled(hit, line, tokens.total(line))


def _relevant(hits: Sequence[Hit], message: str, telling: Sequence[str], store: Store, archive: Archive) -> list[Hit]:
    if not hits:
        return []
    asked, *texts = store.conversation.terms([" ".join(telling), *(folded(hit.text) for hit in hits)])
    facts, holding = store.archive.count_searchable(), store.archive.count_holding(asked)
    weights = rarities(holding, facts)
    total = sum(weights.values()) or 1.0
    vectors = archive.vectors if "meaning" in hits[0].parts else None
    by_chance = vectors.embedding.chance_cosine(message) if vectors else None
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
