"""What becomes of a model's claims and judgements: edits, as far as what was said allows them.

A subject that two facts share ends neither: of a sister there are many facts. One ends the other if a model judges that
it replaces it and their words allow that, or if what was said says of itself that something changed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from pager.blocks import clean
from pager.clock import Clock
from pager.safety.sources import Source, read_source, union, untrusted_of
from pager.sleep import grounding, tidying
from pager.sleep.edits import Claim, Edit, FactPair, NewFact, SaidStep, SaidTurn, Verdict
from pager.sleep.pairs import new_texts
from pager.sleep.signs import Reader, may_mean_the_same, may_replace, says_that_it_changed
from pager.sleep.stored import StoredEdits, new_fact
from pager.store import Store
from pager.store.rows import EditRow
from pager.tiers.archive import Archive
from pager.types import Fact, Json, number_of, read_step_id
from pager.vectors.embedder import EmbedderUnavailableError, Meaning

KNOWN = 5  # facts in which a new one is looked for


class Claims:
    """Turns claims into proposed facts. What takes long is done without the lock: `held` is taken for each piece."""

    def __init__(
        self, store: Store, archive: Archive, clock: Clock, held: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._store = store
        self._archive = archive
        self._clock = clock
        self._held = held
        self._edits = StoredEdits(store, clock)

    def add(self, number: int, claims: Sequence[Claim], read: Sequence[SaidTurn], reader: Reader) -> dict[str, int]:
        """Propose what was said, and note the turns as read. Return why claims were dropped, and how many."""
        with self._held():
            self._edits.check_unfinished(number)
        said = {step.id: step for turn in read for step in turn.steps}
        via = union(*(turn.via for turn in read))  # whatever stood in the request may have led the model
        dropped, grounded = dict[str, int](), list[grounding.Grounded]()
        for claim in claims:
            found = grounding.ground(claim, said, reader, self._embed if self._archive.vectors else None)
            if isinstance(found, str):
                dropped[found] = dropped.get(found, 0) + 1
            else:
                grounded.append(found)
        fresh = self._without_known(number, grounded, reader)
        if len(fresh) < len(grounded):
            dropped["it is known"] = len(grounded) - len(fresh)
        fresh.sort(key=lambda found: max(step.at for step in found.steps))
        with self._held():
            self._edits.check_unfinished(number)
            with self._store.transaction():
                for found in fresh:
                    self._edits.append(number, self._new_fact(number, found, via, reader))
                self._store.sleeps.mark_read(number, [read_step_id(turn.id) for turn in read])
        return dropped

    def _embed(self, texts: Sequence[str]) -> list[Meaning] | None:
        assert self._archive.vectors is not None
        with suppress(EmbedderUnavailableError):
            return self._archive.vectors.embedding.embed_all(texts)
        return None

    def _without_known(
        self, number: int, found: Sequence[grounding.Grounded], reader: Reader
    ) -> list[grounding.Grounded]:
        """Return what no fact, and no other new one, says already."""
        near = {each.claim.text: self._recall(each.claim.text) for each in found}
        with self._held():
            others = new_texts(self._store, number)
        texts = list(dict.fromkeys([*others, *near, *(text for hits in near.values() for text in hits)]))
        signs = dict(zip(texts, reader.read(texts), strict=True)) if texts else {}
        new, fresh = [signs[text] for text in others], list[grounding.Grounded]()
        for each in found:
            own = signs[each.claim.text]
            known = [(signs[text], cosine) for text, cosine in near[each.claim.text].items()]
            if not any(tidying.says_the_same(own, *other) for other in (*known, *((one, 1.0) for one in new))):
                new.append(own)
                fresh.append(each)
        return fresh

    def _recall(self, text: str) -> dict[str, float]:
        """Return the facts that are nearest to a text, with their cosines."""
        if self._archive.vectors is not None:
            self._archive.vectors.embedding.embed_ahead(text)
        with self._held():
            hits = self._archive.recall(text, KNOWN)
        return {hit.text: 1.0 if hit.cosine is None else hit.cosine for hit in hits}

    def _new_fact(self, number: int, found: grounding.Grounded, via: tuple[str, ...], reader: Reader) -> Edit:
        claim, last = found.claim, max(found.steps, key=lambda step: step.at)
        key = clean(claim.key or "").strip().casefold()[: grounding.MOST_KEY_CHARS] or None
        tags = tuple(clean(tag).strip() for tag in claim.tags if tag.strip())[: grounding.MOST_TAGS]
        sources = tuple(_said_by(step, via) for step in found.steps)
        after, reason = NewFact(clean(claim.text), key, tags, last.at), f"said in {', '.join(claim.steps)}"
        edit = Edit("new", reason, (), (after,), sources=sources, quotes=found.quotes)
        quoted = " ".join((claim.text, *(quote.text for quote in found.quotes)))
        new, own_via = self._newest_new(number, key), untrusted_of(sources)
        if new is not None:
            fact = new_fact(new.after[-1])
            is_newer = fact.valid_from is not None and fact.valid_from < last.at
            if is_newer and _corrects(fact.text, claim.text, quoted, reader):
                return replace(edit, asks=_lowers(self._via(new), own_via))
            return replace(edit, after=(replace(after, key=None),))
        if (current := self._current(key)) is None:
            return edit
        if current.valid_from < last.at and _corrects(current.text, claim.text, quoted, reader):
            return replace(edit, kind="supersede", pages=(current.id,), asks=_lowers(current.via, own_via))
        return replace(edit, after=(replace(after, key=None),))

    def _newest_new(self, number: int, key: str | None) -> EditRow | None:
        """Return the newest fact with a key that this sleep would store."""
        rows = [row for row in self._store.sleeps.edits(number) if row.state == "open" and row.after]
        return next((row for row in reversed(rows) if key is not None and row.after[-1].get("key") == key), None)

    def _current(self, key: str | None) -> Fact | None:
        versions = [] if key is None else [fact for fact, _ in self._store.archive.versions(key)]
        return next((each for each in versions if not each.superseded_by and each.forgotten is None), None)

    def _via(self, row: EditRow) -> tuple[str, ...]:
        return untrusted_of([origin.source for origin in self._store.sleeps.origins(row.number)])

    # judgements

    def judge(self, number: int, verdicts: Mapping[FactPair, Verdict], reader: Reader) -> int:
        """Propose what follows from judged pairs. Return how many edits came of it."""
        self._edits.check_unfinished(number)
        taken = {page for edit in self._store.sleeps.edits(number) for page in (*edit.pages, *edit.keeps)}
        made = 0
        with self._store.transaction():
            for pair, verdict in verdicts.items():
                if taken.isdisjoint(pair[:2]) and _may_be(verdict, pair, reader):
                    taken.update(pair[:2])
                    made += self._judged(number, pair, verdict)
        return made

    def _judged(self, number: int, pair: FactPair, verdict: Verdict) -> bool:
        rows = {f"edit {row.number}": row for row in self._store.sleeps.edits(number)}
        older, newer = rows.get(pair.older), rows.get(pair.newer)
        if newer is not None and newer.state == "open":
            if verdict == "same":
                self._store.sleeps.put_state(newer.number, "refused", f"{pair.older} says the same")
                return True
            return self._replace(newer, pair) if older is None else self._follow(newer, older, pair)
        if older is not None or newer is not None:
            return False
        facts = self._store.archive.facts([number_of(pair.older), number_of(pair.newer)])
        edit = _of_facts(facts[number_of(pair.older)], facts[number_of(pair.newer)], verdict)
        if self._edits.is_known(edit):
            return False
        self._edits.append(number, edit)
        return True

    def _follow(self, newer: EditRow, older: EditRow, pair: FactPair) -> bool:
        """Let a new fact supersede another one of the same sleep."""
        if older.state != "open" or not older.after:
            return False
        key = older.after[0].get("key") or newer.after[0].get("key") or f"sleep {newer.sleep} {pair.older}"
        self._store.sleeps.put_after(older.number, [{**older.after[0], "key": key}])
        self._store.sleeps.put_after(newer.number, [{**newer.after[0], "key": key}])
        self._store.sleeps.put_asks(newer.number, _lowers(self._via(older), self._via(newer)))
        return True

    def _replace(self, newer: EditRow, pair: FactPair) -> bool:
        """Let a new fact supersede one that is there."""
        old = self._store.archive.fact(number_of(pair.older))
        start = new_fact(newer.after[0]).valid_from
        if old is None or newer.pages or (start is not None and start <= old.valid_from):
            return False  # what was said before it corrects nothing
        fact: Json = newer.after[0]
        tags = list(dict.fromkeys([*fact.get("tags", ()), *old.tags]))
        after = [{**fact, "key": old.key or fact.get("key"), "tags": tags}]
        self._store.sleeps.supersede(newer.number, pair.older, after, _lowers(old.via, self._via(newer)))
        return True


def _of_facts(old: Fact, new: Fact, verdict: Verdict) -> Edit:
    """Return what follows from a judgement of two facts that are there."""
    asks = _lowers(old.via, new.via)
    if verdict == "same":
        after = NewFact(new.text, new.key or old.key, tuple(dict.fromkeys((*old.tags, *new.tags))))
        reason, sources = f"{old.id} and {new.id} say the same", tidying.merged_sources([old, new])
        asks = asks or _lowers(new.via, old.via)
        return Edit("merge", reason, (old.id, new.id), (after,), asks=asks, sources=sources)
    return Edit("supersede", f"{new.id} says otherwise, and is newer", (old.id,), keeps=(new.id,), asks=asks)


def _corrects(old: str, new: str, quoted: str, reader: Reader) -> bool:
    """Return True if what was said of a subject says that it changed."""
    return may_replace(*reader.read([old, new])) and says_that_it_changed(quoted)


def _may_be(verdict: Verdict, pair: FactPair, reader: Reader) -> bool:
    """Return True if the words of a pair allow a verdict that changes something."""
    one, other = reader.read(pair.texts)
    return may_replace(one, other) if verdict == "replaces" else verdict == "same" and may_mean_the_same(one, other)


def _said_by(step: SaidStep, via: tuple[str, ...]) -> Source:
    source = Source("agent") if step.who == "agent" else read_source(f"said:{step.who}")
    return Source(source.kind, source.name, step.id, via)


def _lowers(old: Sequence[str], new: Sequence[str]) -> str:
    """Return why a person has to decide if something untrusted would end what is trusted."""
    return f"a trusted fact would end for what follows from {', '.join(new)}" if new and not old else ""
