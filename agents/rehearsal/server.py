"""The rehearsal: a stand-in for a model that follows rules, behind the Messages API on a loopback port.

It is not a language model. It recognises a few forms of statement and question and uses the agent's real tools to keep
and to find what was said, so that a demo, a tutorial or a test needs no key and no network. Tests script it.

    with Rehearsal() as rehearsal:
        client = Anthropic(base_url=rehearsal.base_url, api_key="none")
        rehearsal.script("Hello.", http_error(529))
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, Self, cast

from agents.rehearsal import rules, usage
from agents.rehearsal.script import Fault, Line, Reply, Said, Script
from agents.rehearsal.serving import MessagesServer, Sending, model_record
from agents.rehearsal.wire import RAW_JSON, ApiError, Json
from pager import tokens
from pager.clock import Clock, SystemClock

DEFAULT_LIMIT_TOKENS = 200_000
MOST_OUTPUT_TOKENS = 32_000
END_TOKENS = 2  # what a reply costs beyond its content


class Rehearsal:
    """Rules, a script for tests, and the server around them. `requests` and `replies` are what went over the wire."""

    def __init__(
        self,
        *,
        limit_tokens: int = DEFAULT_LIMIT_TOKENS,
        record: bool = True,
        port: int = 0,
        clock: Clock | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit_tokens = limit_tokens
        self.requests: list[Json] = []  # as they came, the refused ones too
        self.replies: list[Json] = []  # finished messages, those too that broke on their way
        self.errors: list[Exception] = []  # what a script's function raised
        self._record = record
        self._script = Script()
        self._cache = usage.PromptCache()
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._server = MessagesServer(self, port=port)

    @property
    def base_url(self) -> str:
        return self._server.base_url

    def start(self) -> Self:
        self._server.start()
        return self

    def close(self) -> None:
        self._server.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # for tests

    def script(self, *lines: Said) -> None:
        """What the next requests are answered with, in order; after that the rules answer again."""
        self._script.add(*lines)

    def follow(self, function: Callable[[Json], Line | None] | None) -> None:
        """What every request without a scripted line is answered with. Where it says None, the rules answer."""
        self._script.always = function

    @property
    def unsaid(self) -> int:
        """How many scripted lines nobody has asked for yet."""
        return self._script.left

    # the service

    def create(self, params: Json) -> Sending:
        if self._record:
            self.requests.append(params)
        _check(params)
        line = self._line(params)
        if isinstance(line, Fault) and line.status:
            raise line.error()
        prompt = usage.places(params)
        self._check_window(prompt[-1].tokens, params["max_tokens"])
        broken = line.broken if isinstance(line, Fault) else None
        reply = line.reply if isinstance(line, Fault) else line
        if reply is None:
            ruling = rules.reply(params, self._clock.now().date())
            reply = Reply(*ruling.blocks, stop_reason=ruling.stop_reason)
        message = _message(params, reply, prompt[-1].prefix)
        message["usage"] = {**self._cache.bill(prompt, self._seconds()), **message["usage"], **(reply.usage or {})}
        if self._record:
            self.replies.append(message)
        return Sending(message, broken)

    def count_tokens(self, params: Json) -> int:
        _check({"max_tokens": 1, **params})
        return usage.places(params)[-1].tokens

    def model(self, model_id: str) -> Json:
        return model_record(model_id, max_input_tokens=self.limit_tokens, max_tokens=MOST_OUTPUT_TOKENS)

    def control(self, command: str, body: Json) -> Json:
        raise ApiError(404, f"Not found: POST /control/{command}")

    def _line(self, params: Json) -> Reply | Fault | None:
        try:
            return self._script.next(params)
        except Exception as error:  # the test's own function: its failure is shown, and not asked for again
            self.errors.append(error)
            said = f"the script failed: {type(error).__name__}: {error}"
            raise ApiError(400, said, headers={"x-should-retry": "false"}) from error

    def _check_window(self, input_tokens: int, max_tokens: int) -> None:
        if input_tokens > self.limit_tokens:
            raise ApiError(400, f"prompt is too long: {input_tokens} tokens > {self.limit_tokens} maximum")
        if input_tokens + max_tokens > self.limit_tokens:
            raise ApiError(
                400,
                f"input length and `max_tokens` exceed context limit: {input_tokens} + {max_tokens} > "
                f"{self.limit_tokens}, decrease input length or `max_tokens` and try again",
            )


def _check(params: Json) -> None:
    """What every server of this API refuses. The strict reading is left to the provider, and to the tests' stand-in."""
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if name not in params:
            raise ApiError(400, f"{name}: Field required")
        if not isinstance(params[name], kind):
            raise ApiError(400, f"{name}: Input should be a valid {kind.__name__}")
    if not params["messages"]:
        raise ApiError(400, "messages: at least one message is required")
    waiting: list[str] = []
    for index, message in enumerate(params["messages"]):
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise ApiError(400, f"messages.{index}: role and content: Field required")
        content = cast("str | list[Json]", message["content"])
        parts = [] if isinstance(content, str) else content
        answered = {block.get("tool_use_id") for block in parts if block.get("type") == "tool_result"}
        missing = [call_id for call_id in waiting if call_id not in answered]
        if missing:
            raise _unanswered(index - 1, missing)
        waiting = [block["id"] for block in parts if block.get("type") == "tool_use"]
    if waiting:
        raise _unanswered(len(params["messages"]) - 1, waiting)


def _unanswered(index: int, call_ids: Sequence[str]) -> ApiError:
    return ApiError(
        400,
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(call_ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message.",
    )


def _message(params: Json, reply: Reply, prefix: bytes) -> Json:
    """The finished message, cut where `max_tokens` ends it. The same request gets the same ids."""
    name = blake2b(prefix + json.dumps(params.get("max_tokens")).encode(), digest_size=12).hexdigest()
    content, output_tokens, is_cut = _within(reply, params["max_tokens"])
    for index, block in enumerate(content):
        if block["type"] == "tool_use":
            content[index] = {"id": f"toolu_{name}{index:02}", "caller": {"type": "direct"}, **block}
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": params["model"],
        "content": content,
        "stop_reason": "max_tokens" if is_cut else reply.stop_reason,
        "stop_sequence": None if is_cut else reply.stop_sequence,
        "stop_details": {"type": "refusal"} if reply.stop_reason == "refusal" and not is_cut else None,
        "usage": {"output_tokens": output_tokens, "service_tier": "standard"},
    }


def _within(reply: Reply, max_tokens: int) -> tuple[list[Json], int, bool]:
    """What of a reply fits into so many tokens, its tokens, and whether that is less than all."""
    room = max_tokens - END_TOKENS
    kept: list[Json] = []
    used = 0
    for block in reply.blocks:
        size = _size(block)
        if used + size > room:
            if block["type"] == "text" and (text := tokens.head(block["text"], room - used)):
                kept.append({**block, "text": text})
            return kept, max_tokens, True
        kept.append(dict(block))
        used += size
    return kept, used + END_TOKENS, False


def _size(block: Json) -> int:
    return usage.block_tokens({name: value for name, value in block.items() if name not in {RAW_JSON, "signature"}})


_shared: Rehearsal | None = None
_sharing = Lock()


def shared() -> Rehearsal:
    """The rehearsal of this process, started when it is first asked for. The test fixture puts its own in its place."""
    global _shared  # noqa: PLW0603  one server serves every agent of the process
    with _sharing:
        if _shared is None:
            _shared = Rehearsal(record=False).start()
        return _shared


def share(rehearsal: Rehearsal | None) -> Rehearsal | None:
    """Make this one the shared one, and answer with the one that was."""
    global _shared
    with _sharing:
        before, _shared = _shared, rehearsal
        return before


def main(arguments: Any = None) -> int:
    """`python -m agents.rehearsal`: serve until interrupted. The first line of output is the address."""
    import argparse
    import sys
    import threading

    parser = argparse.ArgumentParser(
        prog="python -m agents.rehearsal", description="A rule-based stand-in for a model."
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, lets the system choose")
    parser.add_argument("--limit-tokens", type=int, default=DEFAULT_LIMIT_TOKENS, help="its window")
    asked = parser.parse_args(arguments)
    with Rehearsal(limit_tokens=asked.limit_tokens, record=False, port=asked.port) as rehearsal:
        sys.stdout.write(f"{rehearsal.base_url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0
