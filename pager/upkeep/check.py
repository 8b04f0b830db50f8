"""An fsck: are the stored rows consistent, and do the database and the vector index agree?

With `fix` everything that can be rebuilt is: the word index, missing vectors, the vector index, used_tokens of core
blocks. A broken law of the conversation itself is only reported: nothing is guessed.
"""

from contextlib import suppress

from pager import tokens
from pager.errors import PagerError
from pager.prompt.prompt import rebuild
from pager.prompt.render import unpaired_calls
from pager.store import Store
from pager.types import Problem
from pager.upkeep.purge import rebuild_words
from pager.vectors.embedder import EmbedderUnavailableError
from pager.vectors.embedding import mark_unembedded
from pager.vectors.facts import FactVectors
from pager.vectors.said import SaidVectors


def check(store: Store, facts: FactVectors | None, said: SaidVectors | None, *, fix: bool) -> list[Problem]:
    """Return what is wrong. With `fix`, `Problem.fixed` says what was repaired."""
    damage = [Problem("pager.db", text) for text in store.maintenance.damage()]
    if damage:
        return damage  # the other checks mean nothing on a damaged file
    found = [Problem(law, text) for law, text in store.maintenance.audit()]
    missing = store.maintenance.words_missing()
    if missing and fix:
        rebuild_words(store)
    found += [Problem("words", text, fix) for text in missing]
    found += _core(store, fix=fix)
    found += _last_request(store)
    if (page := store.settings.get("purging")) is not None:
        way = "the next purge, or the next opening, finishes it, once its disk or the server of its index lets it"
        found.append(Problem("purge", f"the purge of {page} has begun, but not ended; {way}"))
    if facts is not None:
        found += _fact_vectors(store, facts, fix=fix)
        found += [Problem("chroma", text, fixed=False) for text in facts.indexing.check()]
    return found + _said_vectors(store, said, fix=fix)


def _core(store: Store, *, fix: bool) -> list[Problem]:
    found: list[Problem] = []
    for block in store.core.blocks():
        used = tokens.total(block.value)
        if block.used_tokens != used:
            wrong = f"{block.name} says it holds {block.used_tokens} tokens and holds {used}"
            found.append(Problem("core", wrong, fix))
            if fix:
                store.core.recount(block.version, used)
    return found


def _last_request(store: Store) -> list[Problem]:
    step = store.prompt.last_answered()
    if step is None:
        return []
    try:
        unpaired = unpaired_calls(rebuild(store, step)["messages"])
    except (PagerError, KeyError, IndexError, ValueError) as error:
        return [Problem("everything can be explained", f"the request of s{step} cannot be rebuilt: {error!r}")]
    wrong = f"in the request of s{step} the calls {unpaired} have no result"
    return [Problem("a step stays whole", wrong)] if unpaired else []


def _fact_vectors(store: Store, facts: FactVectors, *, fix: bool) -> list[Problem]:
    wrong = store.archive.wrong_vectors(facts.embedding.embedder.dimension)
    missing = len(store.archive.without_vector(1_000_000))
    found: list[Problem] = []
    if wrong:
        found.append(Problem("vectors", f"of another dimension: {', '.join(f'f{fact}' for fact in wrong[:5])}", fix))
    if missing:
        found.append(Problem("vectors", f"{missing} facts have no vector and are found by words only", fix))
    if fix and found:
        for fact in wrong:
            store.maintenance.drop_vector(fact)
        mark_unembedded(store)
        # Without an embedder they stay as they are, and the next check reports them again.
        with suppress(EmbedderUnavailableError):
            facts.embed_pending(missing + len(wrong))
    return found


def _said_vectors(store: Store, said: SaidVectors | None, *, fix: bool) -> list[Problem]:
    """Find steps that a search by meaning would never find. With `fix` they are embedded with the next batch."""
    wrong = store.said.wrong_vectors(said.embedding.embedder.dimension) if said else []
    missing = store.said.unqueued()
    if fix:
        with store.transaction():
            for part in wrong:
                store.said.renew_vector(part)
            store.said.enqueue(missing)
    found: list[Problem] = []
    if wrong:
        parts = ", ".join(f"x{part}" for part in wrong[:5])
        found.append(Problem("vectors", f"of another dimension: {parts}", fix))
    if missing:
        steps = ", ".join(f"s{step}" for step in missing[:5])
        found.append(Problem("vectors", f"{len(missing)} steps have none and are not due for one: {steps}", fix))
    return found
