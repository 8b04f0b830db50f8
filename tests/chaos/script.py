"""What is said to an agent, and what its model makes of it: the same again, however often it is asked.

A message carries a tag, `[[a17.3 cl]]`: agent 17, message 3, for which the model calls `charge` and then `look`. Each
call has a mark, `a17.3.0`, and the last reply names the tags of its turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Literal

from pager.types import Json

Way = Literal["turn", "front", "task", "tell"]
TOOLS = {"c": "charge", "l": "look"}
TAG = re.compile(r"\[\[(?P<tag>a\d+\.\d+(?:\.try\d+)?) (?P<calls>[cl]*)(?P<task>t?)\]\]")
DONE = "done"
WORDS = ["seat", "window", "order", "Porto", "train", "rain", "ticket", "17", "café", "hotel", "left", "tomorrow"]


@dataclass(frozen=True, slots=True)
class Message:
    """Message `number` of an agent, and the way on which it comes."""

    agent: str
    number: int
    way: Way
    calls: str
    size: int

    @property
    def tag(self) -> str:
        return f"{self.agent}.{self.number}"

    def text(self, tag: str = "") -> str:
        filler = " ".join(Random(self.tag).choices(WORDS, k=self.size))
        return f"[[{tag or self.tag} {self.calls}{'t' if self.way == 'task' else ''}]] {filler}"


def messages(agent: str, count: int, seed: int) -> list[Message]:
    """What the client of an agent says, in this order."""
    random = Random(f"{seed} {agent}")
    ways: list[Way] = random.choices(["turn", "front", "task", "tell"], [70, 15, 7, 8], k=count)
    calls = random.choices(["", "c", "l", "cl", "cc"], [40, 25, 15, 10, 10], k=count)
    sizes = random.choices([20, 100, 600, 3000], [50, 30, 15, 5], k=count)
    return [Message(agent, number, *each) for number, each in enumerate(zip(ways, calls, sizes, strict=True))]


def marks(tag: str, calls: str) -> list[tuple[str, str]]:
    """The calls of a message: tool and mark."""
    return [(TOOLS[each], f"{tag}.{place}") for place, each in enumerate(calls)]


def reply(messages: list[Json]) -> list[Json]:
    """The content of the model's next reply."""
    said, made = dict[str, re.Match[str]](), set[str]()
    for message in messages:
        content = message["content"]
        blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            calls = [block for block in blocks if block["type"] == "tool_use"]
            made |= {str(each["input"].get("mark")) for each in calls}
            if all(each["name"] == "task_done" for each in calls):
                said.clear()
        else:  # what begins with an element comes from the memory
            texts = [block["text"] for block in blocks if block["type"] == "text" and not block["text"].startswith("<")]
            said |= {found["tag"]: found for text in texts for found in TAG.finditer(text)}
    for tag, found in said.items():
        for tool, mark in marks(tag, found["calls"]):
            if mark not in made:
                return [{"type": "tool_use", **_id(mark), "name": tool, "input": {"mark": mark}}]
    text = " ".join([DONE, *said])
    for tag, found in said.items():
        if found["task"]:
            return [{"type": "tool_use", **_id(f"{tag}.t"), "name": "task_done", "input": {"summary": text}}]
    return [{"type": "text", "text": text}]


def _id(mark: str) -> Json:
    return {"id": f"toolu_{mark.replace('.', '-')}"}
