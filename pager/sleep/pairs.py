"""Which texts a model is asked about: two that are near in meaning, where the words alone do not decide."""

from collections.abc import Sequence

from pager.safety.sources import untrusted_of
from pager.sleep.edits import FactPair
from pager.sleep.signs import Reader
from pager.sleep.tidying import MOST_FACTS, RELATED, current_facts
from pager.store import Store
from pager.tiers.archive import Archive
from pager.types import number_of
from pager.vectors.embedder import EmbedderUnavailableError

EACH = 2  # older texts that a newer one is compared with


def new_texts(store: Store, sleep: int) -> list[str]:
    """Return the texts that an unfinished sleep would store."""
    return [fact["text"] for row in store.sleeps.edits(sleep) if row.state == "open" for fact in row.after]


def near_texts(store: Store, archive: Archive, reader: Reader, sleep: int, limit: int) -> list[FactPair]:
    """Return the nearest pairs, nearest first, of which one is new and neither is in an edit already."""
    import numpy as np

    if archive.vectors is None:
        return []
    rows = store.sleeps.edits(sleep)
    taken = {page for row in rows for page in (*row.pages, *row.keeps)}
    facts = [fact for fact in current_facts(store, archive) if fact.id not in taken]
    ids, matrix = store.archive.vectors([number_of(fact.id) for fact in facts])
    by_id = {fact.id: fact for fact in facts}
    order = np.argsort(ids) if ids else np.empty(0, dtype=int)
    texts = [(page, by_id[page].text, by_id[page].key, by_id[page].via) for page in (f"f{ids[at]}" for at in order)]
    first = sum(number_of(page) <= store.sleeps.compared_through(sleep) for page, *_ in texts)
    fresh = [row for row in rows if row.kind == "new" and row.state == "open" and row.after]
    fresh.sort(key=lambda row: (row.after[0].get("valid_from") or "", row.number))
    try:
        new = archive.vectors.embedding.embed_all([row.after[0]["text"] for row in fresh]) if fresh else []
    except EmbedderUnavailableError:
        fresh, new = [], []
    for row in fresh:
        via = untrusted_of([origin.source for origin in store.sleeps.origins(row.number)])
        texts.append((f"edit {row.number}", row.after[0]["text"], row.after[0].get("key"), via))
    if not texts or len(texts) > MOST_FACTS:
        return []
    parts = [matrix[order]] if ids else []
    vectors = np.concatenate([*parts, *([np.array([each.vector for each in new])] if new else [])])
    content = reader.stems([text for _, text, *_ in texts])
    found = list[tuple[float, FactPair]]()
    for newer in range(first, len(texts)):
        near = vectors[:newer] @ vectors[newer]
        best = [int(each) for each in np.argsort(-near)[: 4 * EACH] if near[each] >= RELATED]
        fits = [each for each in best if content[each] & content[newer]]  # a word that carries meaning
        for older in fits[:EACH]:
            one, other = texts[older], texts[newer]
            via = tuple(sorted({*one[3], *other[3]}))
            found.append((float(near[older]), FactPair(one[0], other[0], (one[1], other[1]), via)))
    return [pair for _, pair in sorted(found, key=lambda each: -each[0])[:limit]]
