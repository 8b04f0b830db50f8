"""Rules for what people and other processes say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from pager import OpenCallsError, send_command
from tests.laws import texts
from tests.laws.plain import cleaned
from tests.laws.tiers import Tiers

Json = dict[str, Any]


class People(Tiers):
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
