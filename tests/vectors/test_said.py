"""Vectors of what was said: when it is embedded, what is found before that, and that no vector outlasts its part."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from pager import Memory, MemoryReader, StorageError
from pager.vectors.embedding import PAUSE
from pager.vectors.said import pack
from tests.standin import Reply
from tests.support import Broken, HandClock, Letters, Talk, Words, database_of, undone
from tests.support.secret import SECRET, assert_gone, marks_in
from tests.tiers.test_recall import found
from tests.tiers.test_recall_ranking import tell


def test_meaning_finds_what_no_word_does(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Letters(), clock=HandClock()) as memory:
        steps = [memory.record("user", text, session=text) for text in ("apples", "bees", "cats")]
        hit = memory.search_recall("almonds")[0]
        assert (hit.page_id, set(hit.parts)) == (steps[0], {"meaning"})


def test_a_search_embeds_its_question_and_nothing_else(memory: Memory, embedder: Words) -> None:
    memory.record_many([{"role": "user", "text": f"topic{number}"} for number in range(9)], embed=False)
    memory.record("user", "lately")
    assert embedder.asked == ["lately"]  # and none of those that wait
    memory.archive("a fact")
    embedder.asked.clear()
    memory.search_recall("topic3")
    memory.search_archive("a fact")
    assert embedder.asked == ["topic3", "a fact"]
    assert memory.count_unembedded() == 9


def test_a_search_of_messages_without_vectors_asks_nothing_of_an_embedder(tmp_path: Path) -> None:
    class Unmeasured(Words):
        """One of Chroma's embeds a text to know its dimension."""

        @property
        def dimension(self) -> int:
            return pytest.fail("asked for its dimension")

        @dimension.setter
        def dimension(self, _: int) -> None: ...

    embedder = Unmeasured()
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        memory.record_many([{"role": "user", "text": "topic"}], embed=False)
        assert found(memory, "topic") == ["s1"]
        assert embedder.asked == []


def test_another_embedder_embeds_all_messages_anew(tmp_path: Path) -> None:
    messages = [{"role": "user", "text": f"topic{number}", "session": str(number)} for number in range(40)]
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        memory.record_many(messages)
        assert memory.count_unembedded() == memory.embed_pending() == 0
    for embedder in (Words("one", 16), Words("two", 24)):
        with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
            hit = memory.search_recall("topic39", limit=1)[0]
            assert (hit.page_id, set(hit.parts)) == ("s40", {"words"})
            assert memory.count_unembedded() == 40
            assert (memory.embed_pending(limit=5), memory.embed_pending(limit=500)) == (5, 35)
            assert memory.embed_pending() == memory.count_unembedded() == 0
            hit = memory.search_recall("topic39", limit=1)[0]
            assert (hit.page_id, set(hit.parts)) == ("s40", {"words", "meaning"})
            assert hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-5)
            assert memory.check() == []
    with MemoryReader.open(tmp_path, embedder=Words("two", 24), clock=HandClock()) as reading:
        assert reading.search_recall("topic9")[0].parts["meaning"] > 0


def test_what_a_transaction_records_is_embedded_together_after_it(memory: Memory, embedder: Words) -> None:
    with undone(memory):
        memory.record("user", "lost")
    with memory.transaction():
        steps = [memory.record("user", "first"), *memory.record_many([{"role": "user", "text": "second"}])]
        assert embedder.asked == []
    assert embedder.asked == ["first", "second"]
    assert memory.count_unembedded() == 0
    assert found(memory, "second")[0] == steps[1]


def test_others_get_the_lock_while_what_was_recorded_is_embedded(tmp_path: Path) -> None:
    at_work, go_on = Event(), Event()

    class Slow(Words):
        def embed(self, texts: Sequence[str]) -> Any:
            at_work.set()
            assert go_on.wait(30)
            return super().embed(texts)

    with Memory.open(tmp_path, embedder=Slow(), clock=HandClock()) as memory:
        thread = Thread(target=memory.record, args=("user", "the first"))
        thread.start()
        assert at_work.wait(30)
        assert memory.page_text("s1") == "the first"
        assert memory.append_user("hello") == "s2"
        go_on.set()
        thread.join()
        assert memory.count_unembedded() == 0


def test_what_is_recorded_stays_so_where_its_vector_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise StorageError("the disk is full")

    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        with monkeypatch.context() as patched:
            patched.setattr(memory._store.said, "store_vectors", full)
            assert memory.record("user", "topic1") == "s1"
        assert found(memory, "topic1") == ["s1"]
        assert "vectors of messages wait: the disk is full" in memory.ledger(events=["embedder"])[0].reason
        assert memory.embed_pending() == 1


def test_a_step_of_the_conversation_is_embedded_when_it_leaves_the_prompt(tmp_path: Path) -> None:
    embedder = Words()
    talk = Talk(tmp_path, window=6_000, embedder=embedder)
    talk.ask("something terrible", Reply.refusal())
    assert (talk.memory.check(), talk.memory.embed_pending() > 0) == ([], True)  # a refusal takes its turn away
    talk.watch.forget_tail()
    talk.ask("the zebra is out", "so it is")
    assert talk.memory.embed_pending() == 0
    talk.fill(8_000)
    resident = {stay.page_id for stay in talk.memory.history.resident()}
    waiting = {f"s{said.step}" for said in talk.memory._store.said.queued(10_000)}
    assert "s3" in waiting
    assert waiting == {f"s{n}" for n in range(3, int(max(resident, key=lambda page: int(page[1:]))[1:]) + 1)} - resident
    assert "the zebra is out" not in embedder.asked
    while talk.memory.embed_pending():
        pass
    assert "the zebra is out" in embedder.asked
    assert talk.memory.check() == []


def test_an_embedder_that_fails_is_told_once_and_rests_while_words_answer(tmp_path: Path) -> None:
    class Counted(Broken):
        calls = 0

        def embed(self, texts: Sequence[str]) -> Any:
            self.calls += 1
            return super().embed(texts)

    embedder, clock = Counted(), HandClock(tick=timedelta(0))
    with Memory.open(tmp_path, embedder=embedder, clock=clock) as memory:
        embedder.broken = False
        memory.record("user", "it worked once", session="first")
        embedder.broken = True
        for number in range(20):
            memory.record("user", f"topic{number}", session=str(number))
            memory.archive(f"fact{number}")
            assert found(memory, f"topic{number}") == [f"s{number + 2}"]
            assert memory.search_archive(f"fact{number}", limit=1)[0].page_id == f"f{number + 1}"
        assert embedder.calls == 1 + 1
        [told] = memory.ledger(events=["embedder"])
        assert "weights are missing" in told.reason
        assert "again after 60 seconds" in told.reason
        searched = memory.ledger(events=["search"])
        assert all("weights are missing" in row.detail["without_meaning"] for row in searched)
        assert memory.embed_pending() == 0  # asks it all the same
        clock.set(clock.now() + PAUSE)
        assert found(memory, "topic7") == found(memory, "topic7") == ["s9"]
        assert embedder.calls == 1 + 1 + 2 + 1
        embedder.broken = False
        assert memory.embed_pending(limit=500) == 40
        assert memory.search_recall("topic7")[0].parts["meaning"] > 0
        assert "without_meaning" not in memory.ledger(events=["search"])[-1].detail


def test_a_message_without_a_vector_that_is_not_queued_is_found_by_check(memory: Memory) -> None:
    tell(memory, ("Ana", "topic"), ("Ana", "other"))
    database_of(memory).run("DELETE FROM said_vectors WHERE part = 1")
    database_of(memory).run("UPDATE said_vectors SET vector = x'00'")
    problems = memory.check()
    assert [problem.where for problem in problems] == ["vectors", "vectors"]
    assert "s1" in problems[1].text
    assert all(problem.fixed for problem in memory.check(fix=True))
    assert memory.check() == []
    assert memory.embed_pending() == 2
    assert memory.search_recall("topic")[0].parts["meaning"] > 0


@pytest.mark.parametrize("embedder", [None, Words()])
def test_messages_that_were_undone_are_nobodys_neighbours(tmp_path: Path, embedder: Words | None) -> None:
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        tell(memory, ("Ana", "hello there"), session="kept")
        with undone(memory):
            tell(memory, *(("Ana", f"lost{n}") for n in range(40)), session="lost")
            assert found(memory, "lost3")[0] == "s5"
        tell(memory, ("Ben", "long " * 300), ("Ben", "short"), session="kept")
        assert found(memory, "lost3", limit=99) == ([] if embedder is None else found(memory, "lost3", limit=99))
        hits = memory.search_recall("short", limit=1)
        assert (hits[0].page_id, hits[0].who, hits[0].text) == ("s3", "Ben", "short")
        assert memory.check() == []


def test_a_reader_sees_what_is_committed_and_forgets_what_is_purged(memory: Memory, tmp_path: Path) -> None:
    tell(memory, ("Ana", "the engine"), ("Ben", "it is broken"))
    with MemoryReader.open(tmp_path, embedder=Words(), clock=HandClock()) as reading:
        assert reading.search_recall("engine")[0].page_id == "s1"
        assert memory.ledger(events=["search"]) == []  # a reader writes nothing
        tell(memory, ("Ana", "the engine runs"))
        assert {hit.page_id for hit in reading.search_recall("engine")} >= {"s1", "s3"}
        memory_found = {hit.page_id: hit.parts.keys() for hit in memory.search_recall("engine")}
        assert {hit.page_id: hit.parts.keys() for hit in reading.search_recall("engine")} == memory_found
        memory.purge("s1")
        assert "s1" not in {hit.page_id for hit in reading.search_recall("engine")}


def test_no_file_keeps_a_purged_message_or_what_it_meant(tmp_path: Path) -> None:
    embedder = Words()
    talk = Talk(tmp_path, embedder=embedder)
    step = talk.memory.record("user", SECRET, name="Ana")
    copy = talk.memory.record("user", f"and again: {SECRET}", name="Ana")
    others = tell(talk.memory, *(("Ana", f"topic{number}") for number in range(5)))
    assert talk.memory.search_recall("vault")[0].page_id in (step, copy)
    vector, quoting = pack(embedder.embed([f"Ana: {SECRET}", f"Ana: and again: {SECRET}"]))
    assert marks_in(tmp_path, vector)
    assert marks_in(tmp_path, quoting)
    talk.memory.purge(step)
    assert not marks_in(tmp_path, quoting)
    assert_gone(talk, step, vector)
    hits = talk.memory.search_recall("and again", limit=9)
    assert hits[0].page_id == copy
    assert step not in {hit.page_id for hit in hits}
    assert talk.memory.search_recall("topic3")[0].page_id == others[3]
    assert talk.memory.embed_pending() == 1  # what quoted it means something else now


def test_a_batch_that_was_read_before_a_purge_is_thrown_away(memory: Memory) -> None:
    messages = [{"role": "user", "text": text} for text in (SECRET, f"again: {SECRET}")]
    step, _ = memory.record_many(messages, embed=False)
    vectors = memory._tiers.recall.vectors
    assert vectors is not None
    batch = vectors.next_batch(9)
    rows = vectors.embedding.embed_batch(batch)
    memory.purge(step)
    vectors.store_batch(batch, rows)
    assert memory._store.said.vectors(0) == []
    assert memory.embed_pending() == 1


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
