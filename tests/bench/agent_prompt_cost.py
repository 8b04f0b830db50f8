"""What the prompts of an agent cost: the first one, and what of a thousand turns is read from the provider's cache.

The strict stand-in counts and bills, in a process of its own. Every fifth turn the agent edits a core block.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agents import Agent
from agents.testing import ScriptedServer
from pager import Usage
from tests.bench.figures import Figure
from tests.bench.texts import Texts
from tests.standin import Reply, call
from tests.standin.server import StandinProcess

ASSISTANT = Path(__file__).parents[2] / "configs" / "assistant.yaml"
TURNS, EDIT_EVERY, WINDOW = 1_000, 5, 32_000
Json = dict[str, Any]


def figures(work: Path) -> list[Figure]:
    return [_first_request(work / "first"), *_cached(work / "cached")]


def _first_request(home: Path) -> Figure:
    with ScriptedServer() as server:
        server.script("Hello.")
        with Agent.load(ASSISTANT, home=home, environ={"ANTHROPIC_BASE_URL": server.base_url}) as agent:
            turn = agent.turn("hello")
    tokens = turn.usage.whole_input
    return Figure('first request of configs/assistant.yaml, "hello"', "by tiktoken", tokens, 1_600, " tokens")


def _cached(work: Path) -> list[Figure]:
    work.mkdir()
    file = work / "x.yaml"
    with StandinProcess(limit=WINDOW, replies="tests.bench.agent_prompt_cost:reply") as standin:
        config = {
            "name": "x",
            "model": {"id": "m", "base_url": standin.base_url},
            "window": {"limit_tokens": WINDOW},
            "core": {"blocks": {"now": {"description": "What is going on.", "limit_tokens": 200}}},
            "archival": {"embedder": "none"},
        }
        file.write_text(json.dumps(config), encoding="utf-8")
        texts, total, requests = Texts(5), Usage(), 0
        with Agent.load(file, home=work / "home", environ={}) as agent:
            for number in range(1, TURNS + 1):
                turn = agent.turn(f"turn {number}: {texts.said(3)}")
                total = _sum(total, turn.usage)
                requests += len(turn.steps)
            epochs = sum(move.event == "epoch" for move in agent.memory.ledger(limit=100_000))
        assert standin.log()["rejected"] == []
    missed = 100 * (1 - total.cache_read_input_tokens / total.whole_input)
    told = f"{requests:,} requests, {total.whole_input:,} tokens of input, {epochs} epochs"
    return [Figure("input not read from cache, 1,000 turns, an edit every 5th, 32k", told, missed, 10, " %")]


def reply(params: Json) -> Reply:
    """What the model says: an edit of core in every fifth turn, and some sentences. By the turn's number alone."""
    message = params["messages"][-1]
    said = [block["text"] for block in message["content"] if block["type"] == "text"]
    number = next((int(found[1]) for text in said if (found := re.match(r"turn (\d+):", text))), 0)
    if not number:
        return Reply(Texts(len(params["messages"])).said(2))
    if number % EDIT_EVERY:
        return Reply(Texts(number).said(2 + number % 5))
    now, before = f"state {number}", f"state {number - EDIT_EVERY}"
    if number == EDIT_EVERY:
        return Reply(call("core_append", {"block": "now", "text": now}))
    return Reply(call("core_replace", {"block": "now", "old_text": before, "new_text": now}))


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_input_tokens + other.cache_read_input_tokens,
        one.cache_creation_input_tokens + other.cache_creation_input_tokens,
    )
