"""Ask the archive and the conversation one question.

Both score in the same units: words count what BM25 gives them, and all other evidence in units of the spread of that. A
step is also judged by who said it. A fact was said by nobody, so it gets as much as a step of whom the question means.
"""

from dataclasses import replace

from pager.arguments import require_limit, require_text
from pager.blocks import clean
from pager.store import Store
from pager.tiers.archive import MISSED, RAISING, Archive
from pager.tiers.recall import Recall
from pager.types import Hit


def search(store: Store, archive: Archive, recall: Recall, query: str, *, limit: int, actor: str | None) -> list[Hit]:
    """Find facts that are true now and steps, best first. With an `actor` the ledger logs it, and facts are used."""
    query = str(clean(require_text(query, "query")))
    count = require_limit(limit) + (MISSED if actor else 0)
    facts, steps = _found(archive, recall, query, count)
    who = max((hit.parts.get("who", 0.0) for hit in steps), default=0.0)
    found = sorted([*(_said_by(who, hit) for hit in facts), *steps], key=lambda hit: -hit.score)[:count]
    hits, missed = found[:limit], found[limit:]
    if actor is not None:
        detail = {"without_meaning": recall.vectors.embedding.failure if recall.vectors else None}
        with store.transaction(durable=False):
            archive.mark_used(hit.page_id for hit in hits)
            store.ledger.write_search("memory", query, hits, actor, missed=missed, **detail)
    return hits


def _found(archive: Archive, recall: Recall, query: str, count: int) -> tuple[list[Hit], list[Hit]]:
    candidates, most = archive.candidates(query, max(count, RAISING + 1)), max(count, RAISING + 1)
    ranking = recall.rank_words(query, with_facts=True) if query.strip() else None
    if ranking is None:
        return archive.rank(candidates, most), recall.find(query, count, facts=())
    by_words = archive.word_scores(candidates, ranking.rarity_of)
    ranking.words_beside = list(by_words.values())
    facts = archive.rank(candidates._replace(by_words=by_words), most, ranking.unit())
    return facts, recall.rank(ranking, query, count, facts)


def _said_by(who: float, hit: Hit) -> Hit:
    return replace(hit, score=hit.score + who, parts={**hit.parts, "who": who}) if who > 0 else hit
