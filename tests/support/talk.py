from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pager import Limits, Memory, Request
from pager.store import Store
from pager.store.database import Database
from pager.types import Json
from tests.standin import GrowthWatch, Reply, Standin
from tests.support.clock import HandClock

TOOLS: list[Json] = [
    {"name": "weather", "description": "The weather of a city.", "input_schema": {"type": "object"}},
    {"type": "web_search_20250305", "name": "web_search"},
]


class Talk:
    """A memory and the provider. Every request goes through the strict stand-in and past the witness of law 3."""

    def __init__(
        self, directory: Path, *, window: int = 60_000, standin: Standin | None = None, clock: HandClock | None = None,
        **opening: Any,
    ) -> None:  # fmt: skip
        self.directory = directory
        self.clock = clock or HandClock()
        self._opening: dict[str, Any] = {
            "limits": Limits.for_window(window), "tools": TOOLS, "instructions": "Be brief.", "embedder": None,
            "clock": self.clock, "model": "m", **opening,
        }  # fmt: skip
        self.standin = standin or Standin(limit_tokens=window)
        self.watch = GrowthWatch()
        self.memory = Memory.open(directory, **self._opening)
        self.last: Request | None = None

    def reopen(self, **changes: Any) -> Memory:
        self.memory.close()
        self._opening |= changes
        self.memory = Memory.open(self.directory, **self._opening)
        return self.memory

    def reply(self, *blocks: Json | str | Reply) -> str:
        """The next request, answered: the page id of the reply. Blocks, or a whole scripted Reply."""
        scripted = blocks[0] if blocks and isinstance(blocks[0], Reply) else Reply(*(blocks or ("ok",)))  # type: ignore[arg-type]
        return self.memory.append_assistant(self.send(scripted))

    def send(self, reply: Reply) -> Json:
        """The next request and the provider's response to it, which is not appended."""
        self.last = request = self.memory.request()
        params = {"model": "m", **request.params}
        message = self.standin.create(params, reply)
        self.watch.see(params, request.epoch)
        return message

    def ask(self, text: str | list[Json], *blocks: Json | str | Reply) -> str:
        self.memory.append_user(text)
        return self.reply(*blocks)

    def answer(self, text: str = "sunny", **options: Any) -> None:
        for call in self.memory.open_calls:
            self.memory.append_result(call.id, f"{text} ({call.id})", **options)

    def fill(self, tokens: int, turn: str = "turn") -> None:
        """Short turns until the conversation holds about that many tokens more."""
        for number in range(max(1, tokens // 130)):
            self.ask(f"{turn} {number}: " + "and so we went on and on " * 8, f"Answer {number}. " + "it is so " * 15)

    @property
    def text(self) -> str:
        """All that the next request would say, as one text."""
        request = self.memory.request()
        return "\n".join(strings([request.params["system"], request.messages]))


def database_of(memory: Memory) -> Database:
    """The connection itself: to watch its statements, or to set what only a test sets."""
    store = memory._store
    assert isinstance(store, Store)
    return store


def strings(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


@contextmanager
def undone(memory: Memory) -> Iterator[None]:
    """Run the body in a transaction that is rolled back."""
    with suppress(InterruptedError), memory.transaction():
        yield
        raise InterruptedError
