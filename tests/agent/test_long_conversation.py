"""Thousands of turns over real HTTP against the strict stand-in, with everything in them that may go wrong."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents.agent import Agent
from agents.models.anthropic import AnthropicModel
from agents.models.patience import Patience
from pager.types import Json
from tests.standin import Standin
from tests.standin.faults import SOME, Faults
from tests.standin.server import StandinServer
from tests.support.chatter import Work, replies, words
from tests.support.clock import HandClock
from tests.support.stage import build

WINDOW, SMALL_WINDOW = 24_000, 10_000
TURNS = 1_000
# A model, its window, and the share of the turns that it answers: the window shrinks, and grows again.
STAYS = [("m", WINDOW, 0.4), ("small", SMALL_WINDOW, 0.25), ("m", WINDOW, 0.35)]

pytestmark = pytest.mark.long


def said_in(turn: int, random: Random) -> str:
    """What the person says: mostly little, sometimes much, once a megabyte."""
    length = 180_000 if turn == TURNS // 3 else random.choice([5, 20, 60, 60, 200]) if turn % 50 else 4_000
    return f"turn {turn}: {words(random, length)}"


def test_a_thousand_turns(tmp_path: Path) -> None:
    random, work = Random(5), Work()
    options: dict[str, Any] = {"patience": Patience(10**6, wait=lambda _: None), "clock": HandClock()}
    texts: list[str] = []
    ends: Counter[str] = Counter()
    provider = Standin(limit_tokens=WINDOW, seed=5)
    windows = {"small": SMALL_WINDOW}
    with StandinServer(provider, faults=Faults(5, SOME), replies=replies, windows=windows) as standin:
        for name, window, share in STAYS:
            model = AnthropicModel(name, base_url=standin.base_url)
            with ExitStack() as opened:
                opened.callback(model.close)
                agent = opened.enter_context(build(tmp_path, model, *work.tools(), window=window, **options))
                for _ in range(round(share * TURNS)):
                    texts.append(said_in(len(texts), random))
                    ends[agent.turn(texts[-1]).stopped.reason] += 1
                assert agent.memory.check() == []
    assert standin.rejected == []  # none over the window either
    assert set(standin.drawn) == set(SOME)
    assert len(texts) == TURNS == ends.total()
    assert {"answered", "cut", "refused"} <= set(ends) <= {"answered", "cut", "refused", "repeated"}
    unheard = AnthropicModel("m", base_url=standin.base_url)
    with build(tmp_path, unheard, *work.tools(), window=WINDOW, **options) as agent:
        judge(agent, texts, work)


def judge(agent: Agent, texts: list[str], work: Work) -> None:
    """Every message is there once, in order, and every call was answered once and did what its result says."""
    memory = agent.memory
    newest = int(memory.append_user("the end")[1:])
    steps = [memory.history.blocks_of(f"s{number}") for number in range(1, newest)]
    spoken = [text_of({"content": blocks[:1]}) for blocks in steps]
    assert [text for text in spoken if text.startswith("turn ")] == texts
    results = {block["tool_use_id"]: block for blocks in steps for block in blocks if block["type"] == "tool_result"}
    assert len(results) == sum(block["type"] == "tool_result" for blocks in steps for block in blocks)
    called = [block for blocks in steps for block in blocks if block["type"] == "tool_use"]
    assert {block["id"] for block in called} >= results.keys()
    ticked = [call["input"].get("mark") for call in called if text_of(results.get(call["id"])).startswith("ticked")]
    assert Counter(ticked) == Counter(work.ticked)
    assert set(work.ticked.values()) == {1}
    moves = Counter(move.event for move in memory.ledger())
    for kind in ("archive", "supersede", "core", "evict", "epoch", "spill", "notice", "page_in", "pin", "drop"):
        assert moves[kind] > 3, f"{kind} hardly happened: {moves}"


def text_of(result: Json | None) -> str:
    content: list[Any] = result.get("content", []) if result else []
    return "".join(inner.get("text", "") for inner in content)
