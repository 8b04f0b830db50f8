"""Events of turns are kept for an hour, and not without end."""

from __future__ import annotations

import tracemalloc
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from agents.agent import Agent
from agents.events import Text
from agents.models.model import FinishedReply, ModelRefusedError
from agents.serve import records
from agents.serve.begun import go_on
from agents.serve.errors import ApiError
from agents.serve.limits import ServeLimits
from agents.serve.records import Record
from agents.serve.runs import Run, Runs
from pager.types import Json
from tests.bench.reading_cost import Parrot
from tests.support.clock import HandClock


def ended(runs: Runs, key: str, text: str = "x") -> Run:
    run, is_new = runs.begin("notes", key, "body")
    assert is_new
    run.add(Text(text))
    run.end({"text": text}, runs.now())
    runs.keep("notes", run)
    return run


def test_a_run_is_forgotten_after_its_time_and_one_at_work_is_not() -> None:
    clock = HandClock(tick=timedelta(0))
    runs = Runs(ServeLimits(keep_seconds=3600), clock)
    old = ended(runs, "old")
    at_work, _ = runs.begin("notes", "at work", "body")
    clock.set(clock.now() + timedelta(seconds=3500))
    ended(runs, "later")
    assert runs.find("notes", "old") is old
    clock.set(clock.now() + timedelta(seconds=200))
    ended(runs, "last")
    assert [runs.find("notes", key) is None for key in ("old", "later", "last")] == [True, False, False]
    assert runs.find("notes", "at work") is at_work


def test_all_together_have_a_limit_in_bytes() -> None:
    runs = Runs(ServeLimits(keep_bytes=9000), HandClock())
    for number in range(10):
        ended(runs, str(number), "x" * 400)
    kept = [number for number in range(10) if runs.find("notes", str(number))]
    assert kept == [7, 8, 9]


def test_a_failed_run_is_begun_again() -> None:
    runs = Runs(ServeLimits(), HandClock())
    run, _ = runs.begin("notes", "k", "body")
    run.add(Text("x"))
    run.fail(RuntimeError(), runs.now())
    again, is_new = runs.begin("notes", "k", "body")
    assert is_new
    assert again is not run
    assert runs.begin("notes", "k", "body") == (again, False)
    with pytest.raises(ApiError):
        runs.begin("notes", "k", "other")


def test_what_runs_keep_in_memory_is_counted() -> None:
    """The limit is one of memory: what Python needs for a short event is several times its text."""
    runs, each = Runs(ServeLimits(), HandClock()), 200
    tracemalloc.start()
    try:
        counted, before = 0, tracemalloc.get_traced_memory()[0]
        for number in range(each):
            run, _ = runs.begin("notes", f"key {number}", "digest")
            for piece in range(8):
                run.add(Text(f"a piece {number} {piece}"))
            run.end(
                {"text": f"an answer {number}", "steps": [f"s{number}"], "usage": {"output_tokens": number}}, runs.now()
            )
            runs.keep("notes", run)
            counted += run.size
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.6 < counted / taken < 1.7


class Left(Parrot):
    """A model whose first request is never answered."""

    def __init__(self) -> None:
        self.runs, self.was_open = Runs(ServeLimits(), HandClock()), list[bool]()

    def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
        if not self.was_open:
            self.was_open.append(False)
            raise ModelRefusedError("no")
        run = self.runs.find("a", "k")
        self.was_open.append(run is not None and run.is_open)
        return (yield from super().stream(params))


def test_what_is_gone_on_with_unasked_has_its_events_under_its_key(tmp_path: Path) -> None:
    model = Left()
    agent = Agent(name="a", model=model, home=tmp_path, embedder=None, memory_tools="none")

    def note() -> None:
        records.store(agent.memory, Record("k", "turn", "body", "s1"))

    with agent, pytest.raises(ModelRefusedError):
        list(agent.stream("hello", also=note))
    agent = Agent(name="a", model=model, home=tmp_path, embedder=None, memory_tools="none")
    with agent:
        go_on(model.runs, "a", agent, agent.resume_stream)
    run = model.runs.find("a", "k")
    assert run is not None
    assert run.answer is not None
    assert (model.was_open, run.answer["steps"]) == ([False, True], ["s2"])
