"""Count what a reader of one turn has to follow: `python -m tests.bench.reading_cost`

An agent takes turns without tools, through its real loop, with a model in this process: the default agent (embedder
and prefetch), then one without both. Counted are the files of `pager/` and `agents/` that a turn enters, their
functions, all calls, the calls from one file into another, and the statements sent to SQLite.
Files and calls are those of a young agent, statements those of one with a thousand turns. Of nine turns the one with
the median number counts, so that a rare eviction does not. Exits with 1 when a limit does not hold.
"""

import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path
from statistics import median_low
from threading import get_ident
from types import FrameType
from typing import Any

from agents.agent import Agent
from agents.events import Text
from agents.models.model import FinishedReply, Model
from pager import Prefetch
from pager.types import Json
from tests.bench.figures import ROOT, Figure, run
from tests.support.stage import build
from tests.support.talk import database_of

OURS = (f"{ROOT}/pager/", f"{ROOT}/agents/")
WARM_UP, MEASURED, OLD = 12, 9, 1_000
MOST_CALLS_ACROSS, MOST_STATEMENTS = 220, 45
# What is opened, and the most files that a turn may enter. The default prefetch is that of configs/assistant.yaml.
KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "default": (30, {"embedder": "default", "prefetch": Prefetch(k=12)}),
    "no embedder, no prefetch": (22, {"embedder": None, "prefetch": Prefetch(k=0)}),
}


class Parrot(Model):
    """A model that answers every request with the same sentence."""

    name = "parrot"

    def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
        text = "An aisle seat, as on the last trip."
        yield Text(text)
        usage = {"input_tokens": len(str(params["messages"])) // 4, "output_tokens": 10}
        content = [{"type": "text", "text": text}]
        reply = {"role": "assistant", "content": content, "stop_reason": "end_turn", "model": self.name, "usage": usage}
        return FinishedReply(reply)


class Walk:
    """The calls of one turn within our packages."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.calls = 0
        self.across = 0

    @property
    def files(self) -> int:
        return len({file for file, _ in self.functions})

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call. Its caller is the nearest frame of ours, whatever library stands between."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(OURS):
            return
        self.calls += 1
        self.functions.add((file, frame.f_code.co_qualname))
        caller = frame.f_back
        while caller and not caller.f_code.co_filename.startswith(OURS):
            caller = caller.f_back
        self.across += caller is not None and caller.f_code.co_filename != file


def take_turn(agent: Agent, number: int) -> None:
    agent.turn(f"About my trip number {number}: which seat do I like on the train to Porto?")


def walk(agent: Agent, number: int) -> Walk:
    calls = Walk()
    sys.setprofile(calls.profile)
    try:
        take_turn(agent, number)
    finally:
        sys.setprofile(None)
    return calls


def statements(agent: Agent, number: int) -> int:
    """Count the statements of this thread. Lines that begin with "--" are parts of the statement before.

    An insertion that fires a trigger is traced once more for each of its rows.
    """
    sent: list[str] = []
    thread = get_ident()
    database = database_of(agent.memory)

    def trace(sql: str) -> None:
        is_trigger = sql.startswith("INSERT") and sent[-1:] == [sql]
        if get_ident() == thread and not sql.startswith("--") and not is_trigger:
            sent.append(sql)

    database.trace(trace)
    try:
        take_turn(agent, number)
    finally:
        database.trace(None)
    return len(sent)


def measure(directory: Path, *, kind: str, most_files: int, opening: dict[str, Any]) -> list[Figure]:
    with build(directory / "agent", Parrot(), **opening) as agent:
        agent.memory.archive("prefers aisle seats on trains", key="seat", tags=["travel"])
        agent.memory.archive("lives in Porto", key="home")
        for number in range(WARM_UP):
            take_turn(agent, number)
        walks = [walk(agent, WARM_UP + number) for number in range(MEASURED)]
        for number in range(WARM_UP + MEASURED, OLD):
            take_turn(agent, number)
        sent = median_low([statements(agent, OLD + number) for number in range(MEASURED)])
    middle = sorted(walks, key=lambda each: each.calls)[MEASURED // 2]
    told = f"{len(middle.functions)} functions, {middle.calls:,} calls"
    return [
        Figure(f"files that a turn enters, {kind}", told, middle.files, most_files, ""),
        Figure(f"calls from file to file, {kind}", told, middle.across, MOST_CALLS_ACROSS, ""),
        Figure(f"SQL statements of a turn, {kind}", f"{OLD:,} turns", sent, MOST_STATEMENTS, ""),
    ]


if __name__ == "__main__":
    sys.exit(
        run(
            {
                kind: partial(measure, kind=kind, most_files=most, opening=opening)
                for kind, (most, opening) in KINDS.items()
            },
            sys.argv[1:],
        )
    )
