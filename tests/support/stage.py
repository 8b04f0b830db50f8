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
from agents.events import Event, Stopped
from agents.meter import Prices
from agents.models.anthropic import AnthropicModel
from agents.models.model import Model
from agents.models.patience import Patience
from agents.testing.faults import Fault
from agents.tools.functions import Tool
from pager import BlockSpec, Prefetch
from pager.types import Json
from tests.standin import Reply, Standin
from tests.standin.faults import Replies
from tests.standin.server import StandinServer
from tests.support.clock import HandClock
from tests.support.messages import texts

Said = Reply | Fault | str | Json
PRICES = Prices(input=1.0, output=1.0, cache_read=1.0, cache_write=1.0)


def build(directory: Path, model: Model, *tools: Callable[..., Any] | Tool, window: int = 60_000, **more: Any) -> Agent:
    """An agent in this directory, with what most tests want: words instead of vectors, and nothing unasked."""
    usual: dict[str, Any] = {
        "instructions": "Be brief.", "core": {"human": BlockSpec(limit_tokens=200)}, "embedder": None,
        "prefetch": Prefetch(), "prices": PRICES, "patience": Patience(wait=lambda _: None), "clock": HandClock(),
    }  # fmt: skip
    place = {"home": directory.parent, "name": directory.name}
    return Agent(model=model, tools=tools, window=window, **place, **{**usual, **more})


def uncounted(model: Model) -> Model:
    """The model as behind a server that counts nothing."""
    vars(model)["count_tokens"] = lambda _: None
    return model


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
    """The texts of the users' messages in the last request, but for core."""
    return texts(stage.requests[-1]["messages"][1:], "user")


def results(content: list[Any]) -> list[tuple[str, bool]]:
    """The texts of the results of a message, and whether each is an error."""
    return [
        ("".join(inner["text"] for inner in block.get("content", [])), block.get("is_error", False))
        for block in content
        if block["type"] == "tool_result"
    ]
