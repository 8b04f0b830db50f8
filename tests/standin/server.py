"""The strict stand-in over real HTTP, streaming included, in this process or in one of its own.

    with StandinProcess(limit=20_000, seed=3, faults="some") as standin:
        client = Anthropic(base_url=standin.base_url, api_key="none")
        standin.script(Reply("Hello."), http_error(529))
        assert standin.log()["rejected"] == []

It gives the scripted replies, then "ok" or those of `replies="module:function"`. Faults come at random by the seed
(tests.standin.faults): `faults="some"`, or `429=0.05,disconnect=0.02`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from agents.testing.faults import Fault
from agents.testing.messages_server import Sending, model_record
from agents.testing.wire import ApiError
from pager.types import Json
from tests.standin.api import Standin
from tests.standin.errors import Rejected
from tests.standin.faults import Faults, Replies, odd_reply, read_profile, waiting_server_calls
from tests.standin.process import ServerProcess, named
from tests.standin.reply import Reply, search_result


def ok(_: Json) -> Reply:
    return Reply("ok")


class MinuteHand:
    """The cache's clock, moved by whoever tests."""

    minutes = 0.0

    def __call__(self) -> float:
        return self.minutes


class StandinService:
    """The stand-in as `MessagesServer` asks it. `rejected` are the answers that no client should ever get."""

    def __init__(
        self,
        standin: Standin,
        *,
        faults: Faults | None = None,
        replies: Replies = ok,
        limits: dict[str, int] | None = None,
        clock: MinuteHand | None = None,
    ) -> None:
        self.standin = standin
        self._clock = clock or MinuteHand()
        self.rejected: list[Json] = []
        self.drawn: Counter[str] = Counter()
        self._faults = faults or Faults(0)
        self.replies = replies
        self._limits = {"": standin.limit_tokens, **(limits or {})}
        self._script: deque[Reply | Fault] = deque()
        self._asked = 0

    def script(self, *lines: Reply | Fault) -> None:
        self._script.extend(lines)

    # what MessagesServer asks

    def create(self, params: Json) -> Sending:
        self._asked += 1
        line: Reply | Fault | None = self._script.popleft() if self._script else None
        kind = "" if line else self._faults.draw()
        fault = line if isinstance(line, Fault) else self._faults.on_the_wire(kind)
        if kind:
            self.drawn[kind] += 1
        if fault and fault.kind == "refuse":
            raise fault.error()
        said = line if isinstance(line, Reply) else None
        # What the rules say is asked for only when the request was found valid.
        reply = said or (lambda known: self._reply(known, kind))
        try:
            message = self._checked(params, lambda known: self.standin.create(known, reply))
        except ApiError:
            if line:
                self._script.appendleft(line)
            raise
        return message, fault

    def count_tokens(self, params: Json) -> int:
        return self._checked(params, self.standin.count_tokens)

    def model(self, model_id: str) -> Json:
        return model_record(model_id, max_input_tokens=self._limit(model_id))

    def control(self, command: str, body: Json) -> Json:
        if command == "script":
            self.script(*map(_read_line, body["lines"]))
        elif command == "faults":
            self._faults.chances = read_profile(body["profile"])
        elif command == "limit":
            self._limits[body["model"]] = body["tokens"]
        elif command == "wait":
            self._clock.minutes += body["minutes"]
        elif command == "requests":
            start = body.get("start", 0)
            return {"requests": self.standin.requests[start:], "replies": self.standin.replies[start:]}
        elif command != "log":
            raise ApiError(404, f"Not found: POST /control/{command}")
        return {
            "asked": self._asked,
            "accepted": len(self.standin.requests),
            "rejected": self.rejected,
            "faults": self.drawn,
            "unsaid": len(self._script),
        }

    # how

    def _limit(self, model: str) -> int:
        return self._limits.get(model, self._limits[""])

    def _checked(self, params: Json, ask: Callable[[Json], Any]) -> Any:
        known = {name: value for name, value in params.items() if name != "stream"}
        self.standin.limit_tokens = self._limit(str(params.get("model")))
        try:
            return ask(known)
        except Rejected as error:
            self.rejected.append({"asked": self._asked, "message": error.message})
            raise ApiError(error.status, error.message, error_type=error.type) from error

    def _reply(self, params: Json, kind: str) -> Reply:
        reply = odd_reply(kind, self.replies, params)
        waiting = waiting_server_calls(params)
        if not waiting or reply.stop_reason == "refusal":
            return reply
        # A paused turn goes on: first what its server tools have found.
        return Reply(*map(search_result, waiting), *(reply.blocks or ("Done.",)), stop_reason=reply.stop_reason)


# lines of a script, as JSON


def write_line(line: Reply | Fault | str) -> Json:
    if isinstance(line, Fault):
        if line.reply:
            raise ValueError(
                "this stand-in breaks what it would have said; script the reply without a fault, or a fault"
            )
        return {"fault": asdict(line)}
    return {"reply": asdict(Reply(line) if isinstance(line, str) else line)}


def _read_line(raw: Json) -> Reply | Fault:
    if "fault" in raw:
        return Fault(**raw["fault"])
    said = dict(raw["reply"])
    return Reply(*said.pop("blocks"), **said)


# a process of its own


class StandinProcess(ServerProcess):
    """The stand-in in another process, with scripted and random faults, and its own account of the requests."""

    def __init__(
        self, *, limit: int, seed: int = 0, faults: str = "none", replies: str = f"{__name__}:ok",
        models: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        given = {"limit": limit, "seed": seed, "faults": faults, "replies": replies, "models": models or {}}
        super().__init__(f"{__name__}:service_of", **given)

    def script(self, *lines: Reply | Fault | str) -> None:
        self.control("script", lines=[write_line(line) for line in lines])

    def faults(self, profile: str) -> None:
        self.control("faults", profile=profile)

    def limit(self, tokens: int, model: str = "") -> None:
        """The window of a model, or of all that have none of their own."""
        self.control("limit", tokens=tokens, model=model)

    def wait(self, minutes: float) -> None:
        self.control("wait", minutes=minutes)

    def log(self) -> Json:
        """asked, accepted, rejected (with the messages), faults by kind, unsaid."""
        return self.control("log")

    def requests(self, start: int = 0) -> list[Json]:
        return self.control("requests", start=start)["requests"]

    def replies(self, start: int = 0) -> list[Json]:
        return self.control("requests", start=start)["replies"]


def service_of(*, limit: int, seed: int, faults: str, replies: str, models: dict[str, int]) -> StandinService:
    """Return the service of a process. `replies` is module:function."""
    clock = MinuteHand()
    standin = Standin(limit_tokens=limit, seed=seed, minutes=clock)
    return StandinService(standin, faults=Faults(seed, faults), replies=named(replies), limits=models, clock=clock)
