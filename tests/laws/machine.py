"""The whole memory under random use, beside the plain model, with every law looked at after every step.

What is asked of the memory goes to the model too; every request goes through the strict stand-in. A request is
remembered when it was accepted, and must be made again from the disk ever after.
"""

import json
from datetime import timedelta
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from pager import OpenCallsError, RejectedError, Request, WindowTooSmallError, send_command
from tests.laws import replies, texts
from tests.laws.plain import CUT_STOPS, cleaned
from tests.laws.tiers import Tiers

Json = dict[str, Any]


turns = st.one_of(
    st.builds(lambda reply, times: [reply] * times, replies.some("working"), st.integers(3, 12)),
    st.lists(replies.some("working", "odd", "ordinary"), min_size=1, max_size=6),
)


class MemoryLaws(Tiers):
    """Rules for what people and other processes say, and for the model's turn, on top of those for the tiers."""

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
        except OpenCallsError:
            assert len(self.memory.ledger()) == before
        else:
            raise AssertionError("a user message came between a call and its result")

    @rule(several=st.lists(texts.any_size, max_size=3))
    def record(self, several: list[str]) -> None:
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
            self.send_command(what, {"text": text})
        elif what == "core_append":
            self.send_command(what, {"block": "notes", "text": text[:100]})
        else:
            self.send_command(what, {"page_id": f"s{page}"})

    def send_command(self, kind: str, arguments: Json) -> None:
        send_command(self.directory, kind, arguments, self.clock)
        self.plain.inbox.append((kind, cleaned(arguments)))

    def inbox_is_taken(self) -> None:
        """Apply the pending commands, but for messages in the middle of a step."""
        waiting, self.plain.inbox = self.plain.inbox, []
        may_speak = self.plain.may_speak
        if waiting:
            self.memory.process_inbox()
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
    @rule(reply=replies.some("ordinary", "odd"))
    def ask(self, reply: replies.Spoken) -> None:
        self.answer(reply)

    @precondition(lambda self: self.plain.may_speak and not self.stuck)
    @rule(content=texts.prose(20, 250), reply=replies.some("ordinary"), times=st.integers(3, 12))
    def chat(self, content: str, reply: replies.Spoken, times: int) -> None:
        for number in range(times):
            if self.plain.may_speak and not self.stuck:
                self.speak(f"{number} {content}", None)
                self.answer(reply)
                self.give_all(f"{content} {number}")

    @precondition(lambda self: self.plain.may_speak and not self.stuck)
    @rule(content=texts.said, several=turns, result=texts.results)
    def turn(self, content: Any, several: list[replies.Spoken], result: Any) -> None:
        """One turn: the agent calls its tools again and again, or replies in every way, until a reply ends it."""
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
        self.memory.report_too_long(
            f"prompt is too long: {true} tokens > {true - 1} maximum" if said == "tokens" else said
        )
        self.sent, self.report_too_long = None, True

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
        except RejectedError:
            assert len(self.memory.ledger()) == before
        else:
            raise AssertionError("a reply answers what the model has not seen")

    def request(self) -> Request | None:
        """A request that is what the laws say, or None when nothing could be made small enough."""
        self.inbox_is_taken()
        try:
            request = self.memory.request()
        except WindowTooSmallError as error:
            note(str(error))
            self.stuck = True
            least = self.least_tokens()
            share = (0.85 if self.counts else 0.4) / (1.5 if self.report_too_long else 1)
            assert least > share * self.limits.usable_tokens, f"{error}\n{least} tokens would do"
            return None
        self.renewed, self.report_too_long = self.renewed or self.report_too_long, False
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
        resident = self.resident()
        self.watch.see(request.params, request.epoch)
        waits = None
        if self.plain.paused:
            waits = self.plain.steps[self.plain.last_live()].said[-1]["id"]
        answer = self.api.create({"model": self.model, **request.params}, reply.reply(waits))
        self.is_cached(answer["usage"], request)
        page = self.memory.append_assistant(answer)
        assert page == self.plain.append_reply(answer["content"], answer["stop_reason"])
        self.accepted[page], self.stays[page] = json.dumps(request.params), resident
        self.sent, self.renewed = None, False
        step = self.plain.steps[page]
        blocks = self.memory.history.blocks_of(page)
        if not step.dropped:
            step.results = blocks[len(step.said) :]  # a call that was cut has been answered already
            self.plain.open_calls = [call.id for call in self.memory.open_calls]
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            assert len(calls) == len(self.plain.open_calls) + len(step.results)
            cut = answer["stop_reason"] in CUT_STOPS and answer["content"][-1]["type"] == "tool_use"
            assert len(step.results) == cut
        if step.dropped:
            self.watch.forget_tail()
            self.cached = (0, 0)
        if self.plain.turn == 0 and not self.plain.paused:
            self.plain.cuts = 0

    def is_cached(self, usage: Json, request: Request) -> None:
        """All of the request before is read from the cache, as long as the epoch lives."""
        read, wrote = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        epoch, size = self.cached
        assert epoch != request.epoch or read >= size, f"{read} tokens were read from the cache, and {size} are there"
        # With tools of the provider, usage is the sum of several passes, each of which reads from the cache.
        self.cached = request.epoch, 0 if "server_tool_use" in usage else read + wrote

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
        self.is_answered(call, content, is_error=is_error)

    def is_answered(self, call: str, content: Any, *, is_error: bool = False) -> None:
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
        except RejectedError as error:
            assert not self.core_reads("notes", value, actor="agent")
            self.result(call, str(error), is_error=True, memory_tool=True)
            return
        assert self.core_reads("notes", value, actor="agent")
        self.is_answered(call, str(value))

    @precondition(lambda self: self.plain.open_calls)
    @rule(data=st.data(), pin=st.booleans())
    def the_agent_pages_in(self, data: st.DataObject, pin: bool) -> None:
        page = data.draw(self.any_page())
        call = self.plain.open_calls[0]
        try:
            with self.memory.transaction():
                piece = self.memory.page_in(page, pin=pin, actor="agent")
                self.memory.append_result(call, piece.text, memory_tool=True)
        except RejectedError as error:
            self.result(call, str(error), is_error=True, memory_tool=True)
            return
        if pin:
            self.plain.pins[page] = piece.text
        self.is_answered(call, piece.text)
