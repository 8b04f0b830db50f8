"""The strict stand-in over real HTTP, streaming included, in this process or in one of its own.

    with StandinProcess(limit=20_000, seed=3, faults="some") as standin:
        client = Anthropic(base_url=standin.base_url, api_key="none")
        standin.script(Reply("Hello."), http_error(529))
        assert standin.log()["rejected"] == []

It says what is scripted, then what the rehearsal's rules say (`--replies rules`), "ok", or what a function
`module:function` says. Faults come at random by the seed (tests.standin.faults): `--faults some`, or
`429=0.05,disconnect=0.02`. The process ends when its stdin closes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import urllib.request
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any, Self

from agents.rehearsal import rules
from agents.rehearsal.script import Fault
from agents.rehearsal.serving import Break, MessagesServer, Sending, model_record
from agents.rehearsal.wire import ApiError
from tests.standin.api import Standin
from tests.standin.errors import Rejected
from tests.standin.faults import Faults, Replies, odd_reply, read_profile, waiting_server_calls
from tests.standin.reply import Reply, search_result, thinking

Json = dict[str, Any]
TODAY = date(2026, 5, 3)


def by_rules(params: Json) -> Reply:
    """What the rehearsal says, with thinking that this stand-in signs."""
    ruling = rules.reply(params, TODAY)
    said = [thinking(block["thinking"]) if block["type"] == "thinking" else block for block in ruling.blocks]
    blocks = [{**block, "id": None} if block["type"] == "tool_use" else block for block in said]
    return Reply(*blocks, stop_reason=ruling.stop_reason)


def ok(params: Json) -> Reply:
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
        replies: Replies = by_rules,
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
        if fault and fault.status:
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
        return Sending(message, fault.broken if fault else None)

    def count_tokens(self, params: Json) -> int:
        return self._checked(params, self.standin.count_tokens)

    def model(self, model_id: str) -> Json:
        return model_record(model_id, max_input_tokens=self._limit(model_id), max_tokens=32_000)

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
        broken = {"kind": line.broken.kind, "after": line.broken.after} if line.broken else None
        return {
            "fault": {"status": line.status, "message": line.message, "retry_after": line.retry_after},
            "broken": broken,
        }
    return {"reply": asdict(Reply(line) if isinstance(line, str) else line)}


def _read_line(raw: Json) -> Reply | Fault:
    if "fault" in raw:
        broken = raw["broken"]
        error = ApiError(529, "Overloaded") if broken and broken["kind"] == "error" else None
        return Fault(**raw["fault"], broken=Break(**broken, error=error) if broken else None)
    said = raw["reply"]
    reply = Reply(*said["blocks"], stop_reason=said["stop_reason"], output_tokens=said["output_tokens"])
    for name in ("stop_sequence", "repeats_ids"):
        object.__setattr__(reply, name, said[name])
    return reply


# a process of its own


class StandinProcess:
    """The stand-in in another process. `scripted` and random faults, and its own account of what it was asked."""

    def __init__(
        self,
        *,
        limit: int,
        seed: int = 0,
        faults: str = "none",
        replies: str = "rules",
        models: dict[str, int] | None = None,
    ) -> None:
        self._command = [
            *(sys.executable, "-m", "tests.standin.server", "--limit", str(limit), "--seed", str(seed)),
            *("--faults", faults, "--replies", replies),
            *(word for name, tokens in (models or {}).items() for word in ("--model", f"{name}={tokens}")),
        ]
        self.base_url = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            self._command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            self.__exit__()
            raise RuntimeError(f"the stand-in did not start: {' '.join(self._command)}")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        with self._process as process:  # closes its stdin, which ends it, and waits
            assert process.stdin is not None
            process.stdin.close()

    def script(self, *lines: Reply | Fault | str) -> None:
        """What the next requests are answered with, in order."""
        self._control("script", lines=[write_line(line) for line in lines])

    def faults(self, profile: str) -> None:
        self._control("faults", profile=profile)

    def limit(self, tokens: int, model: str = "") -> None:
        """The window of a model, or of all that have none of their own."""
        self._control("limit", tokens=tokens, model=model)

    def wait(self, minutes: float) -> None:
        """So much later for the prompt cache."""
        self._control("wait", minutes=minutes)

    def log(self) -> Json:
        """asked, accepted, rejected (with the messages), faults by kind, unsaid."""
        return self._control("log")

    def requests(self, start: int = 0) -> list[Json]:
        """The accepted requests, as they came."""
        return self._control("requests", start=start)["requests"]

    def replies(self, start: int = 0) -> list[Json]:
        return self._control("requests", start=start)["replies"]

    def _control(self, command: str, **body: Any) -> Any:
        request = urllib.request.Request(
            f"{self.base_url}/control/{command}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return json.load(answer)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.standin.server")
    parser.add_argument("--limit", type=int, required=True, help="the window, in tokens")
    parser.add_argument("--seed", type=int, default=0, help="of the tokenizer and of the faults")
    parser.add_argument("--faults", default="none")
    parser.add_argument("--replies", default="rules", help="rules, ok, or module:function")
    parser.add_argument("--model", action="append", default=[], help="name=limit: a model with a window of its own")
    parser.add_argument("--port", type=int, default=0)
    asked = parser.parse_args()
    limits = {name: int(tokens) for name, _, tokens in (each.partition("=") for each in asked.model)}
    clock = MinuteHand()
    service = StandinService(
        Standin(limit_tokens=asked.limit, seed=asked.seed, minutes=clock),
        faults=Faults(asked.seed, asked.faults),
        replies=_replies(asked.replies),
        limits=limits,
        clock=clock,
    )
    with MessagesServer(service, port=asked.port) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        sys.stdin.read()


def _replies(named: str) -> Replies:
    if named in {"rules", "ok"}:
        return by_rules if named == "rules" else ok
    module, _, function = named.partition(":")
    return getattr(importlib.import_module(module), function)


if __name__ == "__main__":
    main()
