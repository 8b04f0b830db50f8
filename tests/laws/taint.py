"""A conversation beside a plain model of where its texts come from.

Untrusted results hold words that nothing else says. The model that answers repeats every such word that it sees, in
what it says, archives and writes into core. So wherever such a word is, its source has to be behind it.
"""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from pager import Block, BlockSpec, Fact, Hit, PageText, Prefetch, RejectedError
from pager.prompt.summary import SummaryRequest
from tests.standin import Reply
from tests.standin.reply import call
from tests.support.talk import Talk, database_of, undone

MARKER = re.compile(r"payload\d+q")
SUMMARY = "They spoke of "
MAX_REPEATED = 6  # newest markers that the agent repeats in a text
FILLING = " and so we went on and on and on" * 6
NONE = frozenset[str]()
Sources = frozenset[str]


class TaintedTalk:
    """The memory, and what a plain reader of the rules expects of it."""

    def __init__(self, directory: Path, *, summarizes: bool) -> None:
        self.talk = Talk(
            directory, window=3_000, core={"notes": BlockSpec(limit_tokens=120)}, prefetch=Prefetch(k=2),
            summarize=self.summarize if summarizes else None,
        )  # fmt: skip
        self.markers: dict[str, str] = {}  # untrusted word -> its source
        self.steps: dict[str, Sources] = {}
        self.facts: dict[str, list[Sources]] = {}  # the untrusted sources of each origin
        self.core = NONE
        self.summary = NONE  # of the summary in the digest
        self.preamble = NONE
        self.epoch = 0
        self.given = NONE  # of the request that the newest reply answered
        self.evictions = 0

    def summarize(self, ask: SummaryRequest) -> str:
        return SUMMARY + self.repeated(MARKER.findall(ask.earlier + ask.leaving))

    @staticmethod
    def repeated(markers: Iterable[str]) -> str:
        return " ".join(sorted(set(markers), key=lambda each: (len(each), each))[-MAX_REPEATED:])

    # what the plain model says

    def of_page(self, page: str) -> Sources:
        if not page.startswith("f"):
            return self.steps.get(page, NONE)
        origins = self.facts[page]
        return NONE.union(*origins) if all(origins) else NONE

    def enter_epoch(self, number: int) -> None:
        memory = self.talk.memory
        epoch = memory.inspect.epoch(number)
        assert epoch is not None
        # A summary has the words of the one before it and of the steps that leave. If a model gives none, the earlier
        # one stands. Little room cuts it, down to its first word, or leaves it out.
        rows = memory.ledger(events=["digest", "evict", "epoch"])
        ends = [index for index, row in enumerate(rows) if row.event == "epoch"]
        since = rows[ends[-2] + 1 : ends[-1]] if len(ends) > 1 else []
        if any(row.event == "digest" and "epoch" in row.detail for row in since):
            leaving = [row.page_id or "" for row in since if row.event == "evict"]
            self.summary = self.summary.union(*map(self.of_page, leaving))
        if not any(line["words"].startswith(SUMMARY.split(maxsplit=1)[0]) for line in epoch.digest):
            self.summary = NONE
        pinned = [pin.page_id for pin in memory.inspect.pins()]
        requests = [stay.page_id for stay in memory.history.resident() if stay.how == "request"]
        self.preamble = self.core.union(self.summary, *map(self.of_page, [*pinned, *requests]))
        self.evictions += self.epoch > 0
        self.epoch = number

    def in_request(self) -> Sources:
        resident = [stay.page_id for stay in self.talk.memory.history.resident() if stay.how == "step"]
        return self.preamble.union(*map(self.of_page, resident))

    def seen(self) -> set[str]:
        """Return the untrusted words in the request that was just made."""
        assert self.talk.last is not None
        return set(MARKER.findall(json.dumps(self.talk.last.params)))

    # what happens

    def say(self, text: str) -> None:
        memory = self.talk.memory
        step = memory.append_user(text + FILLING)
        self.steps[step] = self.recalled_for(step)

    def recalled_for(self, step: str) -> Sources:
        """Return the sources of all that was recalled for a message, also of what was replaced before it was sent."""
        rows = self.talk.memory.ledger(events=["recall"])
        return NONE.union(*(self.of_page(row.page_id or "") for row in rows if row.reason == f"for {step}"))

    def ask(self, *names: str) -> list[str]:
        """Let the model answer the next request with what it has read, and with calls. Return their ids."""
        memory, last = self.talk.memory, next(reversed(self.steps))
        asides = self.count_asides()
        pinned = [pin.page_id for pin in memory.inspect.pins() if pin.unseen]
        self.talk.last = memory.request()
        self.steps[last] |= self.recalled_for(last)  # again, if steps have left to make room for it
        if self.count_asides() > asides:  # what a person pinned stands behind the newest step; they empty core at most
            self.steps[last] = self.steps[last].union(*map(self.of_page, pinned))
        if self.talk.last.epoch != self.epoch:
            self.enter_epoch(self.talk.last.epoch)
        self.given = self.in_request()
        shown = {self.markers[marker] for marker in self.seen()}
        assert shown <= self.given, "the plain model misses a source"
        text = f"I have read {self.repeated(self.seen())}." + FILLING
        step = self.talk.reply(
            Reply(text, *(call(name) for name in names), stop_reason="tool_use" if names else "end_turn")
        )
        self.steps[step] = self.given
        return [each.id for each in memory.open_calls]

    def count_asides(self) -> int:
        database = database_of(self.talk.memory)
        return database.value("SELECT count(*) FROM parts WHERE kind = 'update'")

    def fetch(self, source: str) -> None:
        """Read something untrusted."""
        [call_id] = self.ask("weather")
        marker = f"payload{len(self.markers)}q"
        self.markers[marker] = source
        self.talk.memory.append_result(call_id, f"the page says {marker}", source=source)
        self.show(NONE.union([source]))

    def show(self, sources: Sources) -> None:
        last = next(reversed(self.steps))
        self.steps[last] |= sources

    def use(self, run: Callable[[], str], *, undo: bool = False) -> None:
        """Let the model call a tool of the memory; `undo` breaks it off once before it is done."""
        [call_id] = self.ask("weather")
        memory = self.talk.memory
        if undo:
            kept = self.steps, {page: list(each) for page, each in self.facts.items()}, self.core
            self.steps = dict(self.steps)
            with undone(memory):
                memory.append_result(call_id, run(), memory_tool=True)
            self.steps, self.facts, self.core = kept
        try:
            with memory.transaction():
                memory.append_result(call_id, run(), memory_tool=True)
        except RejectedError as error:
            memory.append_result(call_id, str(error)[:200], is_error=True, memory_tool=True)

    def archive(self, key: str | None) -> str:
        fact = self.talk.memory.archive(f"about the refunds {self.repeated(self.seen())}", key=key, actor="agent")
        self.store(fact, self.given)
        if fact.supersedes:
            self.show(self.of_page(fact.supersedes))
        self.is_labelled(fact)
        return fact.id

    def store(self, fact: Fact, origin: Sources) -> None:
        origins = self.facts.setdefault(fact.id, [])
        if not any(each <= origin for each in origins):
            self.facts[fact.id] = [*(each for each in origins if not origin < each), origin]

    def is_labelled(self, fact: Fact) -> None:
        assert {self.markers[marker] for marker in MARKER.findall(fact.text)} <= set(fact.via)

    def append_core(self) -> str:
        block = self.talk.memory.core_append("notes", f"Seen: {self.repeated(self.seen())}", actor="agent")
        self.core |= self.given
        return block.value

    def empty_core(self) -> Block:
        self.core = NONE
        return self.talk.memory.core_write("notes", "")

    def read(self, hits: Iterable[Hit | PageText]) -> str:
        shown = list(hits)
        self.show(NONE.union(*(self.of_page(hit.page_id) for hit in shown if not getattr(hit, "where", ""))))
        for hit in shown:
            assert {self.markers[marker] for marker in MARKER.findall(hit.text)} <= self.of_page(hit.page_id)
        return "\n".join(f"{hit.page_id}: {hit.text}" for hit in shown)

    def agrees(self) -> None:
        """Compare everything with the plain model."""
        memory = self.talk.memory
        for step, sources in self.steps.items():
            assert set(memory.inspect.step(step).via) == sources, step
        for page in self.facts:
            assert set(memory.fact(page).via) == self.of_page(page), page
        assert set(memory.core()[0].via) == self.core
