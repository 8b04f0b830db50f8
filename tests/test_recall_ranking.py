"""What search_recall finds, and why: neighbours, people, times, languages, meaning; and that nothing of it lasts longer
than the turns themselves."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pager import EmbedderUnavailable, Memory
from pager.embedding import AT_ONCE
from pager.said_meaning import HEAD, LARGEST, packed
from tests.support import Broken, HandClock, Letters, Talk, Words, database_of
from tests.support.secret import SECRET, assert_gone, marks_in
from tests.test_recall import found


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        yield memory


def tell(memory: Memory, *turns: tuple[str, str], **more: Any) -> list[str]:
    return memory.record_many({"role": "user", "name": name, "text": text, **more} for name, text in turns)


# neighbours


def test_an_answer_is_found_by_the_words_of_its_question(memory: Memory) -> None:
    _, question, answer, _ = tell(
        memory, ("Ana", "What a week it was."), ("Ben", "How was the pottery class on Friday?"),
        ("Ana", "I made a vase."), ("Ben", "Nice, is it blue?"),
    )  # fmt: skip
    tell(memory, ("Ana", "Nothing to do with it."), at="2020-01-01")
    hits = memory.search_recall("pottery class")
    assert [hit.page_id for hit in hits[:2]] == [question, answer]
    assert set(hits[0].parts) == {"words"}
    assert set(hits[1].parts) == {"neighbours"}
    assert len(hits) == 4


def test_a_session_is_known_by_its_name_or_by_its_day(memory: Memory) -> None:
    tell(memory, ("Ana", "the engine"), at="2026-01-01")
    tell(memory, ("Ana", "unheard of"), at="2026-01-02")
    tell(memory, ("Ana", "the rotor"), at="2026-01-02", session="other")
    assert found(memory, "engine") == ["s1"]
    assert found(memory, "rotor") == ["s3"]


def test_turns_that_come_later_are_neighbours_too(memory: Memory) -> None:
    tell(memory, ("Ana", "the engine"))
    assert found(memory, "engine") == ["s1"]
    tell(memory, ("Ben", "it is broken"))
    assert found(memory, "engine") == ["s1", "s2"]


# people and times


def test_of_two_who_say_it_the_one_who_is_named_comes_first(memory: Memory) -> None:
    ana, ben = tell(memory, ("Ana", "I adopted a cat"), ("Ben", "I adopted a cat"))
    assert found(memory, "Who adopted a cat, Ana?")[0] == ana
    assert found(memory, "What did Ben adopt?")[0] == ben
    assert "who" in memory.search_recall("What did Ben adopt?")[0].parts


def test_a_time_in_the_question_is_read_against_the_turns_time(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=None, clock=clock) as memory:
        steps = {
            at: memory.record("user", "we went to the lake", at=at) for at in ("2023-05-08", "2023-06-08", "2024-05-08")
        }
        assert found(memory, "the lake in June")[0] == steps["2023-06-08"]
        assert found(memory, "the lake in May 2023")[0] == steps["2023-05-08"]
        assert set(found(memory, "the lake in May")[:2]) == {steps["2023-05-08"], steps["2024-05-08"]}
        yesterday = memory.record("user", "we went to the lake", at=clock.now() - timedelta(days=1))
        memory.record("user", "we went to the lake", at=clock.now())
        assert found(memory, "what about the lake, yesterday?")[0] == yesterday


def test_a_time_alone_finds_its_turns(memory: Memory) -> None:
    step = memory.record("user", "nothing else", at="2023-05-08")
    memory.record("user", "and more", at="2023-06-08")
    hits = memory.search_recall("May 2023")
    assert [(hit.page_id, set(hit.parts)) for hit in hits] == [(step, {"when"})]


def test_before_an_event_that_somebody_told(memory: Memory) -> None:
    before = memory.record("user", "the garden is wild", at="2023-01-01")
    memory.record("user", "today was the move, at last", at="2023-03-01")
    after = memory.record("user", "the garden is wild", at="2023-05-01")
    assert found(memory, "the garden")[0] == after  # the newest of equal ones
    assert found(memory, "What was the garden like before the move?", limit=9).index(before) < found(
        memory, "What was the garden like before the move?", limit=9
    ).index(after)
    assert found(memory, "the garden after the move", before="2023-04-01", limit=1) != [after]


def test_a_month_is_found_at_the_ends_of_the_calendar(memory: Memory) -> None:
    memory.record("user", "first", at="0001-01-03")
    assert found(memory, "0001-01-03")[0] == "s1"
    memory.record("user", "last", at="9999-12-29")
    assert found(memory, "in December 9999-12-29")[0] == "s2"
    assert found(memory, "0001-01-01, 0001-01-02, 9999-12-29 or 9999-12-31, 0000-00-00") == ["s2"]


# languages


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Die Straße nach Süden ist gesperrt", "STRASSE"),
        ("東京都に住んでいます", "東京"),
        ("猫が大好きです", "猫"),
        ("我昨天在北京吃了烤鸭", "烤鸭"),
        ("서울에서 만났어요", "서울"),
        ("ผมชอบกินข้าวผัด", "ข้าว"),
        ("मैं दिल्ली में रहता हूँ", "दिल्ली"),
        ("Я живу в Москве", "москве"),
        ("أعيش في القاهرة", "القاهرة"),
        ("Ζω στην ΑΘΉΝΑ", "αθήνα"),
        ("ﾊﾝｶｸ カナ", "ハンカク"),
    ],
)
def test_any_language_is_found_by_its_words(memory: Memory, text: str, query: str) -> None:
    wanted = memory.record("user", text, session="wanted")
    for number, other in enumerate(["大阪に行きます", "ich fahre nach Norden", "부산", "สวัสดี", "नमस्ते", "nothing"]):
        memory.record("user", other, session=str(number))
    assert found(memory, query)[0] == wanted
    fact = memory.archive(text)
    memory.archive("大阪に行きます")
    assert memory.search_archive(query)[0].page_id == fact.id
    words = memory._store.upkeep
    words.clear_words()
    assert memory.check(fix=True)
    assert found(memory, query)[0] == wanted


# the ledger


def test_the_ledger_says_what_was_found_and_what_only_just_was_not(memory: Memory) -> None:
    for number in range(9):
        memory.record("user", f"engine {'x ' * number}", session=str(number))
        memory.archive(f"engine {'x ' * number}")
    hits = {"recall": memory.search_recall("engine", limit=3), "archive": memory.search_archive("engine", limit=3)}
    for row in memory.ledger(events=["search"]):
        shown = hits[row.detail["tier"]]
        assert [page for page, _, _ in row.detail["found"]] == [hit.page_id for hit in shown]
        assert [parts.keys() for _, _, parts in row.detail["found"]] == [hit.parts.keys() for hit in shown]
        scores = [score for _, score, _ in [*row.detail["found"], *row.detail["missed"]]]
        assert len(scores) == 6
        assert scores == sorted(scores, reverse=True)
    assert len(memory.ledger(events=["search"])) == 2


# meaning


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
    embedder = Broken()
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        for number in range(3 * AT_ONCE):
            memory.record("user", f"topic{number}", session=str(number))
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
        with Memory.read(tmp_path, embedder=Words(), clock=HandClock()) as reading:
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
