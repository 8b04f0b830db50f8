"""The memory as dicts and lists: what every call should have done, said without a database, a budget or a prompt."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]
THINKING = ("thinking", "redacted_thinking")
WINDOW_END = "model_context_window_exceeded"
CUT_STOPS = ("max_tokens", WINDOW_END)


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The same JSON value, each text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): with_texts(each, change) for key, each in value.items()}
    return [with_texts(each, change) for each in value] if isinstance(value, list | tuple) else value


def cleaned(value: Any) -> Any:
    """As it can be written in UTF-8: lone surrogates become U+FFFD."""
    return with_texts(value, lambda text: re.sub("[\ud800-\udfff]", "\ufffd", text))


def as_blocks(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": cleaned(content)}] if isinstance(content, str) else cleaned(content)


def blank(block: Json) -> bool:
    return block["type"] == "text" and not block["text"].strip()


@dataclass
class PlainStep:
    """A step: what was said in it, block by block, and for a reply what became of it."""

    kind: str
    turn: int
    said: list[Json]
    results: list[Json] = field(default_factory=list)
    stop: str = ""
    dropped: bool = False


@dataclass
class PlainFact:
    text: str
    key: str | None
    tags: list[str]
    start: datetime
    stated: bool
    end: datetime | None = None
    forgotten: bool = False
    superseded: bool = False

    @property
    def over(self) -> bool:
        return self.forgotten or self.superseded

    def true_at(self, moment: datetime) -> bool:
        return self.start <= moment and (self.end is None or moment < self.end)


class PlainFacts(dict[str, PlainFact]):
    """Facts by id. Of one key at most one is true at any moment: a newer one gives way only to a stated beginning."""

    def archive(self, page: str, fact: PlainFact) -> None:
        if fact.key is not None:
            others = [other for other in self.values() if other.key == fact.key and other.start != other.end]
            holding = [other for other in others if other.stated and not other.forgotten]
            fact.end = min((other.start for other in holding if other.start > fact.start), default=None)
            for other in others:
                if fact.true_at(max(other.start, fact.start)) and (other.end is None or other.end > fact.start):
                    other.end = max(other.start, fact.start)
                    other.superseded = True
            fact.superseded = fact.end is not None
        self[page] = fact

    def forget(self, page: str, now: datetime) -> None:
        fact = self[page]
        fact.forgotten = True
        fact.end = max(fact.start, min(now, fact.end or now))

    def true_at(self, moment: datetime) -> set[str]:
        return {page for page, fact in self.items() if fact.true_at(moment)}


def cannot_go_back(blocks: list[Json]) -> bool:
    """Return True if a paused reply may not end a request as it came."""
    spoken = [block for block in blocks if block["type"] not in THINKING]
    last = blocks[-1]
    loose = last["type"] in THINKING or (last["type"] == "text" and last["text"] != last["text"].rstrip())
    return not spoken or any(map(blank, blocks)) or loose


@dataclass
class Plain:
    steps: dict[str, PlainStep] = field(default_factory=dict)
    facts: PlainFacts = field(default_factory=PlainFacts)
    core: dict[str, str] = field(default_factory=dict)
    pins: dict[str, str] = field(default_factory=dict)  # page -> the piece that is pinned
    inbox: list[tuple[str, Json]] = field(default_factory=list)
    open_calls: list[str] = field(default_factory=list)
    turn: int = 0  # the open turn; 0 when the last one is answered
    paused: bool = False
    cuts: int = 0  # replies in a row that were cut in a call

    @property
    def next_step(self) -> str:
        return f"s{len(self.steps) + 1}"

    @property
    def may_speak(self) -> bool:
        return not self.open_calls and not self.paused

    def requests_of_turn(self) -> list[str]:
        return [page for page, step in self.steps.items() if step.kind == "user" and step.turn == self.turn]

    def last_live(self) -> str:
        return next((page for page, step in reversed(self.steps.items()) if step.kind != "record"), "")

    def append_user(self, content: str | list[Json]) -> str:
        page = self.next_step
        if not self.turn:
            self.turn = len(self.steps) + 1
        self.steps[page] = PlainStep("user", self.turn, as_blocks(content))
        self.cuts = 0
        return page

    def record(self, text: str) -> str:
        page = self.next_step
        self.steps[page] = PlainStep("record", 0, as_blocks(text))
        return page

    def append_reply(self, blocks: list[Json], stop: str) -> str:
        """A reply whose calls are not known by their ids yet: `open_calls` is the caller's to fill."""
        page = self.next_step
        step = PlainStep("assistant", self.turn, cleaned(blocks), stop=stop)
        thought = any(block["type"] in THINKING for block in blocks)
        carried = [block for block in blocks if not blank(block) and block["type"] not in THINKING]
        calls = [block for block in blocks if block["type"] == "tool_use"]
        empty = not carried and not thought
        cut_off = stop == WINDOW_END and not calls and not empty and self.cuts < 2
        odd = stop == "pause_turn" and not empty and cannot_go_back(blocks)
        again = cut_off or (odd and self.cuts < 2)
        step.dropped = stop == "refusal" or empty or cut_off or odd
        if stop == "refusal":
            for other in self.steps.values():
                other.dropped = other.dropped or (other.turn == self.turn and other.kind != "record")
        elif step.dropped:
            self.abandon_pause()
        self.steps[page] = step
        calls = [] if step.dropped else calls
        cut = stop in CUT_STOPS and bool(calls) and blocks[-1]["type"] == "tool_use"
        self.cuts = self.cuts + 1 if stop in (*CUT_STOPS, "pause_turn") else 0
        self.paused = stop == "pause_turn" and not step.dropped
        if not again and (step.dropped or (cut and self.cuts >= 3) or not (calls or self.paused)):
            self.turn = 0
        return page

    def abandon_pause(self) -> None:
        for step in reversed(self.steps.values()):
            if step.kind == "record":
                continue
            if step.stop != "pause_turn":
                break
            step.dropped = True
        self.paused = False
