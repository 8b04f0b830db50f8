"""FactVectors: facts found by their vectors, whatever the embedder and the index do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pager import EmbedderUnavailableError, Memory, MemoryReader
from pager.vectors.embedding import PAUSE
from tests.support import Broken, Careless, HandClock, Letters, Words, database_of, undone


def ids(hits: Any) -> list[str]:
    return [hit.page_id for hit in hits]


def test_words_and_meaning_are_fused_and_each_says_its_part(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Letters(), clock=HandClock()) as memory:
        memory.archive("apples are red")  # near by its letter
        memory.archive("the zebra is alone")  # by its word
        memory.archive("all zebras")  # by both
        memory.archive("nothing of this")
        hits = memory.search_archive("a zebra", limit=4)
        assert hits[0].page_id == "f3"
        assert set(hits[0].parts) == {"words", "meaning"}
        assert {hit.page_id: set(hit.parts) for hit in hits}["f1"] == {"meaning"}
        assert hits[0].score > hits[1].score >= hits[2].score


def test_filters_hold_for_what_is_found_by_meaning_too(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Letters(), clock=HandClock()) as memory:
        old = memory.archive("apple", key="fruit", tags=["food"])
        memory.archive("axe", key="fruit", tags=["tool"])
        with memory.transaction():
            for number in range(400):
                memory.archive(f"also {number}", tags=["food"])
        assert ids(memory.search_archive("anything", tags=["tool"])) == ["f2"]
        assert old.id not in ids(memory.search_archive("anything", limit=500))
        assert ids(memory.search_archive("anything", as_of=old.valid_from)) == [old.id]
        assert len(memory.search_archive("anything", tags=["food"], limit=300)) == 300
        memory.forget("f2", "lost")
        assert memory.search_archive("anything", tags=["tool"]) == []


def test_close_neighbours_are_reported_and_those_that_ended_are_not(memory: Memory) -> None:
    memory.archive("likes a window seat", key="seat")
    memory.archive("likes the window seat", key="seat")
    memory.archive("has two cats")
    fact = memory.archive("likes window seats a lot: a window seat")
    assert ids(memory.similar_facts(fact.id)) == ["f2"]
    assert len(memory.similar_facts(memory.archive("likes the window seat").id, limit=2)) == 2


@pytest.mark.parametrize(
    ("embedder", "told"),
    [
        (Broken(), "the weights are missing; install them; words answer"),
        (Broken(RuntimeError("CUDA out of memory")), "RuntimeError: CUDA out of memory"),
        (Careless(lambda rows: rows[:, :7]), "finite"),
        (Careless(lambda rows: rows * np.nan), "finite"),
    ],
)
def test_whatever_a_foreign_embedder_does_the_fact_is_stored_and_found_by_words(
    tmp_path: Path, embedder: Words, told: str
) -> None:
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        memory.archive("a window seat")
        assert ids(memory.search_archive("window")) == ["f1"]
        assert [told in row.reason for row in memory.ledger(events=["embedder"])] == [True]
        assert [problem.where for problem in memory.check()] == ["vectors"]


def test_vectors_of_any_length_are_compared_by_their_direction(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Careless(lambda rows: 50 * rows), clock=HandClock()) as memory:
        memory.archive("a window seat")
        assert memory.search_archive("a window seat")[0].cosine == pytest.approx(1)


def test_an_embedder_gets_no_half_of_a_character(memory: Memory, embedder: Words) -> None:
    vectors = memory._tiers.archive.vectors
    assert vectors is not None
    vectors.embedding.embed("half a \ud83d character, a whole \ud83d\ude00 one")
    assert embedder.asked == ["half a \ufffd character, a whole \U0001f600 one"]


def test_vectors_that_another_model_under_the_same_name_overtook_are_not_kept(tmp_path: Path) -> None:
    embedder = Words("server", 16)
    with Memory.open(tmp_path, embedder=None) as memory:
        for number in range(5):
            memory.record("user", f"topic{number}")
            memory.archive(f"topic{number}")
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        archival, recall = memory._tiers.archive.vectors, memory._tiers.recall.vectors
        assert archival is not None
        assert recall is not None
        late = [(source, batch, source.embedding.embed_batch(batch)) for source in (archival, recall)
                if (batch := source.next_batch(3))]  # fmt: skip
        embedder.dimension = 32
        memory.archive("the newest topic")
        for source, batch, rows in late:
            source.store_batch(batch, rows)
        assert memory.search_archive("the newest topic", limit=1)[0].page_id == "f6"
        while memory.embed_pending():
            pass
        assert (memory.check(), memory.count_unembedded()) == ([], 0)
        assert memory.search_recall("topic3", limit=1)[0].parts["meaning"] > 0


def test_a_reader_finds_what_got_its_vector_late(tmp_path: Path) -> None:
    embedder, clock = Broken(False), HandClock()
    with Memory.open(tmp_path, embedder=embedder, clock=clock) as memory:
        memory.archive("a window seat")
        embedder.broken = True
        memory.archive("the cat on the radiator")
        embedder.broken = False
        clock.set(clock.now() + 2 * PAUSE)
        memory.archive("a seat at the aisle")
        with MemoryReader.open(tmp_path, embedder=embedder, clock=clock) as reading:
            vectors = reading._tiers.archive.vectors
            assert vectors is not None
            assert {number for number, _ in vectors.nearest(embedder.embed(["cat"])[0], 9, None)} == {1, 3}
            assert memory.embed_pending() == 1
            assert {number for number, _ in vectors.nearest(embedder.embed(["cat"])[0], 9, None)} == {1, 2, 3}


def test_what_an_interrupt_left_half_done_in_memory_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    embedder, clock = Broken(), HandClock()
    with Memory.open(tmp_path, embedder=embedder, clock=clock) as memory:
        memory.archive("a window seat")
        embedder.broken = False
        clock.set(clock.now() + 2 * PAUSE)
        memory.archive("a seat at the aisle")
        with monkeypatch.context() as patch:
            patch.setattr("pager.search.growing_array.GrowingArray.extend", interrupted)
            with pytest.raises(KeyboardInterrupt):
                memory.search_archive("window")
        while memory.embed_pending():
            pass
        hits = memory.search_archive("a window seat")
        assert (ids(hits), hits[0].cosine) == (["f1", "f2"], pytest.approx(1))
        assert memory._tiers.archive.vectors is not None
        assert len(memory._tiers.archive.vectors.nearest(embedder.embed(["seat"])[0], 9, None)) == 2


def test_another_model_under_the_same_name_embeds_all_anew(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=(embedder := Words("server", 16)), clock=clock) as memory:
        for number in range(9):
            memory.archive(f"topic{number}")
        memory.record_many([{"role": "user", "text": f"topic{number} it was"} for number in range(9)])
        embedder.dimension = 24  # while it is open
        assert memory.search_recall("topic3")[0].page_id == "s4"
        assert memory.similar_facts(memory.archive("topic3 again").id) == []
        assert "now of 24 numbers" in memory.ledger(events=["embedder"])[0].reason
        embed_all(memory)
    with Memory.open(tmp_path, embedder=Words("server", 32), clock=clock) as memory:  # after a restart
        memory.record("user", "a bed")  # is embedded at once, before anything is searched
        assert memory.count_unembedded() == 19
        embed_all(memory)
    with (
        MemoryReader.open(tmp_path, embedder=Words("server", 48), clock=clock) as reading,
        pytest.raises(EmbedderUnavailableError, match="server -> server, now of 48 numbers"),
    ):
        reading.search_archive("seat")


def embed_all(memory: Memory) -> None:
    while memory.embed_pending(limit=1000):
        pass
    assert (memory.search_archive("topic3", limit=1)[0].cosine or 0) > 0.5
    assert memory.search_recall("topic3")[0].parts["meaning"] > 0
    assert (memory.count_unembedded(), memory.check()) == (0, [])


def test_a_warm_search_asks_sqlite_for_no_embedder_and_no_dimension(memory: Memory) -> None:
    memory.archive("a window seat")
    memory.record_many([{"role": "user", "text": text, "session": text} for text in ("an aisle seat", "a bed")])
    for search in (memory.search_archive, memory.search_recall):
        search("seat")
        statements: list[str] = []
        database_of(memory).trace(statements.append)
        assert "meaning" in search("seat")[0].parts
        database_of(memory).trace(None)
        assert [sql for sql in statements if "length(vector)" in sql or "embedder" in sql] == []
        # The vectors of the candidates, and new ones of facts if there are any; and those of messages that are new.
        about = [sql for sql in statements if "vector" in sql]
        assert len(about) == (3 if search == memory.search_archive else 4), about


def test_a_reader_learns_of_another_embedder_while_it_is_open(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words("one"), clock=HandClock()) as memory:
        memory.archive("a window seat")
    with MemoryReader.open(tmp_path, embedder=Words("one"), clock=HandClock()) as reading:
        assert (reading.search_archive("seat")[0].cosine or 0) > 0
        with Memory.open(tmp_path, embedder=Words("two"), clock=HandClock()) as memory:
            memory.search_archive("seat")
        with pytest.raises(EmbedderUnavailableError, match="two -> one"):
            reading.search_archive("seat")


def test_what_another_embedder_changed_is_changed_again_after_a_rollback(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=(embedder := Words("server", 16)), clock=HandClock()) as memory:
        memory.archive("a window seat")
        with undone(memory):
            embedder.dimension = 24
            memory.archive("an aisle seat")
            parts = {hit.page_id: set(hit.parts) for hit in memory.search_archive("seat")}
            assert parts == {"f1": {"words"}, "f2": {"words", "meaning"}}  # the old vector is dropped in here
        assert set(memory.search_archive("seat")[0].parts) == {"words"}
        assert (memory.embed_pending(), memory.check()) == (1, [])
        assert (memory.search_archive("seat")[0].cosine or 0) > 0.5
