"""Measure the agent: `python -m tests.bench.bench_agent [turn prompt start otel]`

Times are medians; what is compared alternates in this process. Exits with 1 when a limit does not hold.

- turn: `agent.turn(text)` of configs/assistant.yaml, without an embedder, against the request of that turn, sent once
  more with the same client and streamed to its end. Both go to one quick server in its own process. With facts in the
  archive and an embedder each message is embedded and the facts that fit are put behind it: reported without a limit,
  because the bare call has nothing like it.
- prompt: the first request, and what of a thousand turns is read from the provider's cache, as the strict stand-in
  bills it, of the conversation of tests/bench/proof/cost_talk.py with core edited in every fifth turn.
- otel: what a turn takes to find that nobody watches it, against the turn, with OpenTelemetry's SDK loaded as chromadb
  loads it. Reported beside it: a turn whose spans are collected, against one that is not watched.
- start: the help, a conversation up to its first request on the wire (of an agent with a hundred facts and turns, which
  loads its embedder), fifty agents in one process. Each in a process of its own, Python's start included.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any, cast

from agents import Agent
from agents.events import Text, Thinking
from agents.models.anthropic import AnthropicModel
from agents.models.model import FinishedReply
from agents.testing import ScriptedServer
from agents.testing.messages_server import MessagesServer, Sending
from pager import Prefetch
from pager.types import Json
from tests.bench.figures import ROOT, Figure, Pair, pair, run, timed
from tests.bench.grown import YOUNG, Talk, Young, archive_all
from tests.bench.proof import cost
from tests.bench.proof.sides import Side
from tests.bench.quick_server import Quick, QuickServer
from tests.bench.texts import Texts

ASSISTANT = ROOT / "configs" / "assistant.yaml"
OLD, FACTS, TURN_ROUNDS, WARM_UP = 10_000, 100, 300, 20
PROMPT_TURNS, EDIT_EVERY, WINDOW = 1_000, 5, 32_000
AGENTS, STARTS = 50, 9
LOOKS = 1_000


class Repeating(AnthropicModel):
    """Can send the last request again by the SDK alone. `seconds` counts the time inside the SDK."""

    last: Json
    seconds = 0.0

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        self.last = params
        events = super().stream(params)
        while True:
            start = time.perf_counter()
            try:
                event = next(events)
            except StopIteration as end:
                return end.value
            finally:
                self.seconds += time.perf_counter() - start
            yield event

    def again(self) -> None:
        client: Any = self._client
        with client.messages.stream(**self._params(self.last)) as stream:
            for _ in stream:
                pass
            stream.get_final_message()


def turn(work: Path) -> list[Figure]:
    with QuickServer() as server:
        young, young_beside = _against_the_sdk(work / "young", server.base_url)
        old, old_beside = _against_the_sdk(work / "old", server.base_url, turns=OLD)
        recalling, _ = _against_the_sdk(work / "recalling", server.base_url, facts=FACTS)
    return [
        young.medians("a turn against the bare SDK call, at 10 turns", 1.5),
        young.means("... the mean of all"),
        old.medians("a turn against the bare SDK call, at 10,000 turns", 1.5),
        old.means("... the mean of all, evictions among them"),
        _growth(young_beside, old_beside),
        recalling.medians("a turn with recalled facts (100), at 10 turns"),
    ]


def _growth(young: Sequence[float], old: Sequence[float]) -> Figure:
    """Compare what a turn takes beside its call, in a long conversation and in a short one."""
    seconds = [median(old), median(young)]
    measured = "{:.2f} ms at 10,000, {:.2f} ms at 10".format(*(1000 * each for each in seconds))
    return Figure("... beside the SDK's call, at 10,000 turns against at 10", measured, seconds[0] / seconds[1], 1.5)


def _against_the_sdk(work: Path, base_url: str, *, turns: int = YOUNG, facts: int = 0) -> tuple[Pair, list[float]]:
    """Compare a turn with its request alone. Return also what each turn took beside the SDK's work."""
    texts, model, beside = Texts(1), Repeating("m", base_url=base_url), list[float]()
    file = work / "agent.yaml"
    work.mkdir()
    embedder = "default" if facts else "none"  # or it embeds in the background what has left the prompt
    settings = {"extends": str(ASSISTANT), "name": "assistant", "archival": {"embedder": embedder}}
    file.write_text(json.dumps(settings), encoding="utf-8")

    def start(home: Path, opening: ExitStack) -> Callable[[], float]:
        nonlocal model
        model = Repeating("m", base_url=base_url)
        agent = opening.enter_context(Agent.load(file, home=home, environ={}, model=model))

        def take() -> float:
            before = model.seconds
            seconds = timed(agent.turn, texts.said(1))
            beside.append(seconds - (model.seconds - before))
            return seconds

        return take

    with Agent.load(file, home=work / "seed", environ={}, model=model) as agent:
        archive_all(agent.memory, texts.facts(facts))
        Talk(agent.memory).turns_in_batches(turns)
    with ExitStack() as opening:
        young = opening.enter_context(closing(Young(work / "seed", start)))
        ours = young.turn if turns == YOUNG else start(work / "seed", opening)
        ours()
        names = ("ours", "the bare call")
        return pair(ours, lambda: timed(model.again), names, rounds=TURN_ROUNDS, warm_up=WARM_UP), beside


def prompt(work: Path) -> list[Figure]:
    with ScriptedServer() as server:
        server.script("Hello.")
        with Agent.load(ASSISTANT, home=work, environ={"ANTHROPIC_BASE_URL": server.base_url}) as agent:
            tokens = agent.turn("hello").usage.whole_input
    what = 'first request of configs/assistant.yaml, "hello"'
    return [Figure(what, "by tiktoken", tokens, 1_600, " tokens"), _not_cached(work)]


def _not_cached(work: Path) -> Figure:
    with cost.provider(WINDOW, EDIT_EVERY) as standin:
        bill, _ = cost.ours(work / "cached", standin, PROMPT_TURNS, WINDOW)
    assert standin.rejected == []
    missed = 100 * (1 - bill.read / bill.input)
    measured = f"{bill.requests:,} requests, {bill.input:,} tokens of input, {bill.evictions} evictions"
    return Figure("input not read from cache, 1,000 turns, an edit every 5th, 32k", measured, missed, 10, " %")


class Noting(Quick):
    """Notes when the first request comes."""

    asked_at: float | None = None

    def create(self, params: Json) -> Sending:
        self.asked_at = self.asked_at or time.perf_counter()
        return super().create(params)


def otel(work: Path) -> list[Figure]:
    import opentelemetry.sdk.trace as sdk
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, api = sdk.TracerProvider(), cast(Any, trace)
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    texts = Texts(1)
    with QuickServer() as server, ExitStack() as opening:
        model = opening.enter_context(closing(Repeating("m", base_url=server.base_url)))
        agent = opening.enter_context(
            Agent(name="a", model=model, home=work / "home", embedder=None, window=WINDOW, prefetch=Prefetch(k=0))
        )

        def watched() -> float:
            api._TRACER_PROVIDER = provider
            try:
                return timed(agent.turn, texts.said(1))
            finally:
                api._TRACER_PROVIDER = None

        def look() -> None:
            for _ in range(LOOKS):
                agent._observed(nothing, "")

        nothing = (event for event in ())
        quiet = pair(
            lambda: timed(look) / LOOKS, lambda: timed(agent.turn, texts.said(1)), ("to look", "the turn"),
            rounds=TURN_ROUNDS, warm_up=WARM_UP,
        )  # fmt: skip
        names = ("watched", "not watched")
        both = pair(watched, lambda: timed(agent.turn, texts.said(1)), names, rounds=TURN_ROUNDS, warm_up=WARM_UP)
    return [quiet.rounds("to find that nobody watches, against a turn", 0.01), both.rounds("a turn with spans")]


def start(work: Path) -> list[Figure]:
    selfpager = Path(sys.executable).with_name("selfpager")
    help_seconds = [timed(_run, [selfpager, "--help"]) for _ in range(STARTS + 1)]
    service = Noting()
    with MessagesServer(service) as server:
        environ, home = {**os.environ, "ANTHROPIC_BASE_URL": server.base_url}, work / "home"
        with Agent.load(ASSISTANT, home=home, environ=environ) as agent:
            texts = Texts(1)
            archive_all(agent.memory, texts.facts(100))
            Talk(agent.memory, texts).turns_in_batches(100)
        seconds: list[float] = []
        for _ in range(STARTS + 1):
            service.asked_at, begun = None, time.perf_counter()
            _run([selfpager, "chat", ASSISTANT, "--home", home], input=b"hello\n", env=environ)
            assert service.asked_at is not None
            seconds.append(service.asked_at - begun)
        with Side.start("agents", server.base_url, work / "many", work) as side:
            sizes = [side.ask("open_more", count=count)["memory_mb"] for count in (1, AGENTS - 1)]
    span = f"from {1000 * min(seconds):.0f} to {1000 * max(seconds):.0f} ms"
    grew = f"{sizes[0]:.0f} MB with one, {sizes[-1]:.0f} MB with {AGENTS}"
    each = (sizes[-1] - sizes[0]) / (AGENTS - 1)
    return [
        Figure("selfpager --help", "", median(help_seconds[1:]), 0.3, " s"),
        Figure("selfpager chat, to the first request on the wire", span, median(seconds[1:]), 2.5, " s"),
        Figure("memory of each open agent above the first", grew, each, 50, " MB"),
    ]


def _run(command: list[str | Path], **options: Any) -> None:
    subprocess.run(command, check=True, capture_output=True, **options)


if __name__ == "__main__":
    sys.exit(run({"turn": turn, "prompt": prompt, "otel": otel, "start": start}, sys.argv[1:], "anthropic"))
