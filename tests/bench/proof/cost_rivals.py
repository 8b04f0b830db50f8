"""Other ways to fill a window, each with the cache marks that suit it best. All know the exact size of a prompt.

- everything: whatever was said stays, until the provider refuses.
- slide: when the window is full the oldest turns leave, as few as will do. Every request then begins differently, so
  nothing but tools and instructions can be read from the cache; `marks_while_sliding` says whether messages are marked
  all the same (which costs a quarter more, and is read again within a turn of two requests).
- re-render: core stands in the system prompt as it is now, so an edit changes the prompt before all messages. Old turns
  leave in one move, from the same share of the window to the same share as ours. Unmarked, only tools and system have
  cache marks, so messages are paid in full at every request.

What is the same for all: tools, instructions, how core reads, the words, the model, the room for a reply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.bench.proof import cost_talk

Json = dict[str, Any]
MARK = {"type": "ephemeral"}
Count = Callable[[Json], int]


@dataclass(frozen=True, slots=True)
class Frame:
    """What every request has, as ours has it."""

    tools: list[Json]
    instructions: Json
    core: Json
    max_tokens: int
    usable_tokens: int


@dataclass
class Rival:
    """A policy's conversation. `turns` are what is still in its prompt."""

    frame: Frame
    core: Json
    turns: list[list[Json]] = field(default_factory=list)
    sliding: bool = False

    @classmethod
    def begin(cls, frame: Frame) -> Rival:
        return cls(frame, frame.core)

    # what happens

    def says(self, message: Json) -> None:
        """A message of the present turn; a user's words open one."""
        opens = message["role"] == "user" and message["content"][0]["type"] == "text"
        if opens:
            self.turns.append([])
        self.turns[-1].append(message)

    def edited(self, core: Json) -> None:
        """Core reads differently now."""

    def make_room(self, count: Count) -> None:
        """Before a request: let leave what must."""

    # the request

    def params(self) -> Json:
        system = [_marked(self.frame.instructions), _marked(self.core)]
        messages = [message for turn in self.turns for message in turn]
        if self.marks_messages():
            places = [index for index, message in enumerate(messages) if message["role"] == "user"][-2:]
            messages = [_marked_message(each) if index in places else each for index, each in enumerate(messages)]
        return {
            "max_tokens": self.frame.max_tokens, "tools": self.frame.tools, "system": system, "messages": messages,
        }  # fmt: skip

    def marks_messages(self) -> bool:
        return True


class Everything(Rival):
    pass


class Slide(Rival):
    """It learns of edits when it slides: what came before is lost to the cache anyway, and before it stands in the
    messages."""

    marks_while_sliding = True
    _latest: Json | None = None

    def edited(self, core: Json) -> None:
        self._latest = core

    def make_room(self, count: Count) -> None:
        while count(self.params()) > self.frame.usable_tokens and len(self.turns) > 1:
            del self.turns[0]
            self.sliding = True
            self.core = self._latest or self.core

    def marks_messages(self) -> bool:
        return self.marks_while_sliding or not self.sliding


class SlideUnmarked(Slide):
    marks_while_sliding = False


class ReRender(Rival):
    evict_at, evict_to = 0.85, 0.50
    marked = True

    def marks_messages(self) -> bool:
        return self.marked

    def edited(self, core: Json) -> None:
        self.core = core

    def make_room(self, count: Count) -> None:
        if count(self.params()) <= self.evict_at * self.frame.usable_tokens:
            return
        while len(self.turns) > 1 and count(self.params()) > self.evict_to * self.frame.usable_tokens:
            del self.turns[0]


class ReRenderUnmarked(ReRender):
    marked = False


RIVALS: dict[str, type[Rival]] = {
    "everything, until it overflows": Everything,
    "slide by a turn, messages marked": Slide,
    "slide by a turn, messages unmarked": SlideUnmarked,
    "re-render core on each edit, messages marked": ReRender,
    "re-render core on each edit, messages unmarked": ReRenderUnmarked,
}


def core_text(frame: Frame, number: int) -> Json:
    """The core block after the edit of turn `number`."""
    before, now = cost_talk.state(0), cost_talk.state(number)
    return {**frame.core, "text": frame.core["text"].replace(before, now)}


def _marked(block: Json) -> Json:
    return {**block, "cache_control": MARK}


def _marked_message(message: Json) -> Json:
    return {**message, "content": [*message["content"][:-1], _marked(message["content"][-1])]}
