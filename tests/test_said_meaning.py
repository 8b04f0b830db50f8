"""What turns mean: when they are embedded, what is found before that, and that nothing of it outlasts the turns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pager import EmbedderUnavailable, Memory
from pager.embedding import AT_ONCE
from pager.said_meaning import HEAD, LARGEST, packed
from tests.standin import Reply
from tests.support import Broken, HandClock, Letters, Talk, Words, database_of
from tests.support.secret import SECRET, assert_gone, marks_in
from tests.test_recall import found
from tests.test_recall_ranking import tell

# finding


def test_meaning_is_added_as_soon_as_turns_are_recorded(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        steps = tell(memory, *(("Ana", f"topic{number} and nothing else") for number in range(100)))
        assert memory.waiting_for_vectors() == 0
        hit = memory.search_recall("Ana: topic7 and nothing else", limit=1)[0]
        assert hit.page_id == steps[7]
        assert hit.parts["meaning"] > 0
        assert hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-5)


def test_meaning_finds_what_no_word_does(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Letters(), clock=HandClock()) as memory:
        steps = [memory.record("user", text, session=text) for text in ("apples", "bees", "cats")]
        hit = memory.search_recall("almonds")[0]
        assert (hit.page_id, set(hit.parts)) == (steps[0], {"meaning"})


def test_the_default_embedder_finds_a_turn_by_its_meaning(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        tell(memory, ("Dana", "I moved to Porto last spring."), ("Ben", "My printer is out of paper."),
             ("Dana", "The cat sleeps all day."))  # fmt: skip
        assert memory.search_recall("In which city is her flat?", limit=1)[0].page_id == "s1"


def test_turns_are_embedded_in_batches_and_the_rest_before_a_search(tmp_path: Path) -> None:
    embedder = Words()
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        for number in range(AT_ONCE + 3):
            memory.record("user", f"topic{number}")
            assert len(embedder.asked) == (0 if number < AT_ONCE - 1 else AT_ONCE)
        memory.search_recall("topic3")
        assert embedder.asked[AT_ONCE:] == [*(f"topic{number}" for number in range(AT_ONCE, AT_ONCE + 3)), "topic3"]


def test_what_is_left_for_later_is_found_by_its_words_meanwhile(tmp_path: Path) -> None:
    embedder = Words()
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        memory.record_many([{"role": "user", "text": f"topic{n}", "session": str(n)} for n in range(99)], embed=False)
        assert (embedder.asked, memory.waiting_for_vectors()) == ([], 99)
        hit = memory.search_recall("topic98", limit=1)[0]
        assert (hit.text, set(hit.parts)) == ("topic98", {"words"})
        assert memory.waiting_for_vectors() == 99 - AT_ONCE
        assert memory.embed_waiting(limit=5) == 5
        assert memory.embed_waiting(limit=500) == 99 - AT_ONCE - 5
        assert memory.embed_waiting() == memory.waiting_for_vectors() == 0
        assert memory.search_recall("topic98", limit=1)[0].parts.keys() == {"words", "meaning"}


def test_a_turn_of_the_conversation_is_embedded_when_it_leaves_the_prompt(tmp_path: Path) -> None:
    embedder = Words()
    talk = Talk(tmp_path, window=6_000, embedder=embedder)
    talk.ask("the zebra is out", "so it is")
    assert talk.memory.embed_waiting() == 0
    talk.fill(8_000)
    resident = {stay.page_id for stay in talk.memory.resident()}
    assert "s1" not in resident
    waiting = {f"s{said.step}" for said in talk.memory._store.said.owed(10_000)}
    assert waiting == {f"s{n}" for n in range(1, int(max(resident, key=lambda page: int(page[1:]))[1:]) + 1)} - resident
    assert "the zebra is out" not in embedder.asked
    while talk.memory.embed_waiting():
        pass
    assert "the zebra is out" in embedder.asked
    assert talk.memory.check() == []


def test_a_turn_that_the_model_refused_is_embedded_too(tmp_path: Path) -> None:
    talk = Talk(tmp_path, embedder=Words())
    talk.ask("something terrible", Reply.refusal())
    assert talk.memory.check() == []
    assert talk.memory.embed_waiting() > 0


def test_another_embedder_embeds_all_turns_anew_and_searches_go_on(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words("one", 16), clock=HandClock()) as memory:
        tell(memory, *(("Ana", f"topic{number}") for number in range(100)))
    with Memory.open(tmp_path, embedder=Words("two", 24), clock=HandClock()) as memory:
        assert memory.waiting_for_vectors() == 100
        assert found(memory, "topic99")[0] == "s100"
        while memory.embed_waiting():
            pass
        assert memory.search_recall("topic99")[0].parts["meaning"] > 0
        assert memory.check() == []
    with Memory.read(tmp_path, embedder=Words("two", 24), clock=HandClock()) as reading:
        assert reading.search_recall("topic99")[0].parts["meaning"] > 0
    with (
        Memory.read(tmp_path, embedder=Words("one", 16), clock=HandClock()) as reading,
        pytest.raises(EmbedderUnavailable, match="made by two"),
    ):
        reading.search_recall("topic99")


def test_an_embedder_that_fails_is_told_once_and_is_not_asked_at_every_turn(tmp_path: Path) -> None:
    class Counted(Broken):
        calls = 0

        def embed(self, texts: Sequence[str]) -> Any:
            self.calls += 1
            return super().embed(texts)

    embedder = Counted()
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        for number in range(3 * AT_ONCE):
            memory.record("user", f"topic{number}", session=str(number))
        assert embedder.calls == 1
        assert found(memory, "topic7") == ["s8"]
        assert memory.embed_waiting() == 0
        assert len(memory.ledger(events=["embedder"])) == 1
        embedder.broken = False
        assert memory.embed_waiting(limit=500) == 3 * AT_ONCE
        assert memory.search_recall("topic7")[0].parts["meaning"] > 0


def test_without_an_embedder_turns_wait_for_the_day_when_there_is_one(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        tell(memory, *(("Ana", f"topic{number}") for number in range(5)))
        assert memory.waiting_for_vectors() == memory.embed_waiting() == 0
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        assert memory.search_recall("topic3")[0].parts["meaning"] > 0


def test_a_turn_without_a_vector_that_waits_for_none_is_found_by_check(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        tell(memory, ("Ana", "topic"), ("Ana", "other"))
        database_of(memory).run("DELETE FROM said_vectors WHERE part = 1")
        database_of(memory).run("UPDATE said_vectors SET vector = x'00'")
        problems = memory.check()
        assert [problem.where for problem in problems] == ["vectors", "vectors"]
        assert "s1" in problems[1].text
        assert all(problem.fixed for problem in memory.check(fix=True))
        assert memory.check() == []
        assert memory.search_recall("topic")[0].parts["meaning"] > 0
        assert memory.waiting_for_vectors() == 0


def test_a_vector_loses_next_to_nothing_by_its_bytes() -> None:
    rows = Words(dimension=384).embed([f"topic{number} of many" for number in range(50)])
    raw = np.stack([np.frombuffer(packed(row)[HEAD:], dtype=np.int8) for row in rows]).astype(np.float32)
    scales = np.array([np.frombuffer(packed(row)[:HEAD], dtype=np.float32)[0] for row in rows])
    assert np.abs(raw).max() == LARGEST
    assert np.abs((raw * scales[:, None]) @ rows.T - rows @ rows.T).max() < 0.01
    assert len(packed(np.zeros(8, dtype=np.float32))) == HEAD + 8


# what is gone


@pytest.mark.parametrize("embedder", [None, Words()])
def test_turns_that_were_undone_are_nobodys_neighbours(tmp_path: Path, embedder: Words | None) -> None:
    """They were searched for before they were undone, and their ids are given to others after it."""
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        tell(memory, ("Ana", "hello there"), session="kept")

        def lose() -> None:
            with memory.transaction():
                tell(memory, *(("Ana", f"lost{n}") for n in range(40)), session="lost")
                assert found(memory, "lost3")[0] == "s5"
                raise InterruptedError

        with pytest.raises(InterruptedError):
            lose()
        tell(memory, ("Ben", "long " * 300), ("Ben", "short"), session="kept")
        assert found(memory, "lost3", limit=99) == ([] if embedder is None else found(memory, "lost3", limit=99))
        hits = memory.search_recall("short", limit=1)
        assert (hits[0].page_id, hits[0].who, hits[0].text) == ("s3", "Ben", "short")
        assert memory.check() == []


def test_a_reader_sees_what_is_committed_and_forgets_what_is_purged(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        tell(memory, ("Ana", "the engine"), ("Ben", "it is broken"))
        with Memory.read(tmp_path, embedder=Words(), clock=HandClock()) as reading:
            assert reading.search_recall("engine")[0].page_id == "s1"
            tell(memory, ("Ana", "the engine runs"))
            assert {hit.page_id for hit in reading.search_recall("engine")} >= {"s1", "s3"}
            reader = reading
            memory_found = {hit.page_id: hit.parts.keys() for hit in memory.search_recall("engine")}
            assert {hit.page_id: hit.parts.keys() for hit in reader.search_recall("engine")} == memory_found
            memory.purge("s1")
            assert "s1" not in {hit.page_id for hit in reading.search_recall("engine")}


def test_no_file_keeps_a_purged_turn_or_what_it_meant(tmp_path: Path) -> None:
    embedder = Words()
    talk = Talk(tmp_path, embedder=embedder)
    step = talk.memory.record("user", SECRET, name="Ana")
    copy = talk.memory.record("user", f"and again: {SECRET}", name="Ana")
    others = tell(talk.memory, *(("Ana", f"topic{number}") for number in range(5)))
    assert talk.memory.search_recall("vault")[0].page_id in (step, copy)
    vector, quoting = (packed(row) for row in embedder.embed([f"Ana: {SECRET}", f"Ana: and again: {SECRET}"]))
    assert marks_in(tmp_path, vector)
    assert marks_in(tmp_path, quoting)
    talk.memory.purge(step)
    assert not marks_in(tmp_path, quoting)
    assert_gone(talk, step, vector)
    hits = talk.memory.search_recall("and again", limit=9)
    assert hits[0].page_id == copy
    assert step not in {hit.page_id for hit in hits}
    assert talk.memory.search_recall("topic3")[0].page_id == others[3]
    assert talk.memory.waiting_for_vectors() == 0


def test_a_batch_that_was_read_before_a_purge_is_thrown_away(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        step = memory.record("user", SECRET)
        memory.record("user", f"again: {SECRET}")
        meaning = memory._recall.meaning
        assert meaning is not None
        batch = meaning.next_batch(9)
        rows = meaning.embedding.of(batch)
        memory.purge(step)
        meaning.keep(batch, rows)
        assert memory._store.said.vectors(0) == []
        assert memory.embed_waiting() == 1


def test_a_copy_of_a_memory_finds_the_same(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with Memory.open(tmp_path / "one", embedder=Words(), clock=HandClock()) as memory:
        tell(memory, *(("Ana", f"topic{number} of many") for number in range(9)))
        wanted = [(hit.page_id, hit.score) for hit in memory.search_recall("topic3 of many")]
        memory.export(tmp_path / "copy" / "pager.db")
    embedder = Words()
    with Memory.open(tmp_path / "copy", embedder=embedder, clock=HandClock()) as copy:
        assert [(hit.page_id, hit.score) for hit in copy.search_recall("topic3 of many")] == wanted
        assert embedder.asked == ["topic3 of many"]
