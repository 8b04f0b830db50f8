"""An agent at work, in a process that may die at any point of its loop.

What the model says depends on nothing but how many replies the conversation holds, so a conversation that was cut off
anywhere comes to the same end. What the tools do outside of the memory stands in a file, a line per effect.
"""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from agents.agent import Agent
from agents.events import Event, Replied, ToolFinished
from agents.tools.functions import Tool
from pager import Prefetch
from tests.crash.children import say
from tests.crash.commit_points import CommitPoints
from tests.standin import Reply, Standin, call, thinking
from tests.support.clock import START, HandClock
from tests.support.stage import Stage, stage_in
from tests.support.talk import database_of

TEXTS = ("please order two hats", "and remember my size")
FACTS = ("wants two hats", "ordered the blue hat", "size is 58")
REPLIES = (
    Reply(
        thinking("first the prices"), "Let me see. " * 12, call("archive", {"text": FACTS[0]}),
        call("pay", {"item": "blue hat"}), call("price", {"item": "blue hat"}),
        call("core_append", {"block": "human", "text": "likes hats"}),
    ),
    Reply(
        thinking("now the other"), call("price", {"item": "red hat"}), call("archive", {"text": FACTS[1]}),
        call("pay", {"item": "red hat"}), call("pay", {"item": "ribbon"}),
    ),
    Reply("Both are ordered. " * 5),
    Reply(call("archive", {"text": FACTS[2], "key": "size"})),
    Reply(thinking("that is all"), "I remember."),
)  # fmt: skip


TASK = "Buy two hats."
LOOKED = tuple(f"looked into {'shop after ' * 60}shop number {number}" for number in range(8))  # more than a plan holds
TASK_REPLIES = (
    Reply(thinking("first"), "I shall. " * 4),
    Reply(call("pay", {"item": "blue hat"}), call("archive", {"text": FACTS[1]})),
    Reply("One more."),
    Reply(*(call("core_append", {"block": "plan", "text": f"- [x] {item}"}) for item in LOOKED)),
    Reply(call("core_append", {"block": "plan", "text": "- [ ] is the blue hat ordered already?"})),
    Reply(call("price", {"item": "red hat"}), call("task_done", {"summary": "bought", "result": "two"})),
    Reply(call("task_done", {"summary": "bought", "result": 2})),
)


class Shop:
    """Tools with effects outside of the memory."""

    def __init__(self, directory: Path) -> None:
        self._effects = directory / "effects"

    def tools(self) -> list[Tool]:
        return [Tool.of(self.pay), Tool.of(self.price, idempotent=True)]

    def effects(self) -> list[str]:
        return self._effects.read_text().splitlines() if self._effects.exists() else []

    def pay(self, item: str) -> str:
        """Pay for an item."""
        return self._do("paid", item)

    def price(self, item: str) -> str:
        """Ask for a price."""
        return self._do("asked", item)

    def _do(self, what: str, item: str) -> str:
        with self._effects.open("a") as file:
            file.write(f"{what} {item}\n")
        return f"{what} {item}"


def open_agent(stage: Stage, shop: Shop, *, life: int, task: bool = False) -> Agent:
    """`life` sets the clock: each begins a day after the one before."""
    replies = TASK_REPLIES if task else REPLIES
    stage.follows(lambda params: replies[sum(message["role"] == "assistant" for message in params["messages"])])
    asked: dict[str, Any] = {"task": True, "output": int, "prefetch": Prefetch(k=3)} if task else {}
    return stage.agent(*shop.tools(), clock=HandClock(START + timedelta(days=life)), **asked)


def standin() -> Standin:
    """The same provider for every life: what it signed in one it knows in the next."""
    return Standin(limit_tokens=60_000, seed=7)


def live(directory: Path, when: str, deadly: int, *, task: bool = False) -> None:
    """The whole conversation or task, until death before or after its commit number `deadly`."""
    points = CommitPoints(deadly, after=when == "after")
    with stage_in(directory, standin()) as stage:
        agent = open_agent(stage, Shop(directory), life=1, task=task)
        points.watch(database_of(agent.memory))
        for text in (TASK,) if task else TEXTS:
            for event in agent.tasks().start(text) if task else agent.stream(text):
                points.returned()
                acknowledge(text, event)
        agent.close()
        say([commit.kind for commit in points.commits])


work = partial(live, task=True)


def acknowledge(text: str, event: Event) -> None:
    if isinstance(event, Replied):
        say("replied", text, event.step)
    elif isinstance(event, ToolFinished):
        say("finished", text, event.call_id, event.text)
    else:
        say("heard", text)
