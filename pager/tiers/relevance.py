"""Whether a fact has anything to do with a message: what is best may still be no good.

A fact is near in meaning by as much as it is nearer than two texts that have nothing to do with each other, which is
asked of the embedder itself, in the script of the message; and it covers the message by the words that they share, the
rare ones counting more. The two thresholds were chosen on the questions of bfcl_memory: of 155 questions 91 % keep the
fact that answers them, and 92 % of 632 that were asked of another person's facts find none. `make bench-retrieval`
judges them on other sets. Where the embedder finds everything near, words alone decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pager.search.ranking import rarity
from pager.search.words import folded, telling_words

if TYPE_CHECKING:
    from pager.store import Store
    from pager.tiers.archive import Archival
    from pager.types import Hit

RELEVANT = 0.5  # nearness and, by COVERS, coverage
COVERS = 0.5
RELEVANT_WORDS = 0.35  # coverage, where there is no meaning
BLIND = 0.4  # the chance from which on an embedder knows too little of a language to judge: its words do


def relevant(hits: Sequence[Hit], message: str, store: Store, archival: Archival) -> list[Hit]:
    """Of these hits for a message those that have to do with it."""
    telling = telling_words(message)
    if not hits or not telling:
        return []
    facts = store.archive.count_searchable()
    asked = {term: rarity(store.archive.holding(term), facts) for term in store.said.terms(" ".join(telling))}
    chance = archival.meaning.embedding.chance(message) if archival.meaning and "meaning" in hits[0].parts else None
    return [hit for hit in hits if _is_relevant(hit, _covered(asked, store.said.terms(folded(hit.text))), chance)]


def _is_relevant(hit: Hit, coverage: float, chance: float | None) -> bool:
    cosine = hit.parts.get("meaning")
    if cosine is None or chance is None or chance >= BLIND:
        return coverage >= RELEVANT_WORDS
    return (cosine - chance) / (1 - chance) + COVERS * coverage >= RELEVANT


def _covered(asked: Mapping[str, float], held: Sequence[str]) -> float:
    """How much of what a message says with its words a text says, too: from 0 to 1."""
    known = set(held)
    return sum(worth for term, worth in asked.items() if term in known) / sum(asked.values())
