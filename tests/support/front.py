"""A server with one agent, whose model is the strict stand-in, and the real SDK as its client.

with front_in(tmp_path) as front:
    front.provider.script("Hello.")
    message = front.client.messages.create(model="any", max_tokens=100, messages=front.say("hi"))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from anthropic import Anthropic
from anthropic.types import Message

from agents.httpd import HttpServer
from agents.serve.app import make_app
from agents.serve.keys import Keys
from agents.serve.limits import ServeLimits
from agents.serve.server import Server
from pager import Memory
from pager.clock import SystemClock
from pager.home import Home
from pager.types import Json
from tests.standin import Standin
from tests.standin.server import StandinServer

AGENT = """
name: clerk
model: {{id: m, base_url: "{url}", {model}}}
window: {{limit_tokens: {window}}}
archival: {{embedder: none}}
instructions: You are a clerk.
{more}
"""
WEATHER: Any = {
    "name": "get_weather", "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}  # fmt: skip


class Front:
    """The server, its provider, and a client with a key for one agent."""

    def __init__(self, folder: Path, provider: StandinServer, *, window: int, model: str, more: str) -> None:
        self.provider = provider
        self.home = Home(folder / "home")
        self.file = folder / "clerk.yaml"
        text = AGENT.format(url=provider.base_url, window=window, model=model, more=more)
        self.file.write_text(text, encoding="utf-8")
        self.open()
        self.key = Keys(self.home, SystemClock()).add("tests", "", "write", None)[1]
        if not self.home.exists("clerk"):
            self.server.instances.make("clerk", "clerk")
        self.client = self.client_of()

    def open(self) -> None:
        self.server = Server(self.home, [self.file], limits=ServeLimits(grace_seconds=5.0))
        self.http = HttpServer(make_app(self.server), port=0).start()

    def close(self) -> None:
        self.server.close()
        self.http.close()

    def reopen(self) -> None:
        """Stop the server, and start another one on the same home."""
        self.close()
        self.open()
        self.client = self.client_of()

    def client_of(self, **options: Any) -> Anthropic:
        """Return the SDK's client, with the key in one of its two headers."""
        given = {"api_key": self.key, "max_retries": 0, **options}
        return Anthropic(base_url=f"{self.http.url}/a/clerk", timeout=60.0, **given)

    def post(self, body: Json, path: str = "messages", **headers: str) -> httpx2.Response:
        """Send a request as it stands."""
        return httpx2.post(
            f"{self.http.url}/a/clerk/v1/{path}", json=body, headers={"x-api-key": self.key, **headers}, timeout=60.0
        )

    @property
    def requests(self) -> list[Json]:
        """What the provider got."""
        return self.provider.api.requests

    def memory(self) -> Memory:
        """The memory, when the server is closed."""
        return self.home.open("clerk", embedder=None)


class Chat:
    """A client that keeps its history, as a chat window does."""

    def __init__(self, front: Front, **options: Any) -> None:
        self.front = front
        self.options: dict[str, Any] = {"model": "any", "max_tokens": 1000, **options}
        self.messages: list[Any] = []
        self.history = ""  # of the last answer: what its header says

    def say(self, content: Any, **options: Any) -> Message:
        """Send a message behind the history, and keep it with its answer."""
        self.messages.append({"role": "user", "content": content})
        raw = self.front.client.messages.with_raw_response.create(
            messages=self.messages, **self.options, **options
        )  # fmt: skip
        self.history = raw.headers["selfpager-history"]
        answer = raw.parse()
        self.messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
        return answer

    def result(self, answer: Message, text: str, **options: Any) -> Message:
        """Answer all calls of a message."""
        calls = [block.id for block in answer.content if block.type == "tool_use"]
        return self.say([{"type": "tool_result", "tool_use_id": call, "content": text} for call in calls], **options)


def text_of(answer: Message) -> str:
    """The words of an answer."""
    return "|".join(block.text for block in answer.content if block.type == "text")


def said_in(params: Json) -> list[str]:
    """What people said in a request to the provider, without what the memory put into it."""
    return [
        block["text"] for message in params["messages"] if message["role"] == "user" for block in message["content"]
        if block["type"] == "text" and not block["text"].startswith("<")
    ]  # fmt: skip


@contextmanager
def front_in(
    folder: Path, *, window: int = 20_000, model: str = "thinking: default", more: str = ""
) -> Iterator[Front]:
    """Run a front on a folder. No request that the provider would refuse is ever sent."""
    with StandinServer(Standin(limit_tokens=window)) as provider:
        front = Front(folder, provider, window=window, model=model, more=more)
        try:
            yield front
        finally:
            front.close()
        assert provider.rejected == []
