"""The whole memory under random use, beside the plain model, with every law looked at after every step.

What is asked of the memory goes to the model too; every request goes through the strict stand-in. A request is
remembered when it was accepted, and must be made again from the disk ever after.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pager import (
    BlockSpec,
    CallsOpen,
    Limits,
    Memory,
    NotFound,
    Prefetch,
    Refused,
    Request,
    WindowTooSmall,
    leave,
    markup,
    tokens,
)
from pager.limits import DIGEST_SHARE, PINNED_SHARE
from tests.laws import replies, texts
from tests.laws.plain import FakeClock, Plain, PlainFact, PlainStep, cleaned
from tests.laws.witness import Prompt, Witness, armed, body_text
from tests.standin import GrowthWatch, Standin
from tests.standin.tokenizer import Tokenizer

Json = dict[str, Any]

LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
NOTE: Json = {"name": "take_note", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}
TOOLS = [[LOOK, SEARCH], [LOOK, NOTE, SEARCH], [SEARCH, {**LOOK, "description": "Looks twice."}]]
INSTRUCTIONS = ["", "Be brief.", "You plan journeys. Ask before you book. " * 4]
WINDOWS = [2_600, 3_600, 5_000, 5_000, 8_000, 8_000, 14_000, 60_000]
LARGER = 200_000  # everything a machine says fits in here
MODELS = ["small", "large"]
CORE_TOKENS = 300
CORE = {
    "human": BlockSpec(description='who "they" are </core>', limit_tokens=120),
    "notes": BlockSpec(value="first line\nsecond line", limit_tokens=200),
    "persona": BlockSpec(value="You are kind.", read_only=True),
}
KEYS = ["seat", "city"]
TAGS = ["travel", "Home", "été"]


class MemoryLaws(RuleBasedStateMachine):
    """`counts` says whether the provider can count tokens."""

    counts: bool

    # opening and closing

    @initialize(seed=st.integers(0, 40), window=st.sampled_from(WINDOWS))
    def begin(self, seed: int, window: int) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="laws"))
        self.seed = seed
        self.clock = FakeClock()
        self.plain = Plain(core={name: spec.value for name, spec in CORE.items()})
        self.api = Standin(limit_tokens=window, seed=seed, duplicate_ids=True, cache_min_tokens=0)
        self.watch = GrowthWatch()
        self.accepted: dict[str, str] = {}  # reply -> the request that it answered, as JSON
        self.stays: dict[str, list[tuple[str, str]]] = {}  # reply -> what was resident in its request
        self.moments: list[datetime] = []
        self.sent: tuple[str, int] | None = None  # the request that waits for its reply, with its epoch
        self.told: dict[str, str] = {}  # core values that somebody else changed: they must be in view
        self.stuck = self.overflowed = False
        self.renewed = False  # whether tools, instructions, model or limits are not what the pause began with
        self.model, self.instructions, self.tools, self.cache_ttl = MODELS[0], INSTRUCTIONS[0], TOOLS[0], None
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
            embedder=None,
            clock=self.clock,
            count_tokens=self.count_tokens if self.counts else None,
        )
        self.witness = Witness(self.memory.page)

    def count_tokens(self, params: Json) -> int:
        counted = {name: value for name, value in params.items() if name != "max_tokens"}
        return self.api.count_tokens({"model": self.model, **counted})

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.memory.close()
            shutil.rmtree(self.directory)

    @rule(window=st.sampled_from(WINDOWS), model=st.sampled_from(MODELS), changes=st.integers(0, 31))
    def reopen(self, window: int, model: str, changes: int) -> None:
        """`changes` chooses what is new besides the process: window, model, instructions, tools, cache."""
        before = self.memory.turn_is_open
        self.memory.close()
        self.model = model if changes & 2 else self.model
        self.instructions = (
            INSTRUCTIONS[(INSTRUCTIONS.index(self.instructions) + 1) % 3] if changes & 4 else self.instructions
        )
        self.tools = TOOLS[(TOOLS.index(self.tools) + 1) % 3] if changes & 8 else self.tools
        self.cache_ttl = None if self.cache_ttl else "1h" if changes & 16 else None
        self.sent = None
        self.open(LARGER if self.stuck else window if changes & 1 else self.api.limit_tokens)
        self.stuck = self.overflowed = False
        self.renewed = self.renewed or changes > 0
        self.pins_may_not_fit()
        assert self.memory.turn_is_open == before

    @rule(seconds=st.sampled_from([0.000001, 1, 3_600, 86_400, 40 * 86_400]))
    def time_passes(self, seconds: float) -> None:
        self.moments.append(self.clock.now())
        self.clock.tick(seconds)

    # what people say

    @precondition(lambda self: self.plain.may_speak)
    @rule(content=texts.said, name=st.sampled_from([None, "Dana", "\ud83d"]))
    def say(self, content: str | list[Json], name: str | None) -> None:
        self.speak(content, name)

    @precondition(lambda self: self.plain.may_speak)
    @rule(content=texts.enormous)
    def say_a_megabyte(self, content: str) -> None:
        self.speak(content, None)

    def speak(self, content: str | list[Json], name: str | None) -> None:
        self.inbox_is_taken()
        page = self.memory.append_user(texts.exact(content), name=name)
        assert page == self.plain.append_user(content)
        self.sent = None

    @precondition(lambda self: not self.plain.may_speak)
    @rule(content=texts.small)
    def say_out_of_turn(self, content: str) -> None:
        before = len(self.memory.ledger())
        try:
            self.memory.append_user(content)
        except CallsOpen:
            assert len(self.memory.ledger()) == before
        else:
            raise AssertionError("a user message came between a call and its result")

    @rule(several=st.lists(texts.any_size, max_size=3))
    def record(self, several: list[str]) -> None:
        """Turns from elsewhere; one of them by itself."""
        at = self.clock.now() - timedelta(days=3)
        if len(several) == 1:
            assert self.memory.record("tool", several[0], at=at, name="Ana") == self.plain.record(several[0])
            return
        pages = self.memory.record_many({"role": "user", "text": text, "at": at} for text in several)
        assert pages == [self.plain.record(text) for text in several]

    # what others leave in the inbox

    @rule(what=st.sampled_from(["message", "core_append", "pin"]), text=texts.any_size, page=st.integers(1, 60))
    def leave_in_the_inbox(self, what: str, text: str, page: int) -> None:
        if what == "message":
            self.leave(what, {"text": text})
        elif what == "core_append":
            self.leave(what, {"block": "notes", "text": text[:100]})
        else:
            self.leave(what, {"page_id": f"s{page}"})

    def leave(self, kind: str, arguments: Json) -> None:
        leave(self.directory, kind, arguments, self.clock)
        self.plain.inbox.append((kind, cleaned(arguments)))

    def inbox_is_taken(self) -> None:
        """What waits takes effect, but for messages in the middle of a step."""
        waiting, self.plain.inbox = self.plain.inbox, []
        may_speak = self.plain.may_speak
        if waiting:
            self.memory.take_inbox()
        for kind, arguments in waiting:
            if kind == "message" and not may_speak:
                self.plain.inbox.append((kind, arguments))
            elif kind == "message":
                self.plain.append_user(arguments["text"])
                self.sent = None
            elif kind == "core_append":
                self.core_reads("notes", self.appended("notes", arguments["text"]), actor="person")
            else:
                self.is_pinned(arguments["page_id"], 0, actor="person", done=True)

    # the model's turn

    @property
    def may_ask(self) -> bool:
        tells = any(kind == "message" for kind, _ in self.plain.inbox) and self.plain.may_speak
        return not self.stuck and not self.plain.open_calls and bool(self.plain.turn or tells)

    @precondition(lambda self: self.may_ask)
    @rule(reply=replies.some("ordinary"))
    def ask(self, reply: replies.Spoken) -> None:
        self.answer(reply)

    @precondition(lambda self: self.may_ask)
    @rule(reply=replies.some("odd"))
    def ask_and_get_an_odd_reply(self, reply: replies.Spoken) -> None:
        self.answer(reply)

    @precondition(lambda self: self.plain.may_speak and not self.stuck)
    @rule(content=texts.prose(20, 250), reply=replies.some("ordinary"), times=st.integers(3, 12))
    def chat(self, content: str, reply: replies.Spoken, times: int) -> None:
        """Many turns, so that the window fills."""
        for number in range(times):
            if self.plain.may_speak and not self.stuck:
                self.speak(f"{number} {content}", None)
                self.answer(reply)
                self.give_all(f"{content} {number}")

    @precondition(lambda self: self.plain.may_speak and not self.stuck)
    @rule(content=texts.said, reply=replies.some("working"), result=texts.results, times=st.integers(3, 12))
    def work(self, content: Any, reply: replies.Spoken, result: Any, times: int) -> None:
        """One long turn, in which the agent calls its tools again and again."""
        self.speak(content, None)
        for _ in range(times):
            if self.may_ask:
                self.answer(reply)
                self.give_all(result)

    @precondition(lambda self: self.plain.may_speak and not self.stuck)
    @rule(content=texts.said, several=st.lists(replies.some("working", "odd", "ordinary"), min_size=1, max_size=6),
          result=texts.results)  # fmt: skip
    def turn(self, content: Any, several: list[replies.Spoken], result: Any) -> None:
        """A turn of replies of every kind, until one ends it."""
        self.speak(content, None)
        for reply in several:
            if self.may_ask:
                self.answer(reply)
                self.give_all(result)

    @precondition(lambda self: self.may_ask)
    @rule(said=st.sampled_from(["", "too long", "tokens"]))
    def ask_in_vain(self, said: str) -> None:
        """The provider does not answer: the connection broke, or the prompt is too long."""
        request = self.request()
        if request is None or not said:
            return
        true = self.count_tokens(request.params)
        if true < 0.7 * self.api.limit_tokens:
            return  # nobody would say so
        self.memory.overflowed(f"prompt is too long: {true} tokens > {true - 1} maximum" if said == "tokens" else said)
        self.sent, self.overflowed = None, True

    @precondition(lambda self: self.may_ask)
    @rule(text=texts.small)
    def answer_too_late(self, text: str) -> None:
        """A reply to a request that a message has overtaken belongs nowhere."""
        if self.request() is None or not self.plain.may_speak:
            return
        self.speak(text, None)
        before = len(self.memory.ledger())
        try:
            self.memory.append_assistant("Late.")
        except Refused:
            assert len(self.memory.ledger()) == before
        else:
            raise AssertionError("a reply answers what the model has not seen")

    def request(self) -> Request | None:
        """A request that is what the laws say, or None when nothing could be made small enough."""
        self.inbox_is_taken()
        try:
            request = self.memory.request()
        except WindowTooSmall as error:
            note(str(error))
            self.stuck = True
            least = self.least_tokens()
            share = (0.85 if self.counts else 0.4) / (1.5 if self.overflowed else 1)
            assert least > share * self.limits.usable_tokens, f"{error}\n{least} tokens would do"
            return None
        self.renewed, self.overflowed = self.renewed or self.overflowed, False
        now = json.dumps(request.params), request.epoch
        if self.sent is not None and self.sent[1] == request.epoch:
            assert self.sent == now, "the same request was made differently"
        self.pause_may_be_over()
        self.inspect(request, resent=self.sent is not None and self.sent[1] == request.epoch)
        self.sent = now
        return request

    def pause_may_be_over(self) -> None:
        """A paused reply that cannot go back as it came has left the prompt."""
        last = self.plain.last_live()
        if not self.plain.paused or (last, "step") in self.resident():
            return
        usage = self.api.replies[-1]["usage"]
        size = sum(usage[name] for name in usage if name.endswith("_tokens"))
        assert self.renewed or size > 0.8 * self.limits.usable_tokens, f"{last} could have gone on"
        self.plain.abandon_pause()

    def answer(self, reply: replies.Spoken) -> None:
        request = self.request()
        if request is None:
            return
        assert request.step == len(self.plain.steps) + 1
        resident = self.resident()
        self.watch.see(request.params, request.epoch)
        waits = None
        if self.plain.paused:
            waits = self.plain.steps[self.plain.last_live()].said[-1]["id"]
        answer = self.api.create({"model": self.model, **request.params}, reply.reply(waits))
        page = self.memory.append_assistant(answer)
        assert page == self.plain.append_reply(answer["content"], answer["stop_reason"])
        self.accepted[page], self.stays[page] = json.dumps(request.params), resident
        self.sent, self.renewed = None, False
        step = self.plain.steps[page]
        blocks = self.memory.blocks_of(page)
        if not step.dropped:
            step.results = blocks[len(step.said) :]  # a call that was cut has been answered already
            self.plain.open_calls = [call.id for call in self.memory.open_calls]
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            assert len(calls) == len(self.plain.open_calls) + len(step.results)
            assert len(step.results) == (self.plain.cuts > 0)
        if step.dropped:
            self.watch.forget_tail()
        if self.plain.turn == 0 and not self.plain.paused:
            self.plain.cuts = 0

    @precondition(lambda self: self.plain.open_calls)
    @rule(data=st.data(), content=texts.results, is_error=st.booleans(), began=st.booleans())
    def give_a_result(self, data: st.DataObject, content: Any, is_error: bool, began: bool) -> None:
        call = data.draw(st.sampled_from(self.plain.open_calls))
        if began:
            self.memory.begin_call(call)
        self.result(call, content, is_error=is_error)

    @precondition(lambda self: self.plain.open_calls)
    @rule(content=texts.results, backwards=st.booleans())
    def give_all_results(self, content: Any, backwards: bool) -> None:
        self.give_all(content, backwards=backwards)

    def give_all(self, content: Any, *, backwards: bool = False) -> None:
        for call in sorted(self.plain.open_calls, reverse=backwards):
            self.result(call, content)

    def result(self, call: str, content: Any, *, is_error: bool = False, memory_tool: bool = False) -> None:
        self.memory.append_result(call, texts.exact(content), is_error=is_error, memory_tool=memory_tool)
        block: Json = {"type": "tool_result", "tool_use_id": call}
        if content:
            block["content"] = cleaned([texts.text_block(content)] if isinstance(content, str) else content)
        if is_error:
            block["is_error"] = True
        self.plain.steps[self.plain.last_live()].results.append(block)
        self.plain.open_calls.remove(call)
        self.sent = None

    @precondition(lambda self: self.plain.open_calls)
    @rule(text=texts.small)
    def the_agent_notes_something(self, text: str) -> None:
        """A memory tool: its effect and its result are one."""
        call = self.plain.open_calls[0]
        value = self.appended("notes", text)
        try:
            with self.memory.transaction():
                block = self.memory.core_append("notes", text, actor="agent")
                self.memory.append_result(call, block.value, memory_tool=True)
        except Refused as error:
            assert not self.core_reads("notes", value, actor="agent")
            self.result(call, str(error), is_error=True, memory_tool=True)
            return
        assert self.core_reads("notes", value, actor="agent")
        self.plain.open_calls.remove(call)
        result: Json = {"type": "tool_result", "tool_use_id": call, "content": [texts.text_block(str(value))]}
        self.plain.steps[self.plain.last_live()].results.append(result)
        self.sent = None

    @precondition(lambda self: self.plain.open_calls)
    @rule(data=st.data(), pin=st.booleans())
    def the_agent_pages_in(self, data: st.DataObject, pin: bool) -> None:
        page = data.draw(self.any_page())
        call = self.plain.open_calls[0]
        try:
            with self.memory.transaction():
                piece = self.memory.page_in(page, pin=pin, actor="agent")
                self.memory.append_result(call, piece.text, memory_tool=True)
        except Refused as error:
            self.result(call, str(error), is_error=True, memory_tool=True)
            return
        if pin:
            self.plain.pins[page] = piece.text
        self.plain.open_calls.remove(call)
        content = [texts.text_block(piece.text)] if piece.text else []
        result: Json = {"type": "tool_result", "tool_use_id": call, **({"content": content} if content else {})}
        self.plain.steps[self.plain.last_live()].results.append(result)
        self.sent = None

    # core

    def appended(self, block: str, text: str) -> str | None:
        """What a block reads with a line more; None when there is nothing to append."""
        value = self.plain.core[block]
        if not text.strip():
            return None
        return f"{value}\n{cleaned(text)}" if value else cleaned(text)

    def core_reads(self, block: str, value: str | None, *, actor: str) -> bool:
        """Whether the model lets a block become `value`; then it is."""
        if value is None:
            return False
        others = sum(tokens.total(text) for name, text in self.plain.core.items() if name != block)
        used = tokens.total(value)
        if CORE[block].read_only or used > CORE[block].limit_tokens or others + used > CORE_TOKENS:
            return False
        if value != self.plain.core[block]:
            self.plain.core[block] = value
            if actor == "agent":
                self.told.pop(block, None)
            else:
                self.told[block] = value
        return True

    @rule(block=st.sampled_from([*CORE, "nothing"]), text=texts.small)
    def core_append(self, block: str, text: str) -> None:
        try:
            found = self.memory.core_append(block, text)
        except Refused as error:
            assert str(error)
            assert block not in CORE or not self.core_reads(block, self.appended(block, text), actor="person")
        else:
            assert self.core_reads(block, self.appended(block, text), actor="person")
            assert found.value == self.plain.core[block]

    @rule(block=st.sampled_from(["human", "notes", "persona"]), data=st.data(), new=st.one_of(st.just(""), texts.small))
    def core_replace(self, block: str, data: st.DataObject, new: str) -> None:
        value = self.plain.core[block]
        lines = [line for line in value.split("\n") if line]
        old = data.draw(st.sampled_from([*lines, "not there", "", "e"]))
        unique = bool(old) and len(re.findall(f"(?={re.escape(old)})", value)) == 1
        try:
            found = self.memory.core_replace(block, old, new)
        except Refused:
            expected = value.replace(old, cleaned(new)) if unique else ""
            assert not unique or not self.core_reads(block, expected, actor="person")
        else:
            assert unique
            assert found.value == value.replace(old, cleaned(new)) or not new
            assert found.value.replace("\n", "") == value.replace(old, cleaned(new)).replace("\n", "")
            assert self.core_reads(block, found.value, actor="person")

    # archive

    @rule(text=texts.small, key=st.sampled_from([None, None, *KEYS]), tags=st.lists(st.sampled_from(TAGS), max_size=2),
          days=st.sampled_from([None, None, -400, -40, -1, 1]))  # fmt: skip
    def archive(self, text: str, key: str | None, tags: list[str], days: int | None) -> None:
        text = f"fact{len(self.plain.facts)}word {text}"
        start = self.clock.now() + timedelta(days=days) if days else None
        fact = self.memory.archive(text, key=key, tags=tags, valid_from=start)
        current = [page for page, known in self.plain.facts.items() if known.key == key and key and not known.over]
        beginning = start or self.clock.now()
        self.plain.facts.archive(fact.id, PlainFact(cleaned(text), key, tags, beginning, start is not None))
        self.pins_follow(current, fact.id)

    def pins_follow(self, before: list[str], new: str | None) -> None:
        """A pinned fact that is over hands its pin on to the one that supersedes it."""
        for page in before:
            if not self.plain.facts[page].over or self.plain.pins.pop(page, None) is None or new is None:
                continue
            # What is pinned of it reads the same when it is read without a pin.
            self.plain.pins[new] = self.memory.page_in(new).text
            self.pins_may_not_fit()

    def pins_may_not_fit(self) -> None:
        """A pin leaves by itself only for want of room, and the ledger says so."""
        for page in self.plain.pins.keys() - self.pins():
            most = sum(3 * (tokens.total(piece) + 20) for piece in self.plain.pins.values())
            assert most > PINNED_SHARE * self.limits.usable_tokens, f"{page} had to go, and there was room"
            del self.plain.pins[page]

    @precondition(lambda self: self.plain.facts)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.plain.facts)))
        try:
            self.memory.forget(page, "no longer so")
        except Refused:
            assert self.memory.fact(page).forgotten is not None
        else:
            self.plain.facts.forget(page, self.clock.now())
            self.pins_follow([page], None)

    @rule(block=st.sampled_from(["notes", "human"]), data=st.data(), key=st.sampled_from([None, *KEYS]))
    def move_out(self, block: str, data: st.DataObject, key: str | None) -> None:
        value = self.plain.core[block]
        lines = [
            line for line in value.split("\n") if line.strip() and len(re.findall(f"(?={re.escape(line)})", value)) == 1
        ]
        if not lines:
            return
        line = data.draw(st.sampled_from(lines))
        current = [page for page, known in self.plain.facts.items() if known.key == key and key and not known.over]
        fact = self.memory.move_out(block, line, key=key)
        self.plain.facts.archive(fact.id, PlainFact(line, key, [], self.clock.now(), stated=False))
        self.pins_follow(current, fact.id)
        held = next(each.value for each in self.memory.core() if each.name == block)
        assert held.replace("\n", "") == value.replace(line, "").replace("\n", "")
        self.core_reads(block, held, actor="person")

    @precondition(lambda self: self.plain.facts)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """Every fact is found then and only then when it is true, by the word that no other has."""
        moment = data.draw(st.sampled_from([self.clock.now(), *self.moments]))
        true = self.plain.facts.true_at(moment)
        for page in data.draw(st.lists(st.sampled_from(sorted(self.plain.facts)), max_size=6, unique=True)):
            fact = self.plain.facts[page]
            hits = self.memory.search_archive(fact.text.split(" ")[0], as_of=moment, limit=3)
            found = page in {hit.page_id for hit in hits}
            if fact.text.startswith("fact"):
                assert found == (page in true), f"{page} at {moment}: {fact}"

    # pages

    def any_page(self) -> st.SearchStrategy[str]:
        spilled = [f"x{number}" for number in range(1, 30)]
        known = [*self.plain.steps, *self.plain.facts, *spilled, "s999", "f999", "nonsense"]
        return st.sampled_from(known)

    @rule(data=st.data(), pin=st.booleans(), offset=st.sampled_from([0, 0, 0, 1, 10**9]))
    def page_in(self, data: st.DataObject, pin: bool, offset: int) -> None:
        page = data.draw(self.any_page())
        self.is_pinned(page, offset, actor="person", pin=pin)

    def is_pinned(self, page: str, offset: int, *, actor: str, pin: bool = True, done: bool = False) -> None:
        """Page in, and remember what is pinned; `done` when the inbox has done it."""
        if done:
            # What the inbox pinned reads the same when it is read without a pin.
            if page not in self.pins():
                return
            self.plain.pins[page] = self.memory.page_in(page).text
            return
        try:
            piece = self.memory.page_in(page, pin=pin, offset=offset, actor=actor)
        except Refused as error:
            assert str(error)
            return
        if pin:
            self.plain.pins[page] = piece.text

    @precondition(lambda self: self.plain.pins)
    @rule(data=st.data())
    def page_out(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.plain.pins)))
        self.memory.page_out(page)
        del self.plain.pins[page]
        try:
            self.memory.page_out(page)
        except NotFound:
            return
        raise AssertionError(f"{page} was paged out twice")

    @precondition(lambda self: self.plain.steps)
    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        """From offset to offset a page is read whole, and no piece is larger than a part may be."""
        page = data.draw(st.sampled_from([*self.plain.steps, *self.plain.facts]))
        whole, offset, pieces = self.memory.page(page), 0, list[str]()
        while len(pieces) < 20:
            piece = self.memory.page_in(page, offset=offset)
            pieces.append(piece.text)
            assert piece.offset == offset
            assert piece.length == len(whole)
            if piece.next_offset is None:
                break
            assert piece.next_offset > offset
            offset = piece.next_offset
        assert whole.startswith("".join(pieces))
        assert len(pieces) == 20 or whole == "".join(pieces)

    @precondition(lambda self: self.accepted)
    @rule()
    def read_along(self) -> None:
        """Another process reads what this one has committed."""
        with Memory.read(self.directory, clock=self.clock) as reader:
            newest = next(reversed(self.accepted))
            assert json.dumps(reader.rebuild(newest)) == self.accepted[newest]
            for page in self.some(self.plain.steps):
                assert reader.page(page) == self.memory.page(page)

    @precondition(lambda self: self.plain.steps)
    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        """A step is found by a word that was said in it, also when it has left the prompt."""
        page = data.draw(st.sampled_from(sorted(self.plain.steps)))
        step = self.plain.steps[page]
        words = [word for block in step.said if block["type"] == "text" for word in block["text"].split()]
        for word in [word for word in words if word.isascii() and word.isalpha()][:1]:
            hits = self.memory.search_recall(word, limit=100_000)
            assert page in {hit.page_id for hit in hits}

    # what must hold

    def inspect(self, request: Request, *, resent: bool) -> Prompt:
        """The request against the model: law 5, and who is in it."""
        stays = self.memory.resident()
        resident = [stay.page_id for stay in stays if stay.how == "step"]
        prompt = self.witness.read(request.params, [(page, self.plain.steps[page]) for page in resident])
        in_preamble = {stay.page_id for stay in stays if stay.how == "request"}
        assert set(prompt.requests) == in_preamble
        for page, blocks in prompt.requests.items():
            for original, block in zip(self.plain.steps[page].said, blocks, strict=True):
                self.witness.carries(original, block, prompt)
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
        """What stands in results: a page that the agent has pinned by itself."""
        for stay in self.memory.resident():
            if stay.how == "step":
                for result in self.plain.steps[stay.page_id].results:
                    yield armed(body_text(result))

    def least_tokens(self) -> int:
        """What the smallest prompt would have: fixed parts, and of everything else the ids."""
        nothing = [{"role": "user", "content": [texts.text_block("x")]}]
        core = "\n".join(f"<block>{value}</block>" for value in self.plain.core.values())
        system = [
            texts.text_block(self.instructions + markup.HOW_MEMORY_WORKS),
            texts.text_block(f"<core>{core}</core>"),
        ]
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

    def pins(self) -> set[str]:
        return {pin.page_id for pin in self.memory._store.prompt.pins()}

    def resident(self, at: str | None = None) -> list[tuple[str, str]]:
        return sorted((stay.page_id, stay.how) for stay in self.memory.resident(at))

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
            assert self.memory.blocks_of(page) == step.said + step.results
        for page in self.some(self.accepted):
            assert json.dumps(self.memory.rebuild(page)) == self.accepted[page]
            assert self.resident(page) == self.stays[page]
        for page in self.some(self.plain.facts):
            known, fact = self.plain.facts[page], self.memory.fact(page)
            assert (fact.text, fact.key, list(fact.tags)) == (known.text, known.key, known.tags)
            assert (fact.valid_from, fact.valid_until) == (known.start, known.end)
        assert self.pins() == self.plain.pins.keys()

    def some(self, pages: dict[str, Any]) -> list[str]:
        """The newest two, and three that change from step to step."""
        known = list(pages)
        at = len(self.plain.steps) * 7919 + len(self.plain.facts)
        return [*known[-2:], *(known[(at * (i + 1)) % len(known)] for i in range(3) if known)]


__all__ = ["MemoryLaws", "PlainStep"]
