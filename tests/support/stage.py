"""An agent on the strict stand-in, over HTTP in this process and through the real SDK.

stage.says(call("look"), "Fine.")             # replies and faults, in order
agent = stage.agent(look, window=20_000)      # with the memory's tools, and these
stage.requests[-1]                            # what was accepted
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from agents.agent import Agent
from agents.assembly import Parts
from agents.config.agent_config import AgentConfig
from agents.events import Event, Stopped
from agents.loop import Approve, Patience
from agents.meter import Meter, Prices, RunLimits
from agents.models.anthropic import AnthropicModel
from agents.models.model import Model
from agents.tasks import PLAN_BLOCK, TaskTools
from agents.testing.faults import Fault
from agents.tools.functions import Tool
from agents.tools.memory_tools import MemoryTools
from pager import BlockSpec, Limits, Memory
from pager.types import Call, Json
from tests.standin import Reply, Standin
from tests.standin.faults import Replies
from tests.standin.server import StandinServer
from tests.support.clock import HandClock
from tests.support.messages import texts

Said = Reply | Fault | str | Json
PRICES = Prices(input=1.0, output=1.0, cache_read=1.0, cache_write=1.0)


def nobody(_: Call) -> None:
    """There is no one to ask."""


def build(
    directory: Path, model: Model, *functions: Callable[..., Any] | Tool, window: int = 60_000, task: bool = False,
    approve: Approve = nobody, patience: Patience | None = None, limits: RunLimits | None = None,
    clock: HandClock | None = None, **opening: Any,
) -> Agent:  # fmt: skip
    """As agents.assembly joins them, with tools that need no file."""
    clock = clock or HandClock()
    own = [each if isinstance(each, Tool) else Tool.of(each) for each in functions]
    definitions = [*MemoryTools.definitions(), *(tool.definition for tool in own)]
    definitions += TaskTools.definitions() if task else []
    core = {"human": BlockSpec(limit_tokens=200), **({"plan": PLAN_BLOCK} if task else {})}
    with ExitStack() as opened:
        memory = opened.enter_context(
            Memory.open(
                directory,
                **{
                    "limits": Limits.for_window(window), "instructions": "Be brief.", "model": model.name,
                    "tools": definitions, "core": core, "embedder": None, "clock": clock,
                    "count_tokens": model.count_tokens, **opening,
                },
            )
        )  # fmt: skip
        tools = [*MemoryTools(memory, clock).tools(), *own, *(TaskTools(memory).tools() if task else ())]
        meter = Meter(clock, limits or RunLimits(), PRICES)
        parts = Parts(memory, model, tools, meter, opened.pop_all())
    return Agent(AgentConfig(name="agent"), parts, clock, approve, patience or Patience(wait=lambda _: None))


class Stage:
    """The stand-in, and agents that ask it. Whatever a test leaves open is closed in the end."""

    def __init__(self, directory: Path, service: StandinServer, opened: ExitStack) -> None:
        self.directory = directory
        self.service = service
        self.base_url = service.base_url
        self._opened = opened

    @property
    def requests(self) -> list[Json]:
        return self.service.api.requests

    @property
    def last(self) -> list[Any]:
        """The content of the last message of the last request."""
        return self.requests[-1]["messages"][-1]["content"]

    def says(self, *lines: Said) -> Self:
        scripted = (Reply(line) if isinstance(line, str | dict) else line for line in lines)
        self.service.script(*scripted)
        return self

    def follows(self, replies: Replies) -> Self:
        """Answer every request with these when nothing is scripted."""
        self.service.replies = replies
        return self

    def model(self, **options: Any) -> AnthropicModel:
        made = AnthropicModel("m", base_url=self.base_url, **options)
        self._opened.callback(made.close)
        return made

    def agent(self, *functions: Callable[..., Any] | Tool, model: Model | None = None, **options: Any) -> Agent:
        built = build(self.directory, model or self.model(), *functions, **options)
        return self._opened.enter_context(built)

    def load(self, more: str = "", *, window: int = 60_000, **options: Any) -> Agent:
        """An agent from its YAML file, as a person starts it. `more` are further lines; the caller closes it."""
        file = self.directory.with_name("x.yaml")
        model = f"name: x\nmodel: {{id: m, base_url: '{self.base_url}'}}\nwindow: {{limit_tokens: {window}}}\n"
        file.write_text(f"{model}archival: {{embedder: none}}\n{more}", encoding="utf-8")
        return Agent.load(file, home=self.directory.with_name("home"), **{"environ": {}, **options})

    def assert_over(self) -> None:
        """All that was scripted was said, and no request was refused."""
        assert not self.service.rejected
        assert not self.service.unsaid


@contextmanager
def stage_in(
    directory: Path, standin: Standin | None = None, windows: Mapping[str, int] | None = None
) -> Generator[Stage]:
    with StandinServer(standin or Standin(limit_tokens=60_000), windows=windows) as service, ExitStack() as opened:
        yield Stage(directory / "agent", service, opened)


def until(events: Generator[Event], *kinds: type[Event]) -> list[Event]:
    """The events up to one of these kinds, with it; the generator stays where it is."""
    seen: list[Event] = []
    for event in events:
        seen.append(event)
        if isinstance(event, kinds):
            return seen
    raise AssertionError(f"the events ended without {kinds}: {seen}")


def leave_at(events: Generator[Event], *kinds: type[Event]) -> None:
    """Leave a turn at the first event of these kinds, as a process that ends there."""
    until(events, *kinds)
    events.close()


def last(events: Iterable[Event]) -> Stopped:
    *_, stopped = events
    assert isinstance(stopped, Stopped)
    return stopped


def said_to(stage: Stage) -> list[str]:
    return texts(stage.requests[-1]["messages"], "user")


def results(content: list[Any]) -> list[tuple[str, bool]]:
    """The texts of the results of a message, and whether each is an error."""
    return [
        ("".join(inner["text"] for inner in block.get("content", [])), block.get("is_error", False))
        for block in content
        if block["type"] == "tool_result"
    ]
