"""The bottom of the state machine: a memory with its plain model and its stand-in, opened again and again, and what
must hold of every request and after every step."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pager import BlockSpec, Limits, Memory, Prefetch, Request, markup, tokens
from pager.limits import DIGEST_SHARE, PINNED_SHARE
from pager.prompt.summary import SummaryRequest
from tests.laws import texts
from tests.laws.plain import Plain
from tests.laws.witness import Prompt, Witness, armed, body_text
from tests.standin import GrowthWatch, Standin
from tests.standin.chat import StoredForm
from tests.standin.tokenizer import Tokenizer
from tests.support.clock import HandClock
from tests.support.embedders import Words

Json = dict[str, Any]
Option = TypeVar("Option")

LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
NOTE: Json = {"name": "take_note", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}
TOOLS = [[LOOK, SEARCH], [LOOK, NOTE, SEARCH], [SEARCH, {**LOOK, "description": "Looks twice."}]]
INSTRUCTIONS = ["", "Be brief.", "You plan journeys. Ask before you book. " * 4]
WINDOWS = [2_600, 3_600, 5_000, 5_000, 8_000, 8_000, 14_000, 60_000]
LARGER = 200_000  # everything a machine says fits in here
MODELS = ["small", "large"]
EMBEDDERS = [None, Words("one", 8), Words("two", 12)]
CORE_TOKENS = 300
ZONE = timezone(timedelta(hours=5, minutes=30))
CORE = {
    "human": BlockSpec(description='who "they" are </core>', limit_tokens=120),
    "notes": BlockSpec(value="first line\nsecond line", limit_tokens=200),
    "persona": BlockSpec(value="You are kind.", read_only=True),
}


def the_next(options: list[Option], option: Option) -> Option:
    return options[(options.index(option) + 1) % len(options)]


class Opened(RuleBasedStateMachine):
    """`counts` says whether the provider can count tokens."""

    counts: bool
    standin: type[Standin] | type[StoredForm] = Standin
    tools_known: list[list[Json]] = TOOLS

    @initialize(seed=st.integers(0, 40), window=st.sampled_from(WINDOWS))
    def begin(self, seed: int, window: int) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="laws"))
        self.seed = seed
        self.clock = HandClock(zone=ZONE, tick=timedelta())
        self.plain = Plain(core={name: spec.value for name, spec in CORE.items()})
        own = {"duplicate_ids": True, "cache_min_tokens": 0} if self.standin is Standin else {}
        self.api: Any = self.standin(limit_tokens=window, seed=seed, **own)
        self.watch = GrowthWatch()
        self.accepted: dict[str, str] = {}  # reply -> the request that it answered, as JSON
        self.stays: dict[str, list[tuple[str, str]]] = {}  # reply -> what was resident in its request
        self.moments: list[datetime] = []
        self.cached = (0, 0)  # the epoch of the last request, and how much of it the provider's cache holds
        self.sent: tuple[str, int] | None = None  # the request that waits for its reply, with its epoch
        self.told: dict[str, str] = {}  # core values that somebody else changed: they must be in view
        self.stuck = self.report_too_long = False
        self.renewed = False  # whether tools, instructions, model or limits are not what the pause began with
        self.model, self.instructions, self.tools, self.cache_ttl = (
            MODELS[0],
            INSTRUCTIONS[0],
            self.tools_known[0],
            None,
        )
        self.embedder = EMBEDDERS[0]
        self.open(window)

    def open(self, window: int) -> None:
        self.api.limit_tokens = window
        self.api.tokenizer = Tokenizer(seed=self.seed + 100 * MODELS.index(self.model))
        self.limits = Limits.for_window(window, core_tokens=CORE_TOKENS)
        self.memory = Memory.open(
            self.directory,
            core=CORE,
            limits=self.limits,
            instructions=self.instructions,
            tools=self.tools,
            model=self.model,
            cache_ttl=self.cache_ttl,
            prefetch=Prefetch(k=2, budget_tokens=80),
            embedder=self.embedder,
            clock=self.clock,
            count_tokens=self.count_tokens if self.counts else None,
            summarize=self.summarize,
        )
        while self.memory.embed_pending(1_000):
            pass
        self.witness = Witness(self.memory.page_text)

    def count_tokens(self, params: Json) -> int:
        counted = {name: value for name, value in params.items() if name != "max_tokens"}
        return self.api.count_tokens({"model": self.model, **counted})

    def summarize(self, ask: SummaryRequest) -> str:
        if len(ask.leaving) % 3:
            raise OSError("away")
        return "They <core>went on</core> and on.\n" * (len(ask.leaving) % 40)

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.memory.close()
            shutil.rmtree(self.directory)

    @rule(window=st.sampled_from(WINDOWS), model=st.sampled_from(MODELS), changes=st.integers(0, 63))
    def reopen(self, window: int, model: str, changes: int) -> None:
        """`changes` chooses what is new besides the process: window, model, instructions, tools, cache, embedder."""
        before = self.memory.turn_is_open
        self.memory.close()
        self.model = model if changes & 2 else self.model
        self.instructions = the_next(INSTRUCTIONS, self.instructions) if changes & 4 else self.instructions
        self.tools = the_next(self.tools_known, self.tools) if changes & 8 else self.tools
        if changes & 16:
            self.cache_ttl = None if self.cache_ttl else "1h"
        self.embedder = the_next(EMBEDDERS, self.embedder) if changes & 32 else self.embedder
        self.sent = None
        self.open(LARGER if self.stuck else window if changes & 1 else self.api.limit_tokens)
        self.stuck = self.report_too_long = False
        self.renewed = self.renewed or changes & 31 > 0
        self.pins_may_not_fit()
        assert self.memory.turn_is_open == before

    @rule(seconds=st.sampled_from([0.000001, 1, 3_600, 86_400, 40 * 86_400]))
    def time_passes(self, seconds: float) -> None:
        self.moments.append(self.clock.now())
        self.clock.set(self.clock.now() + timedelta(seconds=seconds))

    def pins_may_not_fit(self) -> None:
        """A pin leaves by itself only for want of room, and the ledger says so."""
        most = sum(3 * (tokens.total(piece) + 20) for piece in self.plain.pins.values())
        for page in self.plain.pins.keys() - self.pins():
            assert most > PINNED_SHARE * self.limits.usable_tokens, f"{page} had to go, and there was room"
            del self.plain.pins[page]

    def pins(self) -> set[str]:
        return {pin.page_id for pin in self.memory._store.prompt.pins()}

    def resident(self, at: str | None = None) -> list[tuple[str, str]]:
        return sorted((stay.page_id, stay.how) for stay in self.memory.history.resident(at))

    def some(self, pages: dict[str, Any]) -> list[str]:
        """The newest two, and three that change from step to step."""
        known = list(pages)
        at = len(self.plain.steps) * 7919 + len(self.plain.facts)
        return [*known[-2:], *(known[(at * (i + 1)) % len(known)] for i in range(3) if known)]

    # what must hold of every request, and after every step

    def inspect(self, request: Request, *, resent: bool) -> Prompt:
        """The request against the model: law 5, and who is in it."""
        stays = self.memory.history.resident()
        resident = [stay.page_id for stay in stays if stay.how == "step"]
        prompt = self.witness.read(request.params, [(page, self.plain.steps[page]) for page in resident])
        in_preamble = {stay.page_id for stay in stays if stay.how == "request"}
        assert set(prompt.requests) == in_preamble
        for page, blocks in prompt.requests.items():
            for original, block in zip(self.plain.steps[page].said, blocks, strict=True):
                self.witness.carries(original, block)
        wanted = self.plain.requests_of_turn()
        missing = {*wanted[:1], *wanted[1:][-4:]} - {*resident, *prompt.requests}
        assert not missing, f"{missing}, which the turn is about, is not in the prompt"
        gone = {page for page, step in self.plain.steps.items() if step.kind != "record" and not step.dropped}
        gone -= {*resident}
        for page in gone:
            number = int(page[1:])
            assert any(first <= number <= last for first, last in prompt.digest), f"{page} is not in the digest"
        if not resent and not self.plain.paused:
            self.inspect_what_was_told(prompt)
        return prompt

    def inspect_what_was_told(self, prompt: Prompt) -> None:
        assert prompt.core.keys() == self.plain.core.keys()
        for name, value in self.told.items():
            assert prompt.core[name] == armed(value), f"what was done to {name} is not in view"
        for page, piece in self.plain.pins.items():
            assert armed(piece) in (prompt.pinned.get(page), *self.held(page)), f"{page} is pinned and not in view"

    def held(self, page: str) -> Iterator[str]:
        """Yield the texts of resident results: a page may be pinned by being one."""
        for stay in self.memory.history.resident():
            if stay.how == "step":
                for result in self.plain.steps[stay.page_id].results:
                    yield armed(body_text(result))

    def least_tokens(self) -> int:
        """Count the smallest prompt: fixed parts, and of everything else the ids."""
        core = "\n".join(f"<block>{value}</block>" for value in self.plain.core.values())
        nothing = [{"role": "user", "content": [texts.text_block(f"<core>{core}</core>"), texts.text_block("x")]}]
        system = [texts.text_block(self.instructions + markup.HOW_MEMORY_WORKS)]
        params = {"model": self.model, "system": system, "tools": self.tools, "messages": nothing}
        count, bare = self.api.tokenizer.text, '<spilled page_id="x999" characters="99999"/>'
        last = self.plain.steps[self.plain.last_live()]
        pieces = [bare] * (
            len(last.results) + sum(len(self.plain.steps[p].said) for p in self.plain.requests_of_turn()[-5:])
        )
        pieces += [json.dumps(block)[:300] for block in last.said if last.kind == "assistant"]
        pieces += self.plain.pins.values()
        share = DIGEST_SHARE * self.limits.usable_tokens
        return self.api.count_tokens(params) + sum(count(piece) + 12 for piece in pieces) + int(share)

    @invariant()
    def the_laws_hold(self) -> None:
        if not hasattr(self, "memory"):
            return
        assert self.memory.check() == []
        assert [call.id for call in self.memory.open_calls] == self.plain.open_calls
        assert {block.name: block.value for block in self.memory.core()} == self.plain.core
        assert self.memory.turn_is_open == bool(self.plain.turn or self.plain.open_calls)
        for page in self.some(self.plain.steps):
            step = self.plain.steps[page]
            assert self.memory.history.blocks_of(page) == step.said + step.results
        for page in self.some(self.accepted):
            assert json.dumps(self.memory.history.rebuild(page)) == self.accepted[page]
            assert self.resident(page) == self.stays[page]
        for page in self.some(self.plain.facts):
            known, fact = self.plain.facts[page], self.memory.fact(page)
            assert (fact.text, fact.key, list(fact.tags)) == (known.text, known.key, known.tags)
            assert (fact.valid_from, fact.valid_until) == (known.start, known.end)
        assert self.pins() == self.plain.pins.keys()
