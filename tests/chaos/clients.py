"""Clients of the fleet. Each agent has one, which says one thing after the other, as a good client does: with an
`Idempotency-Key`, again after each error, to any worker."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import Lock, Thread
from typing import Any

import httpx

from pager.types import Json
from tests.chaos.fleet import Fleet
from tests.chaos.script import DONE, Message, messages

TIMEOUT = httpx.Timeout(12.0, connect=2.0)
FINAL = {400, 401, 403, 404, 413, 422, 500}  # no good client asks again after these, and a 500 is a fault of ours


class WrongAnswerError(Exception):
    """An answer that no client should get."""


@dataclass
class Promise:
    """What became of a message, as its client knows it."""

    message: Message
    answer: str = ""  # the text, when it was answered
    acknowledged: bool = False  # with 2xx
    tried: list[str] = field(default_factory=list[str])  # tags that may have been sent
    kept: str = ""  # the tag that was acknowledged


@dataclass
class Talk:
    """An agent and what it was promised."""

    agent: str
    left: deque[Message]
    promises: list[Promise] = field(default_factory=list[Promise])
    history: list[Json] = field(default_factory=list[Json])  # of its client of the Messages API
    exists: bool = False


class Clients:
    """So many threads, which give the agents turns. `may_go` says if the next message may be sent."""

    def __init__(self, fleet: Fleet, *, agents: int, turns: int, threads: int, seed: int, patience: float) -> None:
        self._fleet, self.patience = fleet, patience
        each, more = divmod(turns, agents)
        counts = [each + (number < more) for number in range(agents)]
        self.talks = [
            Talk(f"a{number}", deque(messages(f"a{number}", n, seed))) for number, n in enumerate(counts) if n
        ]
        self.turns, self.done = turns, 0
        self.wrong: list[str] = []
        self.troubles = Counter[str]()
        self.slowest = 0.0
        self.is_ending = False  # nothing more is begun
        self.may_go: Callable[[float], bool] = lambda _: True
        self._ready = deque(self.talks)
        self._lock = Lock()
        self._random = Random(seed)
        self._threads = [Thread(target=self._work, args=(Random(f"{seed} {n}"),), daemon=True) for n in range(threads)]

    @property
    def progress(self) -> float:
        return self.done / self.turns

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _work(self, random: Random) -> None:
        with httpx.Client(timeout=TIMEOUT, headers={"x-api-key": self._fleet.key}, trust_env=False) as http:
            while self.done < self.turns and not (self._fleet.is_over.is_set() or self.is_ending):
                with self._lock:
                    talk = self._ready.popleft() if self._ready and self.may_go(self.progress) else None
                if talk is None:
                    time.sleep(0.02)
                    continue
                begun = time.monotonic()
                message = talk.left.popleft()
                try:
                    Client(self, talk, http, random).say(message)
                except WrongAnswerError as error:
                    self.wrong.append(f"{message.tag}: {error}")
                    self._fleet.story.tell(f"WRONG {message.tag}: {error}")
                    with self._lock:
                        self.done += len(talk.left)  # nothing more is said to it
                    talk.left.clear()
                with self._lock:
                    self.done += 1
                    self.slowest = max(self.slowest, time.monotonic() - begun)
                    if talk.left:  # not always the one that was used longest ago: some are still open
                        self._ready.insert(random.randrange(len(self._ready) // 4, len(self._ready) + 1), talk)

    def trouble(self, tag: str, what: str) -> None:
        with self._lock:
            self.troubles[what] += 1
        self._fleet.story.tell(f"{tag}: {what}")

    def worker(self, random: Random) -> str | None:
        urls = [worker.url for worker in self._fleet.workers]
        return random.choice(urls)


class Client:
    """The client of one agent, for one message."""

    def __init__(self, clients: Clients, talk: Talk, http: httpx.Client, random: Random) -> None:
        self._clients, self._talk, self._http, self._random = clients, talk, http, random
        self._end = time.monotonic() + clients.patience

    def say(self, message: Message) -> None:
        talk = self._talk
        if not talk.exists:
            self._ask(f"{talk.agent} is made", "POST", "/v1/agents", {"id": talk.agent})
            talk.exists = True
        promise = Promise(message, tried=[message.tag])
        talk.promises.append(promise)
        getattr(self, f"_{message.way}")(promise)

    def _turn(self, promise: Promise) -> None:
        tag = promise.message.tag
        answer = self._ask(tag, "POST", f"{self._path}/turns", {"text": promise.message.text()}, key=tag)
        self._answered(promise, answer["text"], answer["stopped"]["reason"])

    def _front(self, promise: Promise) -> None:
        tag, history = promise.message.tag, self._talk.history
        history.append({"role": "user", "content": promise.message.text()})
        body = {"model": "any", "max_tokens": 500, "messages": history}
        answer = self._ask(tag, "POST", f"/a/{self._talk.agent}/v1/messages", body, key=tag)
        history.append({"role": "assistant", "content": answer["content"]})
        text = "".join(block.get("text", "") for block in answer["content"])
        self._answered(promise, text, "answered" if answer["stop_reason"] == "end_turn" else answer["stop_reason"])

    def _task(self, promise: Promise) -> None:
        tag = promise.message.tag
        self._ask(tag, "POST", f"{self._path}/tasks", {"text": promise.message.text()}, key=tag)
        promise.acknowledged, promise.kept = True, tag
        while (found := self._ask(tag, "GET", f"{self._path}/tasks"))["state"] != "done":
            if time.monotonic() > self._end:
                raise WrongAnswerError(f"the task does not end: {found}")
            time.sleep(0.1)
        self._answered(promise, found["summary"], "answered")

    def _tell(self, promise: Promise) -> None:
        """A message has no key: each attempt is another message, of which the last is acknowledged."""

        def body(attempt: int) -> Json:
            tag = promise.message.tag + (f".try{attempt}" if attempt else "")
            if tag not in promise.tried:
                promise.tried.append(tag)
            return {"text": promise.message.text(tag)}

        self._ask(promise.message.tag, "POST", f"{self._path}/tell", body)
        promise.acknowledged, promise.kept = True, promise.tried[-1]

    def _answered(self, promise: Promise, text: str, why: str) -> None:
        promise.acknowledged, promise.kept, promise.answer = True, promise.message.tag, text
        if why != "answered" or promise.message.tag not in text.split() or DONE not in text:
            raise WrongAnswerError(f"the answer is {text[:200]!r} ({why})")

    @property
    def _path(self) -> str:
        return f"/v1/agents/{self._talk.agent}"

    def _ask(self, tag: str, method: str, path: str, body: Any = None, *, key: str = "") -> Json:
        """Return the answer, of any worker, after as many attempts as it takes."""
        headers, attempt = {"Idempotency-Key": key} if key else {}, 0
        while True:
            url = self._clients.worker(self._random)
            if url is not None:
                given = body(attempt) if callable(body) else body
                attempt += 1
                try:
                    answer = self._http.request(method, url + path, json=given, headers=headers)
                except httpx.HTTPError as error:
                    self._clients.trouble(tag, type(error).__name__)
                else:
                    if answer.is_success:
                        return answer.json()
                    if answer.status_code in FINAL:
                        raise WrongAnswerError(f"{method} {path} at {url}: {answer.status_code} {answer.text[:500]}")
                    error = answer.json().get("error", {})
                    self._clients.trouble(tag, f"{answer.status_code} {error.get('type')}")
            if time.monotonic() > self._end or self._clients._fleet.is_over.is_set():
                raise WrongAnswerError(f"{method} {path} is not answered in {self._clients.patience:g} s")
            time.sleep(self._random.uniform(0.02, 0.4))
