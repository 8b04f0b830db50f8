"""What the memory's tools answer to the model: ids, what was replaced, what to do next; and what they refuse."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agents.tools.memory_tools import MAX_HITS, MemoryTools
from pager import BlockSpec, Limits, Memory, RejectedError
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


def test_a_core_edit_answers_with_the_block_as_it_reads(tools: MemoryTools) -> None:
    assert tools.core_append("human", "Alice") == "The block human now reads (1 of 60 tokens):\nAlice"
    assert tools.core_replace("human", "Alice", "Bob") == "The block human now reads (1 of 60 tokens):\nBob"
    assert tools.page_out(block="human", text="Bob", key="name").startswith(
        "Moved to the archive as f1. The block human"
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda tools: tools.search_archive("x", limit=0), f"between 1 and {MAX_HITS}"),
        (lambda tools: tools.search_recall("x", limit=99), "limit is 99"),
        (lambda tools: tools.search_recall("x", after="soon"), "soon"),
        (lambda tools: tools.page_out(), "page_out takes either page_id"),
        (lambda tools: tools.page_out("f1", block="human", text="x"), "either page_id, or block and text"),
    ],
)
def test_what_is_refused_names_the_value_and_the_way_out(tools: MemoryTools, call, told: str) -> None:
    with pytest.raises(RejectedError) as refused:
        call(tools)
    assert told in str(refused.value)


def test_a_long_list_is_cut_and_says_so(tools: MemoryTools) -> None:
    for number in range(15):
        tools.archive(f"hat {number}: " + "a long story about it " * 40)
    told = tools.search_archive("hat", limit=MAX_HITS)
    assert told.splitlines()[-1].endswith("more do not fit; ask more narrowly, or page_in by id.)")
