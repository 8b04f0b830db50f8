"""Which texts a model is asked about: two that are near in meaning, where the words alone do not decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pager.safety.sources import untrusted_of
from pager.sleep.edits import FactPair
from pager.sleep.signs import Reader
from pager.sleep.tidying import MOST_FACTS, RELATED, current_facts
from pager.store import Store
from pager.tiers.archive import Archive
from pager.types import number_of
from pager.vectors.embedder import EmbedderUnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pager.vectors.embedding import Embedding

EACH = 2  # older texts that a newer one is compared with


def new_texts(store: Store, sleep: int) -> list[str]:
    """Return the texts that an unfinished sleep would store."""
    return [fact["text"] for row in store.sleeps.edits(sleep) if row.state == "open" for fact in row.after]


class Candidates(NamedTuple):
    """The texts that may be paired, read at one moment: facts that are there, then new ones."""

    texts: Sequence[tuple[str, str, tuple[str, ...]]]  # id, text, untrusted sources
    vectors: NDArray[np.float32]  # of the facts that are there
    first: int  # of those that were not compared in an earlier sleep


def candidates(store: Store, archive: Archive, sleep: int) -> Candidates:
    """Return what is in no edit of a sleep already, the oldest first."""
    import numpy as np

    rows = store.sleeps.edits(sleep)
    taken = {page for row in rows for page in (*row.pages, *row.keeps)}
    by_number = {number_of(fact.id): fact for fact in current_facts(store, archive) if fact.id not in taken}
    ids, matrix = store.archive.vectors(list(by_number))
    order = np.argsort(ids) if ids else np.empty(0, dtype=int)
    facts = [by_number[ids[at]] for at in order]
    texts = [(fact.id, fact.text, fact.via) for fact in facts]
    first = sum(number_of(fact.id) <= store.sleeps.compared_through(sleep) for fact in facts)
    fresh = [row for row in rows if row.kind == "new" and row.state == "open" and row.after]
    for row in sorted(fresh, key=lambda row: (row.after[0].get("valid_from") or "", row.number)):
        via = untrusted_of([origin.source for origin in store.sleeps.origins(row.number)])
        texts.append((f"edit {row.number}", row.after[0]["text"], via))
    return Candidates(texts, matrix[order], first)


def near_texts(given: Candidates, embedding: Embedding, reader: Reader, limit: int) -> list[FactPair]:
    """Return the nearest pairs, nearest first, of which one is new and that share a word that carries meaning."""
    import numpy as np

    texts, vectors = given.texts, given.vectors
    if fresh := [text for _, text, _ in texts[len(vectors) :]]:
        try:
            new = np.array([each.vector for each in embedding.embed_all(fresh)])
            vectors = np.concatenate([vectors, new]) if len(vectors) else new
        except EmbedderUnavailableError:
            texts = texts[: len(vectors)]
    if not texts or len(texts) > MOST_FACTS:
        return []
    content = reader.stems([text for _, text, _ in texts])
    found = list[tuple[float, FactPair]]()
    for newer in range(given.first, len(texts)):
        near = vectors[:newer] @ vectors[newer]
        best = [int(each) for each in np.argsort(-near)[: 4 * EACH] if near[each] >= RELATED]
        for older in [each for each in best if content[each] & content[newer]][:EACH]:
            one, other = texts[older], texts[newer]
            via = tuple(sorted({*one[2], *other[2]}))
            found.append((float(near[older]), FactPair(one[0], other[0], (one[1], other[1]), via)))
    return [pair for _, pair in sorted(found, key=lambda each: -each[0])[:limit]]
