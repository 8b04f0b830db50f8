"""What search_recall finds, and why: neighbours, people, times, languages."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from tests.support import HandClock
from tests.tiers.test_recall import found


def tell(memory: Memory, *messages: tuple[str, str], **more: Any) -> list[str]:
    return memory.record_many({"role": "user", "name": name, "text": text, **more} for name, text in messages)


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


def test_a_time_in_the_question_is_read_against_the_time_of_what_was_said(tmp_path: Path) -> None:
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


def test_a_time_alone_finds_what_was_said_then(memory: Memory) -> None:
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


def test_a_time_read_out_of_a_question_hides_nothing(memory: Memory) -> None:
    answer = memory.record("user", "Then I took up pottery, of all things.", name="June", at="2023-09-08")
    for month in range(1, 9):
        memory.record("user", f"Nothing new in month {month}.", name="June", at=f"2023-{month:02}-08")
    for question in (
        "Did June take up pottery before her trip in May 2023?", "Who took up pottery in June?",
        "pottery between March and May 2023", "pottery until 2023-02-01", "Was there pottery before the move?",
    ):  # fmt: skip
        assert answer in found(memory, question, limit=4), question
    assert found(memory, "pottery", before="2023-05-31") == []


def test_a_person_is_no_month(memory: Memory) -> None:
    memory.record("user", "we went to the lake", name="June", at="2023-06-08")
    memory.record("user", "we went to the lake", name="June", at="2023-07-08")
    assert all("when" not in hit.parts for hit in memory.search_recall("When was June at the lake?"))


@pytest.mark.slow
def test_equal_messages_come_in_the_same_order_wherever_they_stand(tmp_path: Path) -> None:
    with Memory.open(tmp_path, clock=HandClock()) as memory:
        noise = [{"role": "user", "text": f"noise {number}", "session": f"n{number}"} for number in range(37)]
        for number in range(9):
            memory.record_many([{"role": "user", "text": "The ferry to Bergen was late.", "session": f"s{number}"}])
            memory.record_many(noise[: 3 * number])
        hits = memory.search_recall("When did the boat to Norway come?", limit=9)
        assert len({hit.score for hit in hits}) == 1
        assert [hit.page_id for hit in hits] == sorted((hit.page_id for hit in hits), key=lambda page: -int(page[1:]))


def test_a_month_is_found_at_the_ends_of_the_calendar(memory: Memory) -> None:
    memory.record("user", "first", at="0001-01-03")
    assert found(memory, "0001-01-03")[0] == "s1"
    memory.record("user", "last", at="9999-12-29")
    assert found(memory, "in December 9999-12-29")[0] == "s2"
    assert found(memory, "0001-01-01, 0001-01-02, 9999-12-29 or 9999-12-31, 0000-00-00") == ["s2"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京都に住んでいます", "東京"),
        ("猫が大好きです", "猫"),
        ("我昨天在北京吃了烤鸭", "烤鸭"),
        ("서울에서 만났어요", "서울"),
        ("ผมชอบกินข้าวผัด", "ข้าว"),
        ("मैं दिल्ली में रहता हूँ", "दिल्ली"),
        ("Я живу в Москве", "москве"),
        ("أعيش في القاهرة", "القاهرة"),
        ("ﾊﾝｶｸ カナ", "ハンカク"),
        ("aime le thé", "du thé"),
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
    words = memory._store.maintenance
    words.clear_words()
    assert memory.check(fix=True)
    assert found(memory, query)[0] == wanted


def test_the_ledger_says_what_was_found_and_what_only_just_was_not(memory: Memory) -> None:
    for number in range(9):
        memory.record("user", f"engine {'x ' * number}", session=str(number))
        memory.archive(f"engine {'x ' * number}")
    span: Any = {"after": "2026-01-01", "actor": "agent", "limit": 3}
    hits = {"recall": memory.search_recall("engine", **span), "archive": memory.search_archive("engine", **span)}
    for row in memory.ledger(events=["search"]):
        assert (row.actor, row.detail["after"]) == ("agent", "2026-01-01")
        shown = hits[row.detail["tier"]]
        assert [page for page, _, _ in row.detail["found"]] == [hit.page_id for hit in shown]
        assert [parts.keys() for _, _, parts in row.detail["found"]] == [hit.parts.keys() for hit in shown]
        scores = [score for _, score, _ in [*row.detail["found"], *row.detail["missed"]]]
        assert len(scores) == 6
        assert scores == sorted(scores, reverse=True)
    assert len(memory.ledger(events=["search"])) == 2
