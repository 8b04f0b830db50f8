"""Other ways to fill a window, each with the cache marks that suit it best. All know the exact size of a prompt.

- everything: whatever was said stays, until the provider refuses.
- slide: when the window is full the oldest turns leave, as few as will do. Every request then begins differently, so
  nothing but tools and instructions can be read from the cache. Marked, messages are marked all the same (which costs a
  quarter more, and is read again within a turn of two requests).
- re-render: core stands in the system prompt as it is now, so an edit changes the prompt before all messages. Old turns
  leave in one move, from the same share of the window to the same share as ours. Unmarked, only tools and system have
  cache marks, so messages are paid in full at every request.

What is the same for all: tools, instructions, how core reads, the words, the model, the room for a reply.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pager.types import Json
from tests.bench.proof import cost_talk

EVICT_AT, EVICT_TO = 0.85, 0.50
Count = Callable[[Json], int]


@dataclass(frozen=True, slots=True)
class Frame:
    """What every request has, as ours has it."""

    tools: list[Json]
    instructions: Json
    core: Json
    max_tokens: int
    usable_tokens: int

    def core_after(self, number: int) -> Json:
        """The core block after the edit of turn `number`."""
        before, now = cost_talk.state(0), cost_talk.state(number)
        return {**self.core, "text": self.core["text"].replace(before, now)}


class Everything:
    """A policy's conversation. `turns` are what is still in its prompt."""

    def __init__(self, frame: Frame, *, is_marked: bool = True) -> None:
        self.frame, self.core = frame, frame.core
        self.marks_messages = self._is_marked = is_marked
        self.turns: list[list[Json]] = []

    def says(self, message: Json) -> None:
        """Add a message to the present turn; a user's words open one."""
        if message["role"] == "user" and message["content"][0]["type"] == "text":
            self.turns.append([])
        self.turns[-1].append(message)

    def edited(self, core: Json) -> None:
        """Core reads differently now."""

    def make_room(self, count: Count) -> None:
        """Before a request: let leave what must."""

    def params(self) -> Json:
        system = [_marked(self.frame.instructions), _marked(self.core)]
        messages = [message for turn in self.turns for message in turn]
        if self.marks_messages:
            for index in [index for index, message in enumerate(messages) if message["role"] == "user"][-2:]:
                *others, last = messages[index]["content"]
                messages[index] = {**messages[index], "content": [*others, _marked(last)]}
        return {
            "max_tokens": self.frame.max_tokens,
            "tools": self.frame.tools,
            "system": system,
            "messages": messages,
        }


class Slide(Everything):
    """Learns of edits when it slides: what came before is lost to the cache anyway, and before it stands in the
    messages."""

    def __init__(self, frame: Frame, *, is_marked: bool = True) -> None:
        super().__init__(frame, is_marked=is_marked)
        self.marks_messages = True  # until it slides
        self._latest = frame.core

    def edited(self, core: Json) -> None:
        self._latest = core

    def make_room(self, count: Count) -> None:
        while count(self.params()) > self.frame.usable_tokens and len(self.turns) > 1:
            del self.turns[0]
            self.marks_messages = self._is_marked
            self.core = self._latest


class ReRender(Everything):
    def edited(self, core: Json) -> None:
        self.core = core

    def make_room(self, count: Count) -> None:
        if count(self.params()) > EVICT_AT * self.frame.usable_tokens:
            while len(self.turns) > 1 and count(self.params()) > EVICT_TO * self.frame.usable_tokens:
                del self.turns[0]


Rival = Callable[[Frame], Everything]
RERENDER = "re-render core on each edit, messages marked"
RIVALS: dict[str, Rival] = {
    "everything, until it overflows": Everything,
    "slide by a turn, messages marked": Slide,
    "slide by a turn, messages unmarked": partial(Slide, is_marked=False),
    RERENDER: ReRender,
    "re-render core on each edit, messages unmarked": partial(ReRender, is_marked=False),
}


def _marked(block: Json) -> Json:
    return {**block, "cache_control": {"type": "ephemeral"}}
