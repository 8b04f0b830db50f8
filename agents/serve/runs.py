"""Turns and tasks that requests have begun, with their events: for those who wait, and for an hour for who comes back.

Events are added by the thread of the turn, and read by any number of requests. Their ids, which come back as
`Last-Event-ID`, are those of one run: when its process has died, what is left is another one, which begins with
`resumed`. A turn goes on when nobody reads.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import uuid4

from agents.events import Event, HelperEvent
from agents.explain.json_form import to_json
from agents.serve.errors import ApiError, as_api_error
from agents.serve.limits import ServeLimits
from pager.clock import Clock
from pager.types import Json

RUN_BYTES, EVENT_BYTES = 1500, 200  # of memory, beside the texts
RESUMED = "What ran this is gone. These replies are on disk; what came of others is void, and what follows is new."
BEAT_SECONDS = 15.0  # a comment after so long without an event: who has left is noticed


@dataclass(frozen=True, slots=True)
class Sent:
    """An event as it is sent."""

    id: str
    kind: str
    data: str

    @property
    def wire(self) -> bytes:
        """Return it as server-sent events are written."""
        return f"id: {self.id}\nevent: {self.kind}\ndata: {self.data}\n\n".encode()


class Run:
    """A turn or a task that a request has begun. `body` is the digest of what was asked for."""

    def __init__(self, key: str, body: str) -> None:
        self.key = key
        self.body = body
        self.size = RUN_BYTES
        self.answer: Json | None = None
        self.error: ApiError | None = None
        self.is_open = self.began = False  # its agent works on it; what was asked for is on disk
        self.is_left = False
        self.ended_at: float | None = None
        self._id = uuid4().hex[:12]
        self._events: list[Sent] = []
        self._waiting: set[_Waiting] = set()

    # the thread that works

    def add(self, event: Event) -> None:
        """Add an event of the turn."""
        self._add(type(event).__name__.lower(), event_json(event))

    def open(self) -> None:
        """Note that its agent is open, and works on it."""
        self.is_open = True
        self._wake()

    def resume(self, replies: Mapping[str, str]) -> None:
        """Add the replies that are on disk, by their steps, as the first event. What a reader has of the turn is void:
        the run that it was of is gone, perhaps in the middle of a reply."""
        stored = [{"step": step, "text": text} for step, text in replies.items()]
        self._add("resumed", {"key": self.key, "text": RESUMED, "replies": stored})
        self.begin()

    def begin(self) -> None:
        """Note that what was asked for is on disk."""
        self.began = True
        self._wake()

    def end(self, answer: Json, now: float) -> None:
        """Add the answer as the last event."""
        self._add("turn", answer)
        self.answer, self.began, self.ended_at = answer, True, now
        self._wake()

    def leave(self, now: float) -> None:
        """End its events without an answer: who goes on with the rest has a run of its own."""
        self.is_left, self.ended_at = True, now

    def fail(self, error: BaseException, now: float) -> None:
        """Add an error as the last event."""
        self.error = as_api_error(error)
        self._add("error", self.error.body["error"])
        self.ended_at = now
        self._wake()

    def _add(self, kind: str, data: Any) -> None:
        text = json.dumps(data, ensure_ascii=False, default=str)
        self._events.append(Sent(f"{self._id}-{len(self._events) + 1}", kind, text))
        self.size += EVENT_BYTES + len(text)
        self._wake(readers_only=True)

    def _wake(self, *, readers_only: bool = False) -> None:
        for waiting in list(self._waiting):
            if waiting.reads or not readers_only:
                waiting.wake()

    # requests

    async def wait(self, *, until_open: bool = False, until_begun: bool = False) -> None:
        """Return when it has ended, or when its agent works on it, or when what was asked for is on disk."""
        with _Waiting(self._waiting, reads=False) as woken:
            while self.ended_at is None and not (until_begun and self.began) and not (until_open and self.is_open):
                await woken.wait()
                woken.clear()

    async def events(self, after: str) -> AsyncGenerator[bytes]:
        """Yield the events behind the one with this id, as they come, and a comment now and then while none does. All,
        if it is not of this run."""
        own, _, number = after.rpartition("-")
        place = int(number) if own == self._id and number.isdecimal() else 0
        with _Waiting(self._waiting, reads=True) as woken:
            while True:
                for event in self._events[place:]:
                    place += 1
                    yield event.wire
                if self.ended_at is not None and place >= len(self._events):
                    return
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        await woken.wait()
                except TimeoutError:
                    yield b": still at work\n\n"
                woken.clear()


class _Waiting:
    """A request that `reads` events, or waits for the end. It is woken once at first, for what came before."""

    def __init__(self, others: "set[_Waiting]", *, reads: bool) -> None:
        self.reads = reads
        self._others, self._woken, self._loop = others, asyncio.Event(), asyncio.get_running_loop()

    def wake(self) -> None:
        """Wake the request, from any thread."""
        with suppress(RuntimeError):  # its loop has ended
            self._loop.call_soon_threadsafe(self._woken.set)

    def __enter__(self) -> asyncio.Event:
        self._others.add(self)
        self._woken.set()
        return self._woken

    def __exit__(self, *_: object) -> None:
        self._others.discard(self)


class Runs:
    """The runs of all agents by their keys. Those that ended an hour ago, or that are too much, are forgotten."""

    def __init__(self, limits: ServeLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._runs: dict[tuple[str, str], Run] = {}
        self._ended: deque[tuple[str, Run]] = deque()  # those that ended first, first
        self._bytes = 0  # of these
        self._lock = Lock()

    def now(self) -> float:
        """Return the time in seconds."""
        return self._clock.now().timestamp()

    def find(self, agent: str, key: str) -> Run | None:
        """Return the run of a key."""
        with self._lock:
            return self._runs.get((agent, key))

    def begin(self, agent: str, key: str, body: str) -> tuple[Run, bool]:
        """Return the run of a key, and True if it is a new one, which somebody has to work on: there was none, or it
        had failed. Raises ApiError (422) if the key was used for something else."""
        with self._lock:
            run = self._runs.get((agent, key))
            if run is not None and run.body != body:
                text = "this Idempotency-Key was used for another request."
                raise ApiError(422, "key_reused", text, "Make a new key for each request; repeat one only unchanged.")
            if run is not None and run.error is None:
                return run, False
            run = Run(key, body)
            self._runs[agent, key] = run
            return run, True

    def drop(self, agent: str, run: Run) -> None:
        """Forget a run that could not begin."""
        with self._lock:
            if self._runs.get((agent, run.key)) is run:
                del self._runs[agent, run.key]

    def forget(self, agent: str) -> None:
        """Forget all runs of an agent, with what was said in them: it was removed, or something of it was purged."""
        with self._lock:
            self._runs = {key: run for key, run in self._runs.items() if key[0] != agent}
            self._ended = deque((name, run) for name, run in self._ended if name != agent)
            self._bytes = sum(run.size for _, run in self._ended)

    def keep(self, agent: str, run: Run) -> None:
        """Keep a run that has ended, for an hour. The oldest are forgotten, also while all are too large together."""
        with self._lock:
            self._ended.append((agent, run))
            self._bytes += run.size
            oldest = self.now() - self._limits.keep_seconds
            while self._ended and ((self._ended[0][1].ended_at or 0) < oldest or self._bytes > self._limits.keep_bytes):
                name, old = self._ended.popleft()
                self._bytes -= old.size
                if self._runs.get((name, old.key)) is old:
                    del self._runs[name, old.key]


def event_json(event: Event) -> Json:
    """Return an event as JSON: its fields, and of a helper's event also which one it is."""
    data: Json = to_json(event)
    if isinstance(event, HelperEvent):
        data["inner"] = {"event": type(event.inner).__name__.lower(), **event_json(event.inner)}
    return data
