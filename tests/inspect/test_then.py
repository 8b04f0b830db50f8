"""Lists of an earlier moment are what they were then."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pager.inspect import Inspection
from tests.support import Talk, Words

LISTS: dict[str, Callable[[Inspection, str | None], Any]] = {
    "facts": lambda inspect, at: [replace(use, uses=0, used_at=None) for use in inspect.facts(at=at).rows],
    "current": lambda inspect, at: [use.fact.id for use in inspect.facts("current", at=at).rows],
    "ended": lambda inspect, at: [use.fact.id for use in inspect.facts("ended", at=at).rows],
    "of a text": lambda inspect, at: inspect.facts(text="porto", at=at).total,
    "resident": lambda inspect, at: [row.page_id for row in inspect.steps(0, 500, kind="resident", at=at).rows],
    "evicted": lambda inspect, at: inspect.steps(0, 0, kind="evicted", at=at).total,
    "steps": lambda inspect, at: [(row.page_id, row.resident) for row in inspect.steps(3, 9, at=at).rows],
    "that hold": lambda inspect, at: [row.page_id for row in inspect.steps(0, 9, text="FERRY 1", at=at).rows],
    "ledger": lambda inspect, at: inspect.movements(limit=500, at=at),
    "evictions": lambda inspect, at: inspect.movements(["evict"], at=at).total,
    "events": lambda inspect, at: inspect.events(at),
}


@pytest.mark.slow
def test_lists_of_a_moment_are_what_they_were(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=4_000, embedder=Words())
    then: dict[str, dict[str, Any]] = {}
    for number in range(30):
        talk.memory.append_user(f"the ferry {number} " + "and so we went on " * 12)
        if number % 3 == 0:
            talk.memory.archive(f"lives in Porto {number}", key="home")
        if number % 7 == 5:
            talk.memory.forget(talk.memory.archive(f"a boat {number}").id, "it sank")
        params = talk.memory.request()
        inspect = talk.memory.inspect
        seen = {name: look(inspect, None) for name, look in LISTS.items()}
        seen["used"] = inspect.usage()
        assert params
        then[talk.reply("And then?")] = seen
    assert talk.memory.inspect.events()["evict"]
    for step, seen in then.items():
        inspect = talk.memory.inspect
        for name, look in LISTS.items():
            assert look(inspect, step) == seen[name], (name, step)
        before = inspect.neighbouring_requests(step)[0]
        assert not before or inspect.usage(before) == seen["used"]


@pytest.mark.parametrize(("requests", "most"), [(0, 5), (3, 5), (5, 5), (13, 5), (13, 1)])
def test_spans_of_a_life_hold_all_of_it(tmp_path: Path, requests: int, most: int) -> None:
    talk = Talk(tmp_path)
    steps = [talk.ask(f"day {number}", "ok") for number in range(requests)]
    spans = talk.memory.inspect.request_spans(most)
    assert sum(span.count for span in spans) == requests
    assert len(spans) == min(most, requests)
    firsts = [steps.index(span.first) for span in spans]
    assert [steps.index(span.last) + 1 for span in spans] == [*firsts[1:], requests][: len(spans)]
    used = [column.used_tokens for column in talk.memory.inspect.columns(500)]
    for start, span in zip(firsts, spans, strict=True):
        assert span.used_tokens == max(used[start : start + span.count])
