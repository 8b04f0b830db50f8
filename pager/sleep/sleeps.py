"""The calls of a sleep. A facade has them as `sleeps`.

    >>> with Memory.open(directory) as memory:
    ...     _ = memory.archive("prefers window seats"), memory.archive("Prefers window seats.")
    ...     proposal = memory.sleeps.propose()
    ...     [edit.kind for edit in proposal.edits]
    ...     _ = memory.sleeps.apply(proposal.number), memory.sleeps.undo(proposal.number)
    ['merge']

`propose` is a whole sleep without a model. With one, a program calls `begin`, hands in what its model found in
`unread_turns` (`add_facts`), how it judged `pairs` (`judge`) and blocks (`rewrite_block`), and calls `finish`. Each
commits, so a sleep that was interrupted goes on where it was with the next `begin`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from pager import tokens
from pager.blocks import clean, dump
from pager.call_lock import CallLock, locked_class
from pager.clock import Clock, to_micros
from pager.errors import NotFoundError, RejectedError
from pager.safety.sources import Source, read_source, union, untrusted_of
from pager.sleep import grounding, tidying
from pager.sleep.changes import Changes, actor_of
from pager.sleep.edits import (
    Claim,
    Edit,
    FactPair,
    NewFact,
    Proposal,
    Quote,
    SaidStep,
    SaidTurn,
    SleepUndone,
    Verdict,
)  # fmt: skip
from pager.sleep.pairs import near_texts, new_texts
from pager.sleep.signs import Reader, may_mean_the_same, may_replace, says_that_it_changed
from pager.store import Store
from pager.store.rows import EditRow, Origin
from pager.tiers import Tiers
from pager.types import Block, Json, number_of, read_step_id
from pager.vectors.embedder import EmbedderUnavailableError, Meaning

MOST_PROPOSALS = 1000
KNOWN = 5  # facts in which a new one is looked for


@locked_class
class SleepHistory:
    """What sleeps have proposed, and what came of it. Read-only."""

    def __init__(self, store: Store, call_lock: CallLock) -> None:
        self._store = store
        self._call_lock = call_lock

    def proposals(self, limit: int = 20) -> list[Proposal]:
        """Return the newest proposals, newest first."""
        if not 0 <= limit <= MOST_PROPOSALS:
            raise RejectedError(f"limit is {limit}; ask for at most {MOST_PROPOSALS} proposals.")
        return [self._proposal(number) for number in self._store.sleeps.numbers(limit)]

    def proposal(self, number: int) -> Proposal:
        """Return a proposal by its number. Raises NotFoundError if there is none."""
        return self._proposal(number)

    def _proposal(self, number: int) -> Proposal:
        found = self._store.sleeps.sleep(number)
        if found is None:
            there = ", ".join(map(str, self._store.sleeps.numbers(10))) or "none"
            raise NotFoundError(f"there is no sleep {number}; the newest are: {there}.")
        at, finished, detail = found
        edits = tuple(map(self._edit, self._store.sleeps.edits(number)))
        return Proposal(number, at, finished, edits, detail)

    def _edit(self, row: EditRow) -> Edit:
        facts = self._store.archive.facts([number_of(page) for page in row.pages])
        before = tuple(facts[number_of(page)].text for page in row.pages)
        if row.block is not None:
            versions = [each.block for each in self._store.lists.core_versions(row.block)]
            before = tuple(each.value for each in versions if each.version == row.version)
        quotes = [
            Quote(f"s{step}", begin, end, self._store.sleeps.said(step)[begin:end]) for step, begin, end in row.quotes
        ]
        sources = tuple(origin.source for origin in self._store.sleeps.origins(row.number))
        return Edit(
            row.kind, row.reason, tuple(row.pages), tuple(map(new_fact, row.after)), tuple(row.keeps), row.block,
            row.version, row.value, row.asks, sources, tuple(quotes), row.number, row.state, row.why, before,
        )  # fmt: skip


@locked_class
class Sleeps(SleepHistory):
    """Proposes, applies and undoes. For the one process that has the memory open for writing."""

    def __init__(self, store: Store, call_lock: CallLock, tiers: Tiers, clock: Clock) -> None:
        super().__init__(store, call_lock)
        self._archive = tiers.archive
        self._clock = clock
        self._changes = Changes(store, clock, tiers.archive, tiers.core, tiers.pages)

    # what is proposed

    def propose(self) -> Proposal | None:
        """Sleep without a model, or end a sleep that was interrupted. Return None if there is nothing to propose."""
        begun = self._begin(reads=False)
        return begun and self._finish(begun.number, {})

    def begin(self) -> Proposal | None:
        """Begin a sleep with what needs no model, or go on with one that was interrupted. Return None if nothing has
        come since the last one."""
        return self._begin(reads=True)

    def _begin(self, *, reads: bool) -> Proposal | None:
        unfinished = self._store.sleeps.unfinished()
        if unfinished is not None:
            return self._proposal(unfinished)
        since, last = self._store.sleeps.compared_through(), self._store.archive.last_fact()
        edits = tidying.tidy(self._store, self._archive, self._reader(), since)
        known = self._store.sleeps.signatures()
        edits = [edit for edit in edits if _signature(edit) not in known]
        if not edits and not (
            reads and (self._store.archive.has_come(since) or self._store.sleeps.unread(1) or self._full_blocks())
        ):
            return None
        with self._store.transaction():
            number = self._store.sleeps.begin(self._clock.now(), last)
            for edit in edits:
                self._append(number, edit)
        return self._proposal(number)

    def unread_turns(self, limit: int = 20) -> list[SaidTurn]:
        """Return the oldest turns that have left the window, gave no fact, and were not read in a sleep."""
        return [
            SaidTurn(f"s{turn.turn}", turn.session, tuple(SaidStep(f"s{step}", *said) for step, said in turn.steps))
            for turn in self._store.sleeps.unread(limit)
        ]

    def add_facts(self, number: int, claims: Sequence[Claim], read: Sequence[SaidTurn]) -> Mapping[str, int]:
        """Propose the claims that what was said shows, and note that these turns were read. Return why others were
        dropped, and how many."""
        self._unfinished(number)
        reader, embed = self._reader(), self._embed if self._archive.vectors else None
        said = {step.id: step for turn in read for step in turn.steps}
        via = union(*(turn.via for turn in read))  # whatever stood in the request may have led the model
        dropped, grounded = dict[str, int](), list[grounding.Grounded]()
        for claim in claims:
            found = grounding.ground(claim, said, reader, embed)
            if isinstance(found, str):
                dropped[found] = dropped.get(found, 0) + 1
            else:
                grounded.append(found)
        fresh = self._without_known(grounded, new_texts(self._store, number), reader)
        if len(fresh) < len(grounded):
            dropped["it is known"] = len(grounded) - len(fresh)
        edits = [self._new_fact(found, via) for found in fresh]
        with self._store.transaction():
            for edit in sorted(edits, key=lambda each: each.after[0].valid_from or self._clock.now()):
                self._append(number, self._without_taken_key(number, edit))
            self._store.sleeps.mark_read(number, [read_step_id(turn.id) for turn in read])
        return dropped

    def _without_known(
        self, found: Sequence[grounding.Grounded], others: Sequence[str], reader: Reader
    ) -> list[grounding.Grounded]:
        """Return what no fact, and no other new one, says already."""
        hits = {each.claim.text: self._archive.recall(each.claim.text, KNOWN) for each in found}
        texts = list(dict.fromkeys([*others, *hits, *(hit.text for near in hits.values() for hit in near)]))
        signs = dict(zip(texts, reader.read(texts), strict=True)) if texts else {}
        new, fresh = [signs[text] for text in others], list[grounding.Grounded]()
        for each in found:
            own = signs[each.claim.text]
            near = ((signs[hit.text], 1.0 if hit.cosine is None else hit.cosine) for hit in hits[each.claim.text])
            if any(
                tidying.says_the_same(own, other, cosine) for other, cosine in (*near, *((one, 1.0) for one in new))
            ):
                continue
            new.append(own)
            fresh.append(each)
        return fresh

    def _new_fact(self, found: grounding.Grounded, via: tuple[str, ...]) -> Edit:
        claim, last = found.claim, max(found.steps, key=lambda step: step.at)
        key = clean(claim.key or "").strip().casefold()[: grounding.MOST_KEY_CHARS] or None
        tags = tuple(clean(tag).strip() for tag in claim.tags if tag.strip())[: grounding.MOST_TAGS]
        sources = tuple(_said_by(step, via) for step in found.steps)
        after = NewFact(clean(claim.text), key, tags, last.at)
        reason = f"said in {', '.join(claim.steps)}"
        edit = Edit("new", reason, (), (after,), sources=sources, quotes=found.quotes)
        versions = [] if key is None else [fact for fact, _ in self._store.archive.versions(key)]
        current = next((each for each in versions if not each.superseded_by and each.forgotten is None), None)
        if current is None:
            return edit
        quoted = " ".join(quote.text for quote in found.quotes)
        if current.valid_from < last.at and self._corrects(current.text, claim.text, quoted):
            return replace(
                edit, kind="supersede", pages=(current.id,), asks=_lowers(current.via, untrusted_of(sources))
            )
        return replace(edit, after=(replace(after, key=None),))

    def _without_taken_key(self, number: int, edit: Edit) -> Edit:
        """Return a new fact without its key if another one of this sleep has it, and is not corrected by it."""
        [fact] = edit.after
        others = [row for row in self._store.sleeps.edits(number) if row.state == "open" and row.after]
        same = [row.after[-1] for row in others if fact.key is not None and row.after[-1].get("key") == fact.key]
        quoted = " ".join(quote.text for quote in edit.quotes)
        if not same or (_is_before(same[-1], fact) and self._corrects(same[-1]["text"], fact.text, quoted)):
            return edit
        return replace(edit, after=(replace(fact, key=None),))

    def _corrects(self, old: str, new: str, quoted: str) -> bool:
        """Return True if what was said of a subject says that it changed. A subject alone says little: of a sister there
        are many facts."""
        [one, other] = self._reader().read([old, new])
        return may_replace(one, other) and says_that_it_changed(f"{new} {quoted}")

    def pairs(self, number: int, limit: int = 60) -> list[FactPair]:
        """Return pairs of which one is new since the last sleep and that may say the same, or correct each other."""
        self._unfinished(number)
        return near_texts(self._store, self._archive, self._reader(), number, limit)

    def judge(self, number: int, verdicts: Mapping[FactPair, Verdict]) -> int:
        """Propose what follows from judged pairs. Return how many edits came of it."""
        self._unfinished(number)
        taken = {page for edit in self._store.sleeps.edits(number) for page in (*edit.pages, *edit.keeps)}
        made = 0
        with self._store.transaction():
            for pair, verdict in verdicts.items():
                if taken.isdisjoint(pair[:2]) and self._may_be(verdict, pair):
                    taken.update(pair[:2])
                    made += self._judged(number, pair, verdict)
        return made

    def _may_be(self, verdict: Verdict, pair: FactPair) -> bool:
        """Return True if the words of a pair allow a verdict that changes something."""
        one, other = self._reader().read(pair.texts)
        return may_replace(one, other) if verdict == "replaces" else verdict == "same" and may_mean_the_same(one, other)

    def _judged(self, number: int, pair: FactPair, verdict: Verdict) -> bool:
        rows = {f"edit {row.number}": row for row in self._store.sleeps.edits(number)}
        older, newer = rows.get(pair.older), rows.get(pair.newer)
        if newer is not None and newer.state == "open":
            if verdict == "same":
                self._store.sleeps.put_state(newer.number, "refused", f"{pair.older} says the same")
            elif older is not None:
                key = older.after[0].get("key") or newer.after[0].get("key") or f"{actor_of(number)} {pair.older}"
                for row in (older, newer):
                    self._store.sleeps.put_after(row.number, [{**row.after[0], "key": key}])
            else:
                return self._replace(newer, pair)
            return True
        if older is not None or newer is not None:
            return False
        facts = self._store.archive.facts([number_of(pair.older), number_of(pair.newer)])
        old, new = facts[number_of(pair.older)], facts[number_of(pair.newer)]
        asks = _lowers(old.via, new.via)
        if verdict == "same":
            after = NewFact(new.text, new.key or old.key, tuple(dict.fromkeys((*old.tags, *new.tags))))
            sources = tidying.merged_sources([old, new])
            asks = asks or _lowers(new.via, old.via)
            edit = Edit(
                "merge", f"{old.id} and {new.id} say the same", (old.id, new.id), (after,), asks=asks, sources=sources
            )
        else:
            reason = f"{new.id} says otherwise, and is newer"
            edit = Edit("supersede", reason, (old.id,), keeps=(new.id,), asks=asks)
        if _signature(edit) in self._store.sleeps.signatures():
            return False
        self._append(number, edit)
        return True

    def _replace(self, newer: EditRow, pair: FactPair) -> bool:
        """Let a new fact supersede one that is there."""
        old = self._store.archive.fact(number_of(pair.older))
        start = new_fact(newer.after[0]).valid_from
        if old is None or newer.pages or (start is not None and start <= old.valid_from):
            return False  # what was said before it corrects nothing
        via = untrusted_of([origin.source for origin in self._store.sleeps.origins(newer.number)])
        after = [{**newer.after[0], "key": old.key or newer.after[0].get("key")}]
        self._store.sleeps.supersede(newer.number, pair.older, after, _lowers(old.via, via))
        return True

    def full_blocks(self) -> list[Block]:
        """Return the core blocks that hardly have any room left and that may be written."""
        return self._full_blocks()

    def _full_blocks(self) -> list[Block]:
        return [block for block in self._store.core.blocks() if tidying.is_full(block)]

    def rewrite_block(self, number: int, block: str, text: str) -> str:
        """Propose another text for a full block: shorter, and with nothing new. Lines that it leaves out become facts.
        Return why it is dropped; an empty text if it is not."""
        self._unfinished(number)
        now = next((each for each in self._full_blocks() if each.name == block), None)
        value = str(clean(text)).strip()
        if now is None or any(row.block == block for row in self._store.sleeps.edits(number)):
            return f"the block {block} needs no other text"
        reader = self._reader()
        if why := grounding.rewrite_fault(now.value, value, reader):
            return why
        if tokens.total(value) >= now.used_tokens:
            return f"it is no shorter than the {now.used_tokens} tokens of the block"
        lines = grounding.left_out(now.value, value, reader)
        source = Source("agent", step=f"s{self._store.conversation.last_step()}", via=now.via)
        edit = Edit(
            "core", f"it holds {now.used_tokens} of {now.limit_tokens} tokens", block=block, version=now.version,
            value=value, after=tuple(NewFact(line, None, (block,)) for line in lines), asks=tidying.guards(now),
            sources=(source,),
        )  # fmt: skip
        if _signature(edit) in self._store.sleeps.signatures():
            return "the same version was proposed before"
        with self._store.transaction():
            self._append(number, edit)
        return ""

    def note(self, number: int, detail: Json) -> None:
        """Store what an unfinished sleep says of itself: requests, tokens, dollars, failures."""
        self._unfinished(number)
        with self._store.transaction():
            self._store.sleeps.put_detail(number, detail)

    def finish(self, number: int, detail: Json) -> Proposal:
        """End a sleep: its proposal is whole."""
        self._unfinished(number)
        return self._finish(number, detail)

    def _finish(self, number: int, detail: Json) -> Proposal:
        with self._store.transaction():
            full = [f"{block.name}: {block.used_tokens} of {block.limit_tokens}" for block in self._full_blocks()]
            self._store.sleeps.put_detail(number, {**detail, **({"full_blocks": full} if full else {})})
            self._store.sleeps.finish(number, self._clock.now())
            count = len(self._store.sleeps.edits(number))
            self._store.ledger.write("sleep", reason=f"proposed {count} edits", actor=actor_of(number), sleep=number)
        return self._proposal(number)

    # what comes of it

    def apply(self, number: int, edits: Sequence[int] = (), *, auto: bool = False) -> Proposal:
        """Apply the open edits of a proposal, or only some, in one transaction; with `auto` none that asks a person.

        An edit whose facts or block have changed since it was proposed becomes stale, and nothing of it is done.
        """
        chosen = [row for row in self._open(number, edits) if not (auto and row.asks)]
        meanings = dict[str, Meaning]()
        if not self._store.in_transaction:
            meanings = self._changes.embed(chosen)
        with self._store.transaction():
            for row in chosen:
                self._changes.apply(row, meanings)
            states = [row.state for row in self._store.sleeps.edits(number)]
            reason = f"{states.count('applied')} of {len(states)} edits are applied"
            self._store.ledger.write("sleep", reason=reason, actor=actor_of(number), sleep=number)
        return self._proposal(number)

    def refuse(self, number: int, edits: Sequence[int] = ()) -> Proposal:
        """Refuse the open edits of a proposal, or only some. What was refused is not proposed again."""
        chosen = self._open(number, edits)
        with self._store.transaction():
            for row in chosen:
                self._store.sleeps.put_state(row.number, "refused")
            self._store.ledger.write("sleep", reason=f"{len(chosen)} edits were refused", actor=actor_of(number))
        return self._proposal(number)

    def undo(self, number: int) -> SleepUndone:
        """Take back what a sleep has changed, in one transaction. What was changed since stays as a whole edit."""
        proposal = self._proposal(number)
        applied = [row for row in self._store.sleeps.edits(number) if row.state == "applied"]
        if not applied:
            raise RejectedError(f"nothing of sleep {proposal.number} is applied; there is nothing to undo.")
        undone, stays = list[int](), list[tuple[int, str]]()
        with self._store.transaction():
            for row in reversed(applied):
                if why := self._changes.undo(row):
                    stays.append((row.number, why))
                else:
                    undone.append(row.number)
            reason = f"{len(undone)} edits were undone, {len(stays)} stay"
            self._store.ledger.write("sleep", reason=reason, actor=actor_of(number), sleep=number)
        return SleepUndone(number, tuple(undone[::-1]), tuple(stays[::-1]))

    def carry_out(self, kind: str, arguments: Json) -> None:
        """Carry out a command from the inbox: `sleep_apply`, `sleep_refuse` or `sleep_undo`."""
        number, edits = int(arguments["sleep"]), [int(each) for each in arguments.get("edits", ())]
        if kind == "sleep_undo":
            self.undo(number)
        else:
            (self.apply if kind == "sleep_apply" else self.refuse)(number, edits)

    # parts

    def _open(self, number: int, edits: Collection[int]) -> list[EditRow]:
        if not self._proposal(number).finished:
            raise RejectedError(f"sleep {number} was interrupted: let it end first, with selfpager sleep NAME.")
        rows = {row.number: row for row in self._store.sleeps.edits(number)}
        if unknown := sorted(set(edits) - set(rows)):
            raise NotFoundError(f"sleep {number} has no edits {unknown}; it has {sorted(rows)}.")
        if decided := [f"{each} is {rows[each].state}" for each in edits if rows[each].state != "open"]:
            raise RejectedError(f"of sleep {number} {', '.join(decided)}; only open edits can be decided.")
        return [row for row in rows.values() if row.state == "open" and (not edits or row.number in edits)]

    def _unfinished(self, number: int) -> None:
        if number != self._store.sleeps.unfinished():
            raise RejectedError(f"sleep {number} is finished, or there is none: call begin first.")

    def _append(self, number: int, edit: Edit) -> None:
        origins = [origin for page in edit.pages for origin in self._store.archive.origins(number_of(page))]
        after = [stored_fact(fact) for fact in edit.after]
        quotes = [(read_step_id(quote.step), quote.begin, quote.end) for quote in edit.quotes]
        row = EditRow(
            edit.kind,
            edit.reason,
            edit.asks,
            edit.pages,
            edit.keeps,
            after,
            edit.block,
            edit.version,
            edit.value,
            quotes,
        )
        self._store.sleeps.append(number, row, self._origins(edit, origins))

    def _origins(self, edit: Edit, origins: Sequence[Origin]) -> list[Origin]:
        if not edit.quotes:
            return tidying.merged_origins(origins, edit.sources)
        at = max((fact.valid_from for fact in edit.after if fact.valid_from), default=self._clock.now())
        return tidying.merged_origins([Origin(source, to_micros(at)) for source in edit.sources], edit.sources)

    def _reader(self) -> Reader:
        return Reader(self._store.conversation.terms)

    def _embed(self, texts: Sequence[str]) -> list[Meaning] | None:
        assert self._archive.vectors is not None
        with suppress(EmbedderUnavailableError):
            return self._archive.vectors.embedding.embed_all(texts)
        return None


def stored_fact(fact: NewFact) -> Json:
    """Return a new fact as it is stored."""
    start = {"valid_from": fact.valid_from.isoformat()} if fact.valid_from else {}
    return {"text": fact.text, "key": fact.key, "tags": list(fact.tags), **start}


def new_fact(stored: Json) -> NewFact:
    """Return a new fact from what is stored of it."""
    start = stored.get("valid_from")
    return NewFact(
        stored["text"], stored.get("key"), tuple(stored.get("tags", ())), start and datetime.fromisoformat(start)
    )


def _is_before(stored: Json, fact: NewFact) -> bool:
    start = new_fact(stored).valid_from
    return start is not None and fact.valid_from is not None and start < fact.valid_from


def _signature(edit: Edit) -> tuple[str, str, str | None, int | None]:
    return edit.kind, dump(list(edit.pages)), edit.block, edit.version


def _said_by(step: SaidStep, via: tuple[str, ...]) -> Source:
    source = Source("agent") if step.who == "agent" else read_source(f"said:{step.who}")
    return Source(source.kind, source.name, step.id, via)


def _lowers(old: Sequence[str], new: Sequence[str]) -> str:
    """Return why a person has to decide if something untrusted would end what is trusted."""
    return f"a trusted fact would end for what follows from {', '.join(new)}" if new and not old else ""
