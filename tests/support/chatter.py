"""A model that does a little of everything, for long conversations.

    StandinServer(Standin(...), replies=replies)

What it says depends on the last message alone, so a request that is sent again gets the same reply. Each of its calls
of `tick` carries a mark of its own.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable
from random import Random

from agents.tools.functions import Tool
from pager.types import Json
from tests.standin import Reply, call, thinking
from tests.support.messages import core_of

WORDS = ["the", "a", "seat", "window", "order", "Porto", "train", "rain", "when", "not", "ticket", "17", "3.5", "café"]
_BLOCK = re.compile(r'<block name="human"[^>]*>\n(.*?)\n</block>', re.DOTALL)


def words(random: Random, count: int) -> str:
    return " ".join(random.choices(WORDS, k=count))


class Work:
    """The agent's own tools, and what they were asked to do."""

    def __init__(self) -> None:
        self.ticked: Counter[str] = Counter()

    def tools(self) -> list[Tool]:
        return [Tool.of(self.tick), Tool.of(self.read, idempotent=True)]

    def tick(self, mark: str) -> str:
        """Tick a mark off."""
        self.ticked[mark] += 1
        return f"ticked {mark}"

    def read(self, kilobytes: int) -> str:
        """Read something long."""
        return words(Random(kilobytes), 200 * kilobytes)[: 1_000 * kilobytes]


def replies(params: Json) -> Reply:
    last = params["messages"][-1]
    if last["role"] == "assistant":
        return Reply("Here it is.")
    key = zlib.crc32(json.dumps(last["content"], sort_keys=True).encode())
    random = Random(key)
    thought = [thinking(words(random, 20) if random.random() < 0.5 else "")] if random.random() < 0.7 else []
    said = [words(random, random.choice([5, 30, 120]))]
    answered = last["content"][0]["type"] == "tool_result"
    if random.random() < (0.7 if answered else 0.3):
        return Reply(*thought, *said)
    count = random.choice([1, 1, 2, 3, 5])
    calls = [random.choice(CALLS)(random, f"{key:08x}.{place}", core_of(params)) for place in range(count)]
    return Reply(*thought, *(said if random.random() < 0.5 else []), *calls)


def _archive(random: Random, mark: str) -> Json:
    keyed = {"key": random.choice(["seat", "hotel", "train"])} if random.random() < 0.5 else {}
    return call("archive", {"text": f"{mark} {words(random, 10)}", "tags": ["travel"], **keyed})


def _page(random: Random, mark: str) -> Json:
    page = f"{random.choice('fsx')}{random.randint(1, 200)}"
    name = random.choice(["page_in", "page_in", "page_out", "forget"])
    more = {"pin": random.random() < 0.3} if name == "page_in" else {"reason": mark} if name == "forget" else {}
    return call(name, {"page_id": page, **more})


def _core(random: Random, mark: str, core: str) -> Json:
    """A line more, or, when there are many, one less."""
    found = _BLOCK.search(core)
    lines = found[1].splitlines() if found else []
    if len(lines) > 5:
        return call("core_replace", {"block": "human", "old_text": f"{lines[0]}\n", "new_text": ""})
    return call("core_append", {"block": "human", "text": f"{mark} {words(random, 3)}"})


CALLS: list[Callable[[Random, str, str], Json]] = [
    *[lambda _, mark, __: call("tick", {"mark": mark})] * 2,
    lambda random, _, __: call("read", {"kilobytes": random.choice([1, 1, 2, 5, 40])}),
    lambda random, mark, _: _archive(random, mark),
    lambda random, _, __: call(random.choice(["search_archive", "search_recall"]), {"query": words(random, 3)}),
    lambda random, mark, _: _page(random, mark),
    _core,
]
