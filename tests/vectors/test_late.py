"""Late interaction: how token vectors are stored, what their match says, and when they are made anew."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pager import Hit, Memory, MemoryReader
from pager.search.words import focus
from pager.store.schema import MIGRATIONS, TOKEN_VECTORS
from pager.vectors import quantized as late
from pager.vectors.embedder import Embedder, TokenVectors
from tests.support import HandClock, Pieces, Words, database_of, undone

COUNTS = "SELECT (SELECT count(*) FROM said_token_vectors), (SELECT count(*) FROM fact_token_vectors)"
FERRY = "The ferry to Bergen was late."


def unit_rows(count: int, seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, late.TOKEN_DIMENSION), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def told(count: int, seed: int) -> TokenVectors:
    return TokenVectors([f"word{number}" for number in range(count)], unit_rows(count, seed))


@given(st.integers(0, 80), st.integers(0, 99))
def test_four_bits_a_number_keep_the_cosines(count: int, seed: int) -> None:
    text, asked = told(count, seed), unit_rows(3, seed + 1)
    packed = late.pack(text)
    assert len(packed) == count * late.PIECE_BYTES
    np.testing.assert_allclose(late.cosines(asked, packed), asked @ text.rows.T, atol=0.06)
    assert count == 0 or np.diag(late.cosines(text.rows, packed)).min() > 0.97


def test_words_that_say_nothing_are_not_stored_and_count_little_in_a_question() -> None:
    tokens = TokenVectors(["The", "ferry", "'", "s", "Late", "!"], unit_rows(6, 1))
    assert len(late.pack(tokens)) == 2 * late.PIECE_BYTES
    assert late.weights(tokens, {"ferry": 5.0, "late": 4.0}).tolist() == [
        late.COMMON_RARITY, 5.0, 0.0, late.COMMON_RARITY, 4.0, 0.0,
    ]  # fmt: skip


@given(st.lists(st.integers(1, 3 * late.CHUNK + 5), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 9))
def test_a_text_is_matched_by_the_best_of_its_chunks(sizes: list[int], pieces: int, seed: int) -> None:
    question, texts = told(pieces, seed), [late.pack(told(size, size)) for size in sizes]
    rarities = {f"word{number}": 1.0 + number for number in range(pieces)}
    weighed, found = late.best_cosines(question, rarities, texts)
    assert found.shape == (pieces, len(sizes))
    for place, text in enumerate(texts):
        every = late.cosines(question.rows, text)
        chunks = [every[:, start : start + late.CHUNK].max(axis=1) for start in range(0, every.shape[1], late.CHUNK)]
        assert weighed @ found[:, place] == pytest.approx(max(float(weighed @ chunk) for chunk in chunks), abs=1e-4)


@given(st.integers(0, 999))
def test_the_longer_a_question_the_less_its_single_words_count(words: int) -> None:
    assert 0.0 <= focus(words + 1) <= focus(words) <= 1.0
    assert focus(1) == 1.0
    assert focus(200) == 0.0


def open_memory(directory: Path, embedder: Embedder | None = None) -> Memory:
    return Memory.open(directory, embedder=embedder or Pieces(boat="ferry"), clock=HandClock())


def fill(memory: Memory) -> tuple[str, str]:
    """Return a step and a fact that nothing but the meaning of one word leads to."""
    noise = [{"role": "user", "text": f"noise {number} of many", "session": str(number)} for number in range(9)]
    step, *_ = memory.record_many([{"role": "user", "text": FERRY, "session": "ferry"}, *noise])
    fact = memory.archive(FERRY).id
    for number in range(9):
        memory.archive(f"another fact {number}")
    return step, fact


def counts(memory: Memory) -> tuple[int, int]:
    [row] = database_of(memory).rows(COUNTS)
    return row[0], row[1]


def late_of(hits: list[Hit]) -> dict[str, float]:
    assert all(hit.score == pytest.approx(math.fsum(hit.parts.values()), abs=1e-5) for hit in hits)
    return {hit.page_id: hit.parts["late"] for hit in hits if "late" in hit.parts}


def test_a_word_finds_another_one_that_means_the_same_and_the_parts_add_up(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        step, fact = fill(memory)
        memory.record("user", "The weather in Bergen was late.", session="weather")
        memory.archive("The weather in Bergen was late.")
        question = "Which boat goes to Bergen?"
        for search, wanted in ((memory.search_recall, step), (memory.search_archive, fact)):
            found = late_of(search(question, limit=20))
            assert max(found, key=lambda page: found[page]) == wanted
            assert min(found.values()) >= 0
        with MemoryReader.open(tmp_path, embedder=Pieces(boat="ferry"), clock=HandClock()) as reader:
            assert [hit.parts for hit in reader.search_recall(question)] == [
                hit.parts for hit in memory.search_recall(question)
            ]


def test_facts_and_steps_are_found_together(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        step, fact = fill(memory)
        hits = memory.search("the ferry to Bergen", limit=2, actor="agent")
        assert {hit.page_id for hit in hits} == {step, fact}
        row = memory.ledger(events=["search"])[0]
        assert (row.detail["tier"], row.actor) == ("memory", "agent")
        assert [page for page, *_ in row.detail["found"]] == [hit.page_id for hit in hits]
        assert [use.fact.id for use in memory._store.archive.most_used(9)] == [fact]
        with MemoryReader.open(tmp_path, embedder=Pieces(boat="ferry"), clock=HandClock()) as reader:
            assert [hit.page_id for hit in reader.search("the ferry to Bergen", limit=2)] == [
                hit.page_id for hit in hits
            ]
        late_of(memory.search("a boat, where I was with noise?", limit=20))
        assert memory.search("", limit=3)[0].page_id.startswith("s")


def test_a_step_is_raised_by_a_fact_that_was_stored_from_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        for number in range(9):
            memory.record("user", f"nothing much {number}", session=str(number))
            memory.archive(f"{'lives in Porto' if number == 4 else 'something else'} {number}")
        hits = memory.search_recall("much of Porto")
        assert hits[0].page_id == "s5"
        assert hits[0].parts["facts"] > 0
        late_of(hits)
        for number in range(9):  # so many from one step are an import
            memory.archive(f"has been to Porto {number}")
        assert "s9" not in {hit.page_id for hit in memory.search_recall("much of Porto") if "facts" in hit.parts}


def test_an_embedder_without_token_vectors_falls_back(tmp_path: Path) -> None:
    with open_memory(tmp_path, Words()) as memory:
        fill(memory)
        assert counts(memory) == (0, 0)
        assert (memory.count_unembedded(), memory.check()) == (0, [])
        for search in (memory.search_recall, memory.search_archive):
            hits = search("the ferry")
            assert set(hits[0].parts) >= {"words", "meaning"}
            assert late_of(hits) == {}


def test_when_only_token_vectors_are_made_otherwise_the_vectors_stay(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        step, fact = fill(memory)
        before = database_of(memory).rows("SELECT row, part, vector FROM said_vectors")
    with open_memory(tmp_path, Pieces("tokens-2", boat="ferry")) as memory:
        for search, wanted in ((memory.search_recall, step), (memory.search_archive, fact)):
            hits = search("the ferry")
            assert (hits[0].page_id, "meaning" in hits[0].parts, late_of(hits)) == (wanted, True, {})
        assert memory.has_background_work
        assert (memory.count_unembedded(), counts(memory)) == (20, (0, 0))
        assert memory.embed_pending(limit=3) == 3
        assert memory.search_recall("the ferry")[0].page_id == step
        while memory.embed_pending():
            pass
        assert (memory.count_unembedded(), counts(memory), memory.check()) == (0, (10, 10), [])
        assert late_of(memory.search_recall("the ferry"))
        after = database_of(memory).rows("SELECT row, part, vector FROM said_vectors")
        assert [tuple(row) for row in after] == [tuple(row) for row in before]
        assert "tokens-1 -> tokens-2" in memory.ledger(events=["embedder"])[-1].reason


def test_a_file_from_before_there_were_token_vectors_gets_them(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        step, _ = fill(memory)
    with closing(sqlite3.connect(tmp_path / "pager.db")) as db, db:
        for statement in (
            "DROP TABLE sleep_turns", "DROP TABLE sleep_edits", "DROP TABLE sleeps", "DROP INDEX steps_session",
            "DROP INDEX facts_expires", "DROP INDEX facts_never_used", "ALTER TABLE facts DROP COLUMN expires",
            "CREATE INDEX facts_never_used ON facts (id) WHERE uses = 0 AND valid_until IS NULL AND purged = 0",
            "ALTER TABLE requests DROP COLUMN searches", "ALTER TABLE requests DROP COLUMN options",
            "DROP TABLE skills", "DROP TABLE said_token_vectors", "DROP TABLE fact_token_vectors",
            "DELETE FROM meta WHERE key = 'token_vectors'",
            f"PRAGMA user_version = {MIGRATIONS.index(TOKEN_VECTORS)}",
        ):  # fmt: skip
            db.execute(statement)
    with open_memory(tmp_path) as memory:
        assert memory.search_recall("the ferry")[0].page_id == step
        while memory.embed_pending():
            pass
        assert (counts(memory), memory.check()) == ((10, 10), [])
        assert late_of(memory.search_recall("the ferry"))


def test_a_purge_and_a_rollback_leave_none_behind(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        with undone(memory):
            fill(memory)
        assert counts(memory) == (0, 0)
        step, fact = fill(memory)
        assert counts(memory) == (10, 10)
        packed = late.pack(Pieces(boat="ferry").embed_tokens([FERRY])[1][0])
        memory.purge(step)
        assert memory.fact(fact).purged
        assert counts(memory) == (9, 9)
    assert all(packed not in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    with open_memory(tmp_path) as memory:
        memory.export(tmp_path / "copy.db")
        assert memory.check() == []
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        assert db.execute(COUNTS).fetchone() == (9, 9)


def test_damaged_token_vectors_are_left_out_and_made_anew_by_check(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        step, fact = fill(memory)
        for table in ("said_token_vectors", "fact_token_vectors"):
            database_of(memory).run(f"UPDATE {table} SET vectors = x'00'")
        hits = memory.search("the ferry", limit=2)
        assert ({hit.page_id for hit in hits}, late_of(hits)) == ({step, fact}, {})
        assert [problem.where for problem in memory.check(fix=True)] == ["vectors", "vectors"]
        while memory.embed_pending():
            pass
        assert memory.check() == []
        assert late_of(memory.search("the ferry", limit=2))


@pytest.mark.parametrize(
    "wrong", [[], [TokenVectors(["one"], unit_rows(2, 1))], [TokenVectors(["one"], unit_rows(1, 1) * np.nan)]]
)
def test_token_vectors_that_break_the_promise_are_a_failure_of_the_embedder(
    tmp_path: Path, wrong: list[TokenVectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Pieces()
    monkeypatch.setattr(embedder, "embed_tokens", lambda texts: (embedder.embed(texts), wrong))
    with open_memory(tmp_path, embedder) as memory:
        fact = memory.archive(FERRY)
        assert memory.search_archive("ferry")[0].page_id == fact.id
        assert "token vectors" in memory.ledger(events=["embedder"])[0].reason


def test_a_fact_that_comes_back_has_the_vectors_of_the_one_that_ended(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.archive(FERRY, key="ferry")
        for number in range(9):
            memory.archive(f"another fact {number}")
        memory.archive("The ferry never sails.", key="ferry", source="web:example.org")
        assert memory.forget_source("web:example.org").restored == ("f1",)
        assert (counts(memory), memory.check()) == ((0, 12), [])
        found = late_of(memory.search_archive("Which boat goes to Bergen?"))
        assert max(found, key=lambda page: found[page]) == "f12"
        while memory.embed_pending():
            pass
        assert memory.count_unembedded() == 0
