"""What the memory's tools answer to the model: ids, what was replaced, what to do next; and what they refuse."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agents import tasks
from agents.tasks import TaskTools
from agents.tools.memory_tools import ANSWER_NOW, MAX_HITS, FewTools, MemoryTools, for_blocks
from pager import BlockSpec, Limits, Memory, RejectedError
from pager.markup import HOW_IT_WORKS
from tests.support import HandClock

CORE = {"human": BlockSpec(description="who", limit_tokens=60), "rules": BlockSpec(value="be kind", read_only=True)}


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def memory(tmp_path: Path, clock: HandClock) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=None, core=CORE, limits=Limits.for_window(10_000), clock=clock) as memory:
        yield memory


@pytest.fixture
def tools(memory: Memory, clock: HandClock) -> MemoryTools:
    return MemoryTools(memory, clock)


def test_archive_tells_the_id_and_what_it_supersedes(tools: MemoryTools, clock: HandClock) -> None:
    assert tools.archive("prefers window seats", key="seat") == "Stored as f1."
    clock.set(clock.now() + timedelta(days=3))
    answer = tools.archive("prefers aisle seats", key="seat", tags=["travel"])
    assert answer == "Stored as f2.\nIt supersedes f1: prefers window seats"
    found = "f2 [travel] since 2026-05-06, supersedes f1, stored just now: prefers aisle seats"
    assert tools.search_archive("seats") == found
    before = "f1 since 2026-05-03 until 2026-05-06, stored 3 days ago: prefers window seats"
    assert tools.search_archive("seats", as_of="2026-05-04") == before
    tools.archive("lives in Porto", key="home", valid_from="2026-03-01")
    past = tools.archive("lived in Lisbon", key="home", valid_from="2025-01-01")
    assert past == "Stored as f4.\nIt is part of the past: f3 holds since 2026-03-01."


def test_what_is_forgotten_no_longer_holds_and_nothing_found_says_where_else_to_look(tools: MemoryTools) -> None:
    tools.archive("likes hats")
    assert tools.forget("f1", "said so") == "f1 no longer holds: likes hats"
    assert "search_recall" in tools.search_archive("hats")
    assert "search_archive" in tools.search_recall("hats")


def test_steps_are_told_with_id_moment_and_speaker(tools: MemoryTools, memory: Memory) -> None:
    memory.record("user", "I moved to Porto.", at="2026-05-03T14:30Z", name="Dana")
    found = tools.search_recall("Porto", after="2026-05-01", before="2026-05-31")
    assert found == "s1 2026-05-03 14:30 Dana: I moved to Porto."


def test_two_tools_are_enough_to_remember_and_to_find(memory: Memory, clock: HandClock) -> None:
    tools = FewTools(memory, clock)
    assert [tool.name for tool in tools.tools()] == ["remember", "search_memory"]
    assert tools.search_memory("seats") == "Nothing fits. Try other words."
    memory.record("user", "Window seats are best.", at="2026-05-03T14:30Z", name="Dana")
    assert tools.remember("prefers window seats", about="seat") == f"Remembered: prefers window seats\n{ANSWER_NOW}"
    assert tools.remember("prefers window seats", about="seat").startswith(
        "You know this already, so nothing was changed."
    )
    assert tools.remember("prefers aisle seats", about="seat") == (
        f"Remembered: prefers aisle seats\nIt replaces: prefers window seats\n{ANSWER_NOW}"
    )
    assert tools.remember("likes hats", about="") == f"Remembered: likes hats\n{ANSWER_NOW}"
    assert sorted(line.partition(": ")[2] for line in tools.search_memory("seats").split("\n")) == [
        "Window seats are best.",
        "prefers aisle seats",
    ]
    assert {move.actor for move in memory.ledger(events=["archive", "search"])} == {"agent"}


def test_a_core_edit_answers_with_what_was_done_and_how_full_the_block_is(tools: MemoryTools) -> None:
    assert tools.core_append("human", "Alice") == "Added. human holds 1 of 60 tokens."
    assert tools.core_append("human", " Alice\n") == "It is there already. human holds 1 of 60 tokens."
    assert tools.core_replace("human", "Alice", "Bob") == "Replaced. human holds 1 of 60 tokens."
    moved = "Moved to the archive as f1. human holds 0 of 60 tokens."
    assert tools.page_out(block="human", text="Bob", key="name") == moved
    assert tools.core_append("human", "Eve").startswith("Added.")
    assert tools.core_replace("human", "Eve", "") == "Deleted. human holds 0 of 60 tokens."


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda tools: tools.search_archive("x", limit=0), f"between 1 and {MAX_HITS}"),
        (lambda tools: tools.search_recall("x", limit=99), "limit is 99"),
        (lambda tools: tools.search_recall("x", after="soon"), "soon"),
        (lambda tools: tools.page_in("human"), "human is a core block, which is always in view; use core_replace"),
        (lambda tools: tools.page_out("human"), "is a core block"),
        (lambda tools: tools.forget("human", "old"), "human is a core block"),
        (lambda tools: tools.page_out(), "page_out takes either page_id"),
        (lambda tools: tools.page_out("f1", block="human", text="x"), "either page_id, or block and text"),
    ],
)
def test_what_is_refused_names_the_value_and_the_way_out(tools: MemoryTools, call, told: str) -> None:
    with pytest.raises(RejectedError) as refused:
        call(tools)
    assert told in str(refused.value)


@pytest.mark.parametrize("names", [["human", "plan"], []])
def test_a_block_is_one_of_those_that_there_are(names: list[str]) -> None:
    made = {each["name"]: each["input_schema"] for each in for_blocks(MemoryTools.definitions(), names)}
    assert ("core_append" in made, "core_replace" in made) == (bool(names), bool(names))
    assert {"archive", "page_out", "forget"} <= made.keys()
    enums = [schema["properties"]["block"].get("enum") for schema in made.values() if "block" in schema["properties"]]
    assert enums == ([names] * 3 if names else [None])


def test_no_text_that_a_model_reads_has_an_id_that_it_could_copy(tools: MemoryTools) -> None:
    texts = json.dumps([MemoryTools.definitions(), FewTools.definitions(), TaskTools.definitions()])
    texts += "".join([*HOW_IT_WORKS.values(), *tasks.INSTRUCTIONS.values(), *tasks.NUDGE])
    for wrong in (lambda: tools.page_in("today"), lambda: tools.forget("seat", "old"), lambda: tools.page_out("x")):
        with pytest.raises(RejectedError) as refused:
            wrong()
        texts += str(refused.value)
    assert not re.findall(r"\b[fsxk]\d+\b", texts)


def test_a_long_list_is_cut_and_says_so(tools: MemoryTools) -> None:
    for number in range(15):
        tools.archive(f"hat {number}: " + "a long story about it " * 40)
    told = tools.search_archive("hat", limit=MAX_HITS)
    assert told.splitlines()[-1].endswith("more do not fit; ask more narrowly, or page_in by id.)")


def test_with_two_tools_a_cut_list_names_no_other(memory: Memory, clock: HandClock) -> None:
    for number in range(15):
        memory.archive(f"hat {number}: " + "a long story about it " * 40)
    told = FewTools(memory, clock).search_memory("hat")
    assert told.splitlines()[-1].endswith("more do not fit; ask more narrowly.)")
