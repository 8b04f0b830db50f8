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

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager

from pager import tokens
from pager.blocks import clean
from pager.call_lock import CallLock, in_pieces, locked_class
from pager.clock import Clock
from pager.errors import NotFoundError, RejectedError
from pager.safety.sources import Source
from pager.sleep import grounding, tidying
from pager.sleep.changes import Changes, actor_of
from pager.sleep.claims import Claims
from pager.sleep.edits import Claim, Edit, FactPair, NewFact, Proposal, Quote, SaidStep, SaidTurn, SleepUndone, Verdict
from pager.sleep.pairs import candidates, near_texts
from pager.sleep.signs import Reader
from pager.sleep.stored import StoredEdits, new_fact, signature
from pager.store import Store
from pager.store.rows import EditRow
from pager.tiers import Tiers
from pager.types import Block, Json, number_of

MOST_PROPOSALS = 1000


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
        self._edits = StoredEdits(store, clock)
        self._claims = Claims(store, tiers.archive, clock, self._held)
        self._changes = Changes(store, clock, tiers.archive, tiers.core, tiers.pages)

    # what is proposed

    @in_pieces
    def propose(self) -> Proposal | None:
        """Sleep without a model, or end a sleep that was interrupted. Return None if there is nothing to propose."""
        begun = self._begin(reads=False)
        if begun is None:
            return None
        with self._held():
            return self._finish(begun.number, {})

    @in_pieces
    def begin(self) -> Proposal | None:
        """Begin a sleep with what needs no model, or go on with one that was interrupted. Return None if nothing has
        come since the last one."""
        return self._begin(reads=True)

    def _begin(self, *, reads: bool) -> Proposal | None:
        with self._held():
            unfinished = self._store.sleeps.unfinished()
            if unfinished is not None:
                return self._proposal(unfinished)
            since, last = self._store.sleeps.compared_through(), self._store.archive.last_fact()
            notes = tidying.gather(self._store, self._archive, since)
        edits = tidying.tidy(notes, self._archive.vectors and self._archive.vectors.embedding, self._reader())
        with self._held():
            begun = self._store.sleeps.unfinished()
            if begun is not None:  # by another thread, meanwhile
                return self._proposal(begun)
            known = self._store.sleeps.signatures()
            edits = [edit for edit in edits if signature(edit) not in known]
            if not edits and not (
                reads and (self._store.archive.has_come(since) or self._store.sleeps.unread(1) or self._full_blocks())
            ):
                return None
            with self._store.transaction():
                number = self._store.sleeps.begin(self._clock.now(), last)
                for edit in edits:
                    self._edits.append(number, edit)
            return self._proposal(number)

    def unread_turns(self, limit: int = 20) -> list[SaidTurn]:
        """Return the oldest turns that have left the window, gave no fact, and were not read in a sleep."""
        return [
            SaidTurn(f"s{turn.turn}", turn.session, tuple(SaidStep(f"s{step}", *said) for step, said in turn.steps))
            for turn in self._store.sleeps.unread(limit)
        ]

    @in_pieces
    def add_facts(self, number: int, claims: Sequence[Claim], read: Sequence[SaidTurn]) -> Mapping[str, int]:
        """Propose the claims that what was said shows, and note that these turns were read. Return why others were
        dropped, and how many."""
        return self._claims.add(number, claims, read, self._reader())

    @in_pieces
    def pairs(self, number: int, limit: int = 60) -> list[FactPair]:
        """Return pairs of which one is new since the last sleep and that may say the same, or correct each other."""
        with self._held():
            self._edits.check_unfinished(number)
            if self._archive.vectors is None:
                return []
            given = candidates(self._store, self._archive, number)
        return near_texts(given, self._archive.vectors.embedding, self._reader(), limit)

    def judge(self, number: int, verdicts: Mapping[FactPair, Verdict]) -> int:
        """Propose what follows from judged pairs. Return how many edits came of it."""
        return self._claims.judge(number, verdicts, self._reader())

    def full_blocks(self) -> list[Block]:
        """Return the core blocks that hardly have any room left and that may be written."""
        return self._full_blocks()

    def _full_blocks(self) -> list[Block]:
        return [block for block in self._store.core.blocks() if tidying.is_full(block)]

    def rewrite_block(self, number: int, block: str, text: str) -> str:
        """Propose another text for a full block: shorter, and with nothing new. Lines that it leaves out become facts.
        Return why it is dropped; an empty text if it is not."""
        self._edits.check_unfinished(number)
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
        if self._edits.is_known(edit):
            return "the same version was proposed before"
        with self._store.transaction():
            self._edits.append(number, edit)
        return ""

    def note(self, number: int, detail: Json) -> None:
        """Store what an unfinished sleep says of itself: requests, tokens, dollars, failures."""
        self._edits.check_unfinished(number)
        with self._store.transaction():
            self._store.sleeps.put_detail(number, detail)

    def finish(self, number: int, detail: Json) -> Proposal:
        """End a sleep: its proposal is whole."""
        self._edits.check_unfinished(number)
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

    @in_pieces
    def apply(self, number: int, edits: Sequence[int] = (), *, auto: bool = False) -> Proposal:
        """Apply the open edits of a proposal, or only some, in one transaction; with `auto` none that asks a person.

        An edit whose facts or block have changed since it was proposed becomes stale, and nothing of it is done.
        """
        with self._held():
            chosen = self._open(number, edits, auto=auto)
            in_transaction = self._store.in_transaction
        meanings = {} if in_transaction else self._changes.embed(chosen)
        with self._held(), self._store.transaction():
            for row in self._open(number, edits, auto=auto):
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

    def _open(self, number: int, edits: Collection[int], *, auto: bool = False) -> list[EditRow]:
        if not self._proposal(number).finished:
            raise RejectedError(f"sleep {number} was interrupted: let it end first, with selfpager sleep NAME.")
        rows = {row.number: row for row in self._store.sleeps.edits(number)}
        if unknown := sorted(set(edits) - set(rows)):
            raise NotFoundError(f"sleep {number} has no edits {unknown}; it has {sorted(rows)}.")
        if decided := [f"{each} is {rows[each].state}" for each in edits if rows[each].state != "open"]:
            raise RejectedError(f"of sleep {number} {', '.join(decided)}; only open edits can be decided.")
        chosen = [row for row in rows.values() if row.state == "open" and (not edits or row.number in edits)]
        return [row for row in chosen if not (auto and row.asks)]

    @contextmanager
    def _held(self) -> Generator[None]:
        """Take the lock for a piece of a call."""
        with self._call_lock.lock, self._call_lock:
            yield

    def _reader(self) -> Reader:
        def terms(texts: Sequence[str]) -> list[list[str]]:
            with self._held():
                return self._store.conversation.all_terms(texts)

        return Reader(terms)
