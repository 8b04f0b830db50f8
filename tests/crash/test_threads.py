"""Threads that share a memory wait for each other: every step is there, in an order, and none is interleaved."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count, groupby
from pathlib import Path
from typing import Any

import pytest

from pager import Memory, MemoryReader, StorageError
from pager.types import number_of
from pager.vectors.indexing import SMALLEST
from tests.crash.load import open_memory, standin
from tests.standin import Reply, Standin, call
from tests.support.indexed import nearest
from tests.support.talk import database_of

THREADS, ROUNDS = 8, 20


@pytest.fixture(autouse=True)
def impatient_threads() -> Iterator[None]:
    """They interrupt each other after 10 us, not after 5 ms."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def together(*acts: Callable[[], None]) -> None:
    """Run all at once. Raise what one of them raises."""
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], None]) -> None:
        start.wait()
        act()

    with ThreadPoolExecutor(len(acts)) as pool:
        for done in [pool.submit(run, act) for act in acts]:
            done.result(timeout=120)


def say(memory: Memory, provider: Standin, *said: Any) -> None:
    message = provider.create({"model": "m", **memory.request().params}, Reply(*said))
    memory.append_assistant(message)


def turn(memory: Memory, provider: Standin, name: str, number: int) -> None:
    """A question, two calls at once, their results, an answer."""
    memory.append_user(f"question of {name} number {number}")
    say(memory, provider, call("fetch", {"order": f"{name}a{number}"}), call("fetch", {"order": f"{name}b{number}"}))
    for each in memory.open_calls:
        memory.begin_call(each.id)
        memory.append_result(each.id, f"result for {each.input['order']}")
    say(memory, provider, f"answer to {name} number {number}")


def steps(memory: Memory) -> list[tuple[int, str, list[Any]]]:
    """The conversation as it stands on disk: step, kind, blocks."""
    rows = database_of(memory).rows(
        "SELECT s.id, s.kind, p.block FROM steps s JOIN parts p ON p.step = s.id"
        " WHERE p.kind = 'said' AND s.kind <> 'record' ORDER BY s.id, p.id"
    )
    by_step = groupby(rows, key=lambda row: (row["id"], row["kind"]))
    return [(*step, [json.loads(row["block"]) for row in parts]) for step, parts in by_step]


def assert_whole_turns(memory: Memory, names: list[str], rounds: int) -> None:
    """Question, calls with their results, answer, of one thread and then of another; each thread's in its order."""
    said, next_number = steps(memory), dict.fromkeys(names, 1)
    assert len(said) == 3 * len(names) * rounds
    for question, calls, answer in zip(said[::3], said[1::3], said[2::3], strict=True):
        assert [question[1], calls[1], answer[1]] == ["user", "assistant", "assistant"]
        *_, name, _, number = question[2][0]["text"].split()
        assert int(number) == next_number[name]
        next_number[name] += 1
        orders = [block["input"]["order"] for block in calls[2] if block["type"] == "tool_use"]
        assert orders == [f"{name}a{number}", f"{name}b{number}"]
        results = [block["content"][0]["text"] for block in calls[2] if block["type"] == "tool_result"]
        assert results == [f"result for {order}" for order in orders]
        assert answer[2][0]["text"] == f"answer to {name} number {number}"


def test_turns_of_eight_threads(tmp_path: Path) -> None:
    """A turn is several calls; a caller holds a lock of its own around them. Others archive, record and search."""
    provider, one_at_a_time = standin(), threading.Lock()
    talkers = [f"talker{number}" for number in range(3)]
    with open_memory(tmp_path) as memory:

        def talk(name: str) -> None:
            for number in range(1, ROUNDS + 1):
                with one_at_a_time:
                    turn(memory, provider, name, number)

        def archive(name: str) -> None:
            for number in range(ROUNDS):
                fact = memory.archive(f"{name} fact{number}", key=f"key{number % 3}")
                assert memory.search_archive(fact.text, as_of=fact.valid_from)[0].page_id == fact.id

        def record(name: str) -> None:
            for number in range(ROUNDS):
                pages = memory.record_many(
                    {"role": "user", "text": f"{name} record{number} part{part}"} for part in range(4)
                )
                numbers = [int(page[1:]) for page in pages]
                assert numbers == list(range(numbers[0], numbers[0] + 4)), "others came in between"
                found = {hit.page_id for hit in memory.search_recall(f"{name} record{number}", limit=16)}
                assert found >= set(pages), "neighbours speak too, but not louder than twelve of them"

        def look() -> None:
            for _ in range(4 * ROUNDS):
                memory.search_recall("question answer result")
                memory.core_append("notes", ".")
                memory.core_replace("notes", memory.core()[1].value, "")
                assert len({each.step for each in memory.open_calls}) <= 1

        together(
            *(lambda name=name: talk(name) for name in talkers),
            lambda: archive("one"), lambda: archive("two"), lambda: record("one"), lambda: record("two"), look,
        )  # fmt: skip
        assert_whole_turns(memory, talkers, ROUNDS)
        assert len(memory.inspect.newest_facts(1_000)) == 2 * ROUNDS
        for key in range(3):
            assert sum(fact.superseded_by is None for fact in memory.history.fact_versions(f"key{key}")) == 1
        assert memory.check() == []
    with open_memory(tmp_path) as memory:
        assert_whole_turns(memory, talkers, ROUNDS)
        assert memory.check() == []


def test_a_transaction_lets_nobody_in_between(tmp_path: Path) -> None:
    """All of a thread's calls in it stand behind each other, and others see none of them before it ends, or ever when
    it fails."""
    with open_memory(tmp_path, embedder=None) as memory:

        def write(name: str) -> None:
            for number in range(ROUNDS):
                with memory.transaction():
                    first = number_of(memory.archive(f"{name} first {number}").id)
                    memory.record("user", f"{name} said {number}")
                    memory.core_append("notes", f"{name}{number}")
                    memory.core_replace("notes", f"{name}{number}", "")
                    assert number_of(memory.archive(f"{name} second {number}").id) == first + 1
                with suppress(ZeroDivisionError), memory.transaction():
                    memory.archive(f"{name} undone {number}")
                    memory.record("user", f"{name} undone {number}")
                    raise ZeroDivisionError
                assert len(memory.inspect.newest_facts(10_000)) % 2 == 0, "half of a transaction was seen"

        together(*(lambda name=f"t{number}": write(name) for number in range(THREADS)))
        texts = [fact.text for fact in reversed(memory.inspect.newest_facts(10_000))]
        assert len(texts) == 2 * THREADS * ROUNDS
        for first, second in zip(texts[::2], texts[1::2], strict=True):
            assert second == first.replace("first", "second")
        assert memory.search_recall("undone", limit=1) == []
        assert memory.check() == []


def test_facts_of_eight_threads_while_generations_of_the_index_are_built(tmp_path: Path) -> None:
    each = 2 * SMALLEST // THREADS + 5
    with open_memory(tmp_path) as memory:

        def archive(name: str) -> None:
            for number in range(each):
                fact = memory.archive(f"{name} fact{number}")
                if number % 5 == 0:
                    hits = memory.search_archive(fact.text, limit=3)
                    (parts,) = [hit.parts for hit in hits if hit.page_id == fact.id]
                    assert {"words", "meaning"} <= set(parts)

        def keep_up() -> None:
            for _ in range(4 * each):
                memory.embed_pending()
            memory.compact()

        together(*(lambda name=f"t{number}": archive(name) for number in range(THREADS)), keep_up)
        memory.embed_pending()
        assert (tmp_path / "chroma" / "state.json").exists()
        facts = memory.inspect.newest_facts(10_000)
        assert len(facts) == THREADS * each
        for fact in facts:
            assert [found for found, _ in nearest(memory, fact.text, 1)] == [number_of(fact.id)]
        assert memory.check() == []


def test_closing_while_others_are_at_work(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, embedder=None)
    stored: list[str] = []
    enough = threading.Event()

    def archive(name: str) -> None:
        with suppress(StorageError):
            for number in count():
                fact = memory.archive(f"{name} fact{number}")
                stored.append(fact.text)
                if len(stored) > 50:
                    enough.set()

    def close() -> None:
        enough.wait()
        memory.close()

    together(close, *(lambda name=f"t{number}": archive(name) for number in range(THREADS)))
    memory.close()  # once more harms nobody
    with open_memory(tmp_path, embedder=None) as again:
        assert {fact.text for fact in again.inspect.newest_facts(100_000)} == set(stored)
        assert again.check() == []


def test_a_reader_that_is_closed_waits_for_whoever_reads(tmp_path: Path) -> None:
    with open_memory(tmp_path, embedder=None) as memory:
        memory.record_many({"role": "user", "text": f"message {number} about trains and hats"} for number in range(300))
    for _ in range(ROUNDS):
        reader, begun = MemoryReader.open(tmp_path, embedder=None), threading.Barrier(4)

        def look(reader: MemoryReader = reader, begun: threading.Barrier = begun) -> None:
            begun.wait()
            with suppress(StorageError):
                for _ in count():
                    reader.inspect.find_text("trains")

        def close(reader: MemoryReader = reader, begun: threading.Barrier = begun) -> None:
            begun.wait()
            reader.close()

        together(close, look, look, look)
