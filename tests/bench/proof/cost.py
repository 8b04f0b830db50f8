"""Cost of memory: what one conversation costs under each policy, billed by the strict stand-in as the provider would.

Ours is the real agent over HTTP; each rival is the bare SDK with the policy before it. Each has a provider of its own,
so that no cache helps another. `figures` gives plain values; how they read is in `tables`.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anthropic

from agents import Agent
from agents.events import Replied
from agents.meter import Prices
from agents.models.anthropic import make_client
from pager import Usage
from pager.types import Json
from tests.bench.proof import cost_talk
from tests.bench.proof.cost_rivals import RERENDER, RIVALS, Everything, Frame
from tests.standin import Standin
from tests.standin.server import StandinServer

PRICES = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
OURS = "ours"
ENDLESS = 100_000_000  # of a window that nobody has: what "everything" would cost in it
MODEL = "m"


@dataclass
class Bill:
    """The sum of what the replies said that they cost."""

    requests: int = 0
    input: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    largest: int = 0
    usd: float = 0.0
    turns: int = 0
    overflows: int = 0
    evictions: int = 0

    def add(self, usage: Usage) -> None:
        self.requests += 1
        self.input += usage.whole_input
        self.read += usage.cache_read_input_tokens
        self.written += usage.cache_creation_input_tokens
        self.output += usage.output_tokens
        self.largest = max(self.largest, usage.whole_input)
        self.usd += PRICES.usd(usage)


def figures(work: Path, *, turns: int, window: int, fewer: int) -> Json:
    """Bill every policy over so many turns; with more edits, over `fewer`, only ours and who pays for edits."""
    bills, frame = _bills(work, RIVALS, turns, window, cost_talk.EDIT_EVERY)
    with provider(ENDLESS) as standin:
        bills["everything, in a window without end"] = _rival(Everything(frame), standin, turns)
    more_often = {
        str(every): {"turns": fewer, "policies": _plain(_bills(work, [RERENDER], fewer, window, every)[0])}
        for every in cost_talk.OFTENER
    }
    setting = {"turns": turns, "window": window, "usable": frame.usable_tokens, "edit_every": cost_talk.EDIT_EVERY}
    return {**setting, "policies": _plain(bills), "oftener": more_often}


def _bills(work: Path, rivals: Collection[str], turns: int, window: int, every: int) -> tuple[dict[str, Bill], Frame]:
    bills: dict[str, Bill] = {}
    with provider(window, every) as standin:
        bills[OURS], frame = ours(work / f"every {every}", standin, turns, window)
        assert standin.rejected == []
    for name in rivals:
        with provider(window, every) as standin:
            bills[name] = _rival(RIVALS[name](frame), standin, turns)
    return bills, frame


def _plain(bills: dict[str, Bill]) -> Json:
    return {name: asdict(bill) for name, bill in bills.items()}


def provider(window: int, every: int = cost_talk.EDIT_EVERY) -> StandinServer:
    return StandinServer(Standin(limit_tokens=window), replies=partial(cost_talk.reply, every=every))


def ours(work: Path, standin: StandinServer, turns: int, window: int) -> tuple[Bill, Frame]:
    work.mkdir()
    block = {"description": "What is going on.", "value": cost_talk.initial_core(), "limit_tokens": window // 32}
    config = {
        "name": "ours",
        "model": {"id": MODEL, "base_url": standin.base_url},
        "window": {"limit_tokens": window},
        "core": {"blocks": {cost_talk.BLOCK: block}},
        "archival": {"embedder": "none"},
    }
    file = work / "ours.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    bill = Bill()
    with Agent.load(file, home=work / "home", environ={}) as agent:
        usable_tokens = agent.memory.limits.usable_tokens
        for number in range(1, turns + 1):
            for event in agent.stream(cost_talk.asked(number)):
                if isinstance(event, Replied) and event.usage:
                    bill.add(event.usage)
            bill.turns += 1
            standin.api.minutes += cost_talk.pause(number)
        bill.evictions = sum(move.event == "epoch" for move in agent.memory.ledger(limit=100_000)) - 1
    first = standin.api.requests[0]
    marked = [first["system"][0], first["messages"][0]["content"][0]]
    instructions, core = ({name: block[name] for name in ("type", "text")} for block in marked)
    assert cost_talk.state(0) in core["text"]
    return bill, Frame(first["tools"], instructions, core, first["max_tokens"], usable_tokens)


def _rival(rival: Everything, standin: StandinServer, turns: int) -> Bill:
    bill = Bill()
    with make_client("anthropic", base_url=standin.base_url, api_key=None, read_seconds=None) as client:
        for number in range(1, turns + 1):
            try:
                _turn(rival, client, bill, number)
            except anthropic.BadRequestError as error:
                if "exceed context limit" not in str(error) and "prompt is too long" not in str(error):
                    raise
                bill.overflows = turns - number + 1
                break
            bill.turns += 1
            standin.api.minutes += cost_talk.pause(number)
    return bill


def _turn(rival: Everything, client: anthropic.Anthropic, bill: Bill, number: int) -> None:
    """Take one turn, with the edit that the model may ask for."""

    def count(params: Json) -> int:
        countable = {name: value for name, value in params.items() if name != "max_tokens"}
        return client.messages.count_tokens(model=MODEL, **countable).input_tokens

    rival.says({"role": "user", "content": [{"type": "text", "text": cost_talk.asked(number)}]})
    while True:
        before = len(rival.turns)
        rival.make_room(count)
        bill.evictions += len(rival.turns) < before
        message: Any = client.messages.create(model=MODEL, **rival.params())
        usage = Usage.read(message.usage.to_dict())
        assert usage
        bill.add(usage)
        rival.says({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return
        core = rival.frame.core_after(number)
        result = {"type": "tool_result", "tool_use_id": calls[0].id, "content": core["text"]}
        rival.says({"role": "user", "content": [result]})
        rival.edited(core)
