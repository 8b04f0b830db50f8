"""What goes wrong at random: HTTP errors, connections, and replies that end for an odd reason.

The same seed and the same order of requests give the same faults.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.testing import disconnect, http_error, truncate
from agents.testing.faults import Fault
from tests.standin.reply import Reply

Json = dict[str, Any]
Replies = Callable[[Json], Reply]
RETRY_AFTER_SECONDS = 0.001  # 0 means "not said" to the SDK, which then waits for half a second and more
STATUSES = ("429", "500", "529")
BREAKS = {"disconnect": disconnect, "truncate": truncate}
ODD_REPLIES = ("max_tokens", "refusal", "pause_turn", "empty", "blank", "only_thinking")
SOME = dict.fromkeys((*STATUSES, *BREAKS, *ODD_REPLIES), 0.01)


class Faults:
    """`chances` are probabilities by kind."""

    def __init__(self, seed: int = 0, chances: Mapping[str, float] | None = None) -> None:
        self._random = random.Random(f"faults {seed}")
        self.chances = chances or {}

    def draw(self) -> str:
        dice = self._random.random()
        for kind, chance in self.chances.items():
            dice -= chance
            if dice < 0:
                return kind
        return ""

    def on_the_wire(self, kind: str) -> Fault | None:
        if kind in STATUSES:
            return http_error(int(kind), retry_after=RETRY_AFTER_SECONDS)
        return BREAKS[kind](after=self._random.random()) if kind in BREAKS else None


def odd_reply(kind: str, replies: Replies, params: Json) -> Reply:
    if kind == "refusal":
        return Reply.refusal()
    if kind == "pause_turn":
        searches = any(tool.get("name") == "web_search" for tool in params.get("tools") or ())
        return Reply.pause("news") if searches else Reply("One moment.", stop_reason="pause_turn")
    if kind in {"empty", "blank", "only_thinking"}:
        return {"empty": Reply.empty, "blank": Reply.blank, "only_thinking": Reply.only_thinking}[kind]()
    reply = replies(params)
    if kind == "max_tokens":
        return Reply(*_cut(reply.blocks), stop_reason="max_tokens")
    return reply


def _cut(blocks: Sequence[Json]) -> list[Json]:
    """The last block as far as it came: half of a text, half of a call's last argument."""
    *whole, last = blocks
    if last["type"] == "text":
        return [*whole, {**last, "text": last["text"][: max(1, len(last["text"]) // 2)].rstrip() or "I"}]
    given = dict(last.get("input") or {})
    name = next(reversed(given), None)
    if name is not None:
        value = given.pop(name)
        given |= {name: value[: len(value) // 2]} if isinstance(value, str) else {}
    return [*whole, {**last, "input": given}]


def waiting_server_calls(params: Json) -> list[str]:
    last = params["messages"][-1]
    blocks = last["content"] if last["role"] == "assistant" and isinstance(last["content"], list) else []
    answered = {block.get("tool_use_id") for block in blocks}
    return [block["id"] for block in blocks if block["type"] == "server_tool_use" and block["id"] not in answered]
