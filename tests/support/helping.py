"""Agents that help an agent, played on one stage: who is asked is told by the instructions, `You are reader.`

helper(stage, "reader", "tools: [{use: 'tests.support.helping:look'}]")
agent = stage.load(lead("- agent: reader.yaml"))
stage.follows(plays(x=[ask("reader", "count"), "Two."], reader=[DONE]))
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Barrier

from agents.tools.functions import Sourced
from pager.types import Json
from tests.standin import Reply, call
from tests.support.stage import Stage

Line = Reply | str | Json
Lines = Sequence[Line] | Callable[[Json], Line]
DONE = call("task_done", {"summary": "two hats"})
_NAME = re.compile(r"You are (\w+)\.")
meeting = Barrier(2, timeout=30)
_witness: list[Path] = []


def lead(*tools: str, more: str = "") -> str:
    """The YAML of the agent `x` with these tools."""
    listed = "".join(f"  {tool}\n" for tool in tools)
    return f"instructions: You are x.\nprices: {{input: 1, output: 1}}\ntools:\n{listed}{more}"


def helper(stage: Stage, name: str, more: str = "", *, prices: bool = True) -> Path:
    """Write the file of a helper beside that of the stage's agent."""
    file = stage.directory.with_name(f"{name}.yaml")
    text = f"name: {name}\nmodel: {{id: m, base_url: '{stage.base_url}'}}\nwindow: {{limit_tokens: 60000}}\n"
    text += f"archival: {{embedder: none}}\ninstructions: You are {name}.\n{more}\n"
    file.write_text(text + ("prices: {input: 1, output: 1}\n" if prices else ""))
    return file


def ask(name: str, *tasks: str) -> Reply:
    """A reply that gives tasks to a helper."""
    return Reply(*(call(name, {"task": task}) for task in tasks))


def plays(**parts: Lines) -> Callable[[Json], Reply]:
    """Who is asked says the line that follows those it has said in this conversation."""

    def reply(params: Json) -> Reply:
        found = _NAME.search(params["system"][0]["text"])
        assert found
        lines = parts[found[1]]
        number = sum(message["role"] == "assistant" for message in params["messages"])
        line = lines(params) if callable(lines) else lines[number]
        return line if isinstance(line, Reply) else Reply(line)

    return reply


# Tools.


def look() -> str:
    """Look into the box."""
    return "a red one, a blue one"


def fetch() -> Sourced:
    """Fetch a page."""
    return Sourced("web:hats.example", "hats are red")


def meet() -> str:
    """Wait for another one who does the same."""
    meeting.wait()
    return "met"


def pay(item: str) -> str:
    """Pay for an item."""
    with _witness[0].open("a") as file:
        file.write(f"paid {item}\n")
    return f"paid {item}"


def watch(directory: Path) -> None:
    """From now on `pay` leaves a line in a file there."""
    _witness[:] = [directory / "effects"]


def effects(directory: Path) -> list[str]:
    file = directory / "effects"
    return file.read_text().splitlines() if file.exists() else []
