"""A home with two agents: "guide" has some of everything that the debug view shows, "errand" has next to nothing.

with running(home) as guide:          # as its process would hold it
    step = guide.say("Tell me more.")
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pager import BlockSpec, Memory
from tests.standin import call
from tests.support import Talk, Words

CORE = {"human": BlockSpec(value="name is Dora", limit_tokens=400)}
OPTIONS: dict[str, Any] = {"window": 6_000, "embedder": Words(), "core": CORE}
CORK = (
    "Yesterday I found a little place behind the station, and I would like to go there again before we leave the city. "
    "It is the cork shop with the green door, next to the baker, and it is open from nine to five every day but Monday."
)


class Guide(Talk):
    """The running agent: `say` is one turn."""

    def say(self, text: str) -> str:
        """Take what is in the inbox, then answer a message. Returns the id of the reply."""
        self.memory.process_inbox()
        return self.ask(text, "Let me see.")


def make_home(home: Path) -> Path:
    """Fill a home: several epochs, tools, facts that were superseded, searches, an evicted step that was paged in."""
    guide = Guide(home / "guide", **OPTIONS)
    memory = guide.memory
    guide.ask(CORK, "Noted.")
    memory.core_replace("human", "Dora", "Dana", actor="agent")
    for text in ("the budget is 900 euros", "the budget is 1,200 euros"):
        memory.archive(text, key="budget", tags=["trip"], actor="agent")
    for place in ("river", "castle", "market", "station"):
        memory.archive(f"the {place} is worth a visit", actor="agent")
    guide.ask("What is the weather?", call("weather", {"city": "Porto"}))
    guide.answer()
    guide.reply("Sunny.")
    guide.fill(7_000, "day")
    memory.search_archive("which place is worth a visit?", limit=2, actor="agent")
    guide.ask("Which shop did I mean?", call("page_in", {"page_id": "s1"}))
    page = memory.page_in("s1", actor="agent")
    memory.append_result(memory.open_calls[0].id, page.text, memory_tool=True)
    guide.reply("The cork shop.")
    guide.fill(3_000, "evening")
    memory.close()
    with Memory.open(home / "errand", embedder=None, core={"human": BlockSpec(value="in a hurry")}):
        pass
    return home


@contextmanager
def running(home: Path) -> Generator[Guide]:
    """The agent, open for writing in this process."""
    guide = Guide(home / "guide", **OPTIONS)
    try:
        yield guide
    finally:
        guide.memory.close()
