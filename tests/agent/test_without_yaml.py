"""An agent without a YAML file, with a model object of one's own: it is what `Agent.load` gives."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents import (
    Agent,
    ConfigError,
    FinishedReply,
    Model,
    ModelError,
    ModelUnavailableError,
    Patience,
    Prices,
    RunLimits,
    Stopped,
    Text,
    Tool,
    UnreadableReplyError,
)
from agents.assembly import prefetch_of
from agents.testing import ScriptedServer, call
from pager import BlockSpec, Home, Limits, PagerError, Prefetch, RejectedError
from pager.types import Json
from tests.support import Words
from tests.support.cli import command_line

USAGE = {"input_tokens": 500, "output_tokens": 10}


def fetch_order(number: int) -> str:
    """Look up an order."""
    return f"order {number}: two hats"


def refund(number: int) -> str:
    """Give the money back."""
    return f"{number} is refunded"


class Clerk(Model):
    """Calls a tool at every message, then says what came of it. It has only what the protocol cannot give it."""

    name = "clerk-1"

    def __init__(self, tool: str = "fetch_order", **arguments: Any) -> None:
        self.requests: list[Json] = []
        self.closed = False
        self._call = {"type": "tool_use", "id": "call", "name": tool, "input": arguments or {"number": 17}}

    def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
        self.requests.append(params)
        last = params["messages"][-1]["content"][-1]
        if last["type"] != "tool_result":
            return FinishedReply({"content": [self._call], "stop_reason": "tool_use", "usage": USAGE})
        text = f"It says: {last['content']!s}"
        yield Text(text)
        return FinishedReply({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})

    def close(self) -> None:
        self.closed = True


def clerk(home: Path, **more: Any) -> Agent:
    options: dict[str, Any] = {"model": Clerk(), "tools": [fetch_order], "embedder": None, "home": home, **more}
    return Agent(name="clerk", **options)


def test_a_turn_in_all_its_ways(tmp_path: Path) -> None:
    model = Clerk()
    with clerk(
        tmp_path, model=model, instructions="Be brief.", core={"human": "Mara", "rules": BlockSpec("No hats")}
    ) as agent:
        assert "order 17: two hats" in agent.turn("Where is it?").text
        assert "two hats" in asyncio.run(agent.aturn("And now?")).text
        *_, stopped = agent.stream("And then?")
        assert stopped == Stopped("answered")
        leave = agent.stream("Once more?")
        next(leave)
        leave.close()
        assert "two hats" in agent.resume().text
        with pytest.raises(RejectedError, match="task=True"):
            agent.tasks()
    assert not model.closed  # it may answer for other agents
    first = model.requests[0]
    assert first["system"][0]["text"].startswith("Be brief.")
    assert {"fetch_order", "archive"} <= {tool["name"] for tool in first["tools"]}
    assert all(text in str(first["messages"][0]) for text in ("Mara", "No hats"))


def test_it_is_the_agent_that_a_file_gives(tmp_path: Path) -> None:
    file = tmp_path / "clerk.yaml"
    file.write_text(
        "name: clerk\nmodel: {id: clerk-1, max_output_tokens: 900}\ninstructions: Be brief.\n"
        "window: {limit_tokens: 9000, max_part_tokens: 700, evict_at: 0.8}\nmemory: {tools: few}\n"
        "core: {limit_tokens: 600, blocks: {human: {value: Mara}, me: {value: x, limit_tokens: 50, read_only: true}}}\n"
        "archival: {embedder: none, prefetch: {k: 3, budget_tokens: 100, from: [turns], trust: trusted}}\n"
        "limits: {max_steps: 9, max_usd: 2}\nprices: {input: 3, output: 15, cache_read: 0.3, cache_write: 4}\n"
    )
    prefetch = Prefetch(3, 100, ("turns",), trust="trusted")
    with Agent.load(file, home=tmp_path, as_name="other", model=Clerk()) as other:
        loaded, limits = other.config.model_dump(), other.memory.limits
    with clerk(
        tmp_path, tools=[], instructions="Be brief.", memory_tools="few", limits=RunLimits(max_steps=9, max_usd=2),
        core={"human": "Mara", "me": BlockSpec("x", limit_tokens=50, read_only=True)},
        window=Limits.for_window(9000, max_output_tokens=900, max_part_tokens=700, core_tokens=600, evict_at=0.8),
        prefetch=prefetch, prices=Prices(3, 15, cache_read=0.3, cache_write=4),
    ) as agent:  # fmt: skip
        assert (agent.config.model_dump(), agent.memory.limits) == (loaded, limits)
        assert prefetch_of(agent.config) == prefetch


def test_what_is_left_out_is_as_in_an_empty_file(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("name: a\n")
    with (
        Agent.load(file, home=tmp_path, model=Clerk()) as loaded,
        Agent(name="b", model=Clerk(), home=tmp_path) as made,
    ):
        same = {"name": "a", "model": loaded.config.model}
        assert made.config.model_copy(update=same).model_dump() == loaded.config.model_dump()
        assert made.memory.limits == loaded.memory.limits
        assert "the window of clerk-1 is not known; 100,000 tokens are used" in made.remarks[0]


def test_commands_read_it(tmp_path: Path) -> None:
    with clerk(tmp_path, embedder=Words(), prices=Prices(3, 15, 0.3, 4), core={"human": "Mara"}) as agent:
        agent.turn("Where is the cork shop?")
        agent.memory.archive("likes cork")
        agent.background.finish()
    for command, text in (("show", "Mara"), ("search", "likes cork"), ("trace", "cork shop"), ("check", "no problem")):
        more = ["cork shop"] if command in ("search", "trace") else []
        done = command_line(command, "clerk", *more, "--home", tmp_path)
        assert done.code == 0, done.err
        assert text in done.out
    assert Home(tmp_path).names() == ["clerk"]


def test_a_long_task(tmp_path: Path) -> None:
    with clerk(tmp_path, model=Clerk("task_done", summary="two hats"), task=True) as agent:
        *_, stopped = agent.tasks().start("Count the hats.")
        assert stopped == Stopped("done", "two hats")
        assert "plan" in {block.name for block in agent.memory.core()}


def test_a_tool_with_options_waits_for_a_person(tmp_path: Path) -> None:
    tools = [fetch_order, Tool.of(refund, approve="always")]
    with clerk(tmp_path, model=Clerk("refund"), tools=tools) as agent:
        assert agent.turn("Refund it.").stopped.reason == "approval"
    with clerk(tmp_path, model=Clerk("refund"), tools=tools, approve=lambda _: True) as agent:
        assert "17 is refunded" in agent.resume().text


def test_a_model_by_its_name(tmp_path: Path, scripted: ScriptedServer) -> None:
    scripted.script(call("fetch_order", number=3), "Two hats.")
    with clerk(tmp_path, model="claude-x", window=20_000) as agent:
        assert agent.turn("Where is it?").text == "Two hats."
    assert scripted.requests[-1]["model"] == "claude-x"


@pytest.mark.parametrize(
    ("error", "asked"),
    [(ModelUnavailableError("it sleeps"), 3), (UnreadableReplyError("noise"), 3), (OSError("gone"), 1)],
)
def test_what_a_model_of_ones_own_may_raise(tmp_path: Path, error: Exception, asked: int) -> None:
    """After a pause, at once, or not again; the turn stays open."""

    class Faulty(Clerk):
        def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
            if len(self.requests) < asked:
                self.requests.append(params)
                raise error
            return (yield from super().stream(params))

    model = Faulty()
    with clerk(tmp_path, model=model, patience=Patience(2, wait=lambda _: None)) as agent:
        with pytest.raises((ModelError, OSError)):
            agent.turn("Where is it?")
        assert len(model.requests) == asked
        assert "two hats" in agent.resume().text


def undocumented(x: int) -> int:
    return x


BAD: list[tuple[str, Any, str]] = [
    ("name", "a/b", "letters, digits"), ("name", 5, "a text"),
    ("model", Clerk, "Clerk is a class; give an object of it"), ("model", None, "the id of a model"),
    ("model", object(), "agents.Model"), ("model", "", "empty"),
    ("model", SimpleNamespace(name="x", stream=print), "no count_tokens, max_input_tokens, problem, unreachable"),
    ("tools", fetch_order, "a list of functions"), ("tools", [5], "no function"), ("tools", "abc", "a list"),
    ("tools", [undocumented], "docstring"), ("tools", [fetch_order, fetch_order], "another name"),
    ("instructions", b"x", "a text"), ("core", "Mara", "a dict of texts"), ("core", {"human": 5}, "'human'"),
    ("core", {"the human": "Mara"}, "letters, digits"), ("core", {"human": BlockSpec(limit_tokens=0)}, "more than 0"),
    ("window", "big", "a number of tokens"), ("window", 0, "more than 0"), ("window", True, "whole number"),
    ("window", 600, "needed"), ("memory_tools", "fw", "did you mean 'few'"), ("memory_tools", None, "'few'"),
    ("embedder", "ollama", "an Embedder"), ("prefetch", 3, r"Prefetch\(k=4\)"),
    ("limits", 3, r"RunLimits\(max_steps=50\)"), ("limits", RunLimits(max_steps=0), "more than 0"),
    ("limits", RunLimits(max_usd=1), "needs prices"), ("prices", {"input": 3}, "Prices"), ("home", 5, "a path"),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "value", "advice"), BAD)
def test_a_bad_value_is_an_error_that_names_its_argument(
    tmp_path: Path, argument: str, value: Any, advice: str
) -> None:
    with pytest.raises(PagerError, match=advice) as caught:
        Agent(**{"name": "clerk", "model": Clerk(), "home": tmp_path, argument: value})
    assert argument in str(caught.value)
    if argument not in ("home", "embedder"):
        assert isinstance(caught.value, ConfigError)
        assert {str(problem.place) for problem in caught.value.problems} == {f"Agent({argument}=...)"}
        assert "YAML" not in str(caught.value)
