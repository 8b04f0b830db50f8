"""Recall: every step that was ever said, by its words and by its date; messages recorded from elsewhere."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from pager import Memory, MemoryReader, RejectedError
from tests.standin import call, thinking
from tests.support import HandClock, Talk, Words, database_of, undone


def found(memory: Memory, query: str, **span: Any) -> list[str]:
    return [hit.page_id for hit in memory.search_recall(query, **span)]


def test_what_was_undone_makes_nobody_read_all_parts_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.record_many([{"role": "user", "text": f"topic{number}"} for number in range(9)])
    memory.search_recall("topic3")
    metadata, asked = memory._store.said.metadata, list[int]()
    monkeypatch.setattr(memory._store.said, "metadata", lambda after: asked.append(after) or metadata(after))
    with pytest.raises(RejectedError):
        memory.record_many([{"role": "user", "text": "topic9"}, {"role": "user"}])
    with pytest.raises(RejectedError):
        memory.core_append("nope", "x")
    assert memory.search_recall("topic3", limit=1)[0].page_id == "s4"
    assert asked == [9]
    with undone(memory):
        memory.record("user", "topic10")
        assert memory.search_recall("topic10", limit=1)[0].page_id == "s10"
    assert memory.search_recall("topic10") == []
    assert asked == [9, 9, 0]  # these were read while they could still be undone


@pytest.mark.parametrize(
    "query",
    ["up warm", "warm up", "WARMING", "morning engines up", "engine", "café", "CAFE", "cafés", "(warm) AND \"up\" OR *",
     "naïve", "who? warm!", "Ölofen", "olofen", "3.5", "x_y"],
)  # fmt: skip
def test_word_order_stems_case_and_accents_do_not_matter(memory: Memory, query: str) -> None:
    text = "Warm up the engine each morning, near the Café, said the naive Ölöfen: 3.5 times x_y"
    for said in (text, "nothing to see here"):
        memory.record("user", said, session=said)
        memory.archive(said)
    assert found(memory, query) == ["s1"]
    assert [hit.page_id for hit in memory.search_archive(query)] == ["f1"]


@pytest.mark.parametrize("query", ["", " \n\t"])
def test_a_blank_query_gives_the_newest_of_the_span(memory: Memory, query: str) -> None:
    steps = [memory.record("user", f"message {number}", at=f"2026-01-{number + 1:02}") for number in range(9)]
    memory.record("user", "an older message, recorded late", at="2026-01-01")
    assert found(memory, query, limit=3) == steps[:-4:-1]
    assert found(memory, query, before="2026-01-02") == [steps[1], "s10", steps[0]]


@pytest.mark.parametrize("query", ["?!", "_", "\0", '"', "*", "NEAR(", "🗝", "^", "-", "a" * 5_000, "x " * 5_000])
def test_a_query_of_no_words_finds_nothing_and_fails_not(memory: Memory, query: str) -> None:
    memory.record("user", "the engine is red")
    memory.archive("the engine is red")
    assert found(memory, query) == memory.search_archive(query) == []


@pytest.mark.parametrize("letter", ["\u1100", "\ue000", "a"])
def test_a_word_that_is_too_long_for_the_index_stops_no_search(memory: Memory, letter: str) -> None:
    word = letter * 33_001  # the index cuts it, maybe within a letter
    [ferry, _] = memory.record_many([{"role": "user", "text": text} for text in ("the ferry leaves at nine", word)])
    assert ferry in found(memory, f"{word} ferry")
    assert isinstance(found(memory, word), list)
    assert found(memory, "ferry")[0] == ferry
    assert not memory.check()


def test_a_limit_counts_steps_not_parts(memory: Memory) -> None:
    for number in range(6):
        memory.append_user([{"type": "text", "text": f"engine {number} piece {piece}"} for piece in range(5)])
        memory.append_assistant("ok")
    assert len(found(memory, "engine", limit=4)) == 4
    said = [hit.page_id for hit in memory.search_recall("engine", limit=20) if "words" in hit.parts]
    assert len(set(said)) == len(said) == 6
    with pytest.raises(RejectedError, match="limit is 0"):
        memory.search_recall("engine", limit=0)


def test_a_hit_says_who_when_and_the_place_in_a_long_text(memory: Memory) -> None:
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    memory.record("user", "before " * 500 + "the engine " + "after " * 500, at=at, name="Dana")
    memory.record("narrator", "an engine", at=at, session="another")
    hits = {hit.page_id: hit for hit in memory.search_recall("engine")}
    assert (hits["s1"].who, hits["s1"].at, hits["s2"].who) == ("Dana", at, "narrator")
    assert "engine" in hits["s1"].text
    assert len(hits["s1"].text) < 500
    assert hits["s1"].parts == {"words": pytest.approx(hits["s1"].score)}
    assert found(memory, "dana") == ["s1"]


def test_everything_said_is_found_and_only_that(talk: Talk) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "gnu"}
    talk.memory.append_user(
        [{"type": "text", "text": "zebra"}, {"type": "document", "title": "Okapi", "source": source}]
    )
    talk.reply(thinking("secret lynx"), "I look for the giraffe.", call("weather", {"city": "Hippo"}))
    talk.answer("sunny in Ibex")
    talk.reply("done", call("weather", {"city": "x"}))
    talk.answer("found before: quokka", memory_tool=True)
    talk.reply("So.")
    places = {"zebra": "s1", "okapi": "s1", "gnu": "s1", "giraffe": "s2", "ibex": "s2", "lynx": None, "quokka": None}
    for word, step in places.items():
        assert found(talk.memory, word)[:1] == ([step] if step else []), word


def test_a_date_alone_means_that_whole_day(memory: Memory) -> None:
    for hour, minute in ((0, 0), (12, 0), (23, 59)):
        memory.record("user", "engine", at=datetime(2026, 5, 3, hour, minute, 59, 999_999, tzinfo=UTC))
    memory.record("user", "engine", at=datetime(2026, 5, 4, tzinfo=UTC))
    memory.record("user", "engine", at=datetime(2026, 5, 2, 23, 59, 59, 999_999, tzinfo=UTC))
    for day in ("2026-05-03", date(2026, 5, 3)):
        assert set(found(memory, "engine", after=day, before=day)) == {"s1", "s2", "s3"}
    assert found(memory, "engine", after="2026-05-04") == ["s4"]
    assert found(memory, "engine", before="2026-05-02") == ["s5"]


def test_the_limit_is_applied_within_the_span(memory: Memory) -> None:
    for _ in range(50):
        memory.record("user", "engine engine", at="2026-01-01")
    inside = memory.record("user", "a very long way to say something about an engine", at="2026-02-01")
    assert found(memory, "engine", after="2026-02-01", limit=1) == [inside]


# messages from elsewhere


@pytest.mark.slow
def test_ten_thousand_messages_are_one_transaction(tmp_path: Path) -> None:
    commits: list[str] = []
    with Memory.open(tmp_path, embedder=None) as memory:
        database_of(memory).trace(lambda sql: commits.append(sql) if sql.startswith(("COMMIT", "BEGIN")) else None)
        messages = ({"role": "user", "text": f"message {number}", "at": "2026-01-01"} for number in range(10_000))
        steps = memory.record_many(messages)
        database_of(memory).trace(None)
        assert commits == ["BEGIN IMMEDIATE", "COMMIT"]
        assert (steps[0], steps[-1], len(steps)) == ("s1", "s10000", 10_000)
        assert found(memory, "9999")[0] == "s10000"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (None, "needs the texts role and text"),
        ("hello", "needs the texts role and text"),
        ({"role": "user"}, "needs the texts role and text"),
        ({"role": 5, "text": "a"}, "needs the texts role and text"),
        ({"role": "user", "text": "a", "name": 7}, "name and session"),
        ({"role": "user", "text": "a", "session": ["b"]}, "name and session"),
        ({"role": "user", "text": "a", "when": 1}, "unknown: when"),
        ({"role": "user", "text": "a", 5: 6}, "unknown: 5"),
        ({"role": " ", "text": "a"}, "the role is empty"),
        ({"role": "user", "text": "a", "at": "soon"}, "'soon' is not a moment"),
        ({"role": "user", "text": "a", "at": 5}, "5 is not a moment"),
    ],
)
def test_all_messages_are_recorded_or_none_and_the_error_says_which(memory: Memory, message: Any, why: str) -> None:
    with pytest.raises(RejectedError, match=rf"message 2: .*{why}"):
        memory.record_many([{"role": "user", "text": "one"}, {"role": "user", "text": "two"}, message])
    assert found(memory, "") == []
    assert memory.record_many([]) == []
    assert memory.record("user", "one") == "s1"


def test_what_a_program_stores_with_a_message_comes_back_as_it_was_and_is_never_found(memory: Memory) -> None:
    data = {"type": "user", "uuid": "u1", "nested": [{"zebra": 1.5, "none": None}]}
    memory.record("user", "the giraffe eats", session="house/1", data=data)
    memory.record("tool", "", session="house/1", data={"result": "an okapi"})
    memory.record("user", "a lion", session="house/2")
    records = memory.inspect.records("house/1")
    assert [(each.id, each.role, each.text, each.data) for each in records] == [
        ("s1", "user", "the giraffe eats", data),
        ("s2", "tool", "", {"result": "an okapi"}),
    ]
    assert [each.id for each in memory.inspect.records("house/1", limit=1)] == ["s2"]
    assert [each.id for each in memory.inspect.records("house/1", before="s2")] == ["s1"]
    assert [(each.name, each.count) for each in memory.inspect.sessions("house/")] == [("house/1", 2), ("house/2", 1)]
    assert found(memory, "giraffe") == ["s1"]
    assert found(memory, "zebra okapi") == []


@pytest.mark.parametrize("embedder", [None, Words()], ids=["words", "meaning"])
def test_a_forgotten_record_is_listed_and_found_no_more_and_only_purge_destroys_it(
    tmp_path: Path, embedder: Words | None
) -> None:
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        memory.record("user", "the giraffe eats", name="Dana", session="a", data={"n": 1})
        memory.record("user", "the giraffe sleeps", session="a")
        with MemoryReader.open(tmp_path) as reader:
            assert len(reader.search_recall("giraffe")) == 2
            memory.forget_records(["s1"], "it was taken back", actor="house")
            assert [hit.page_id for hit in reader.search_recall("giraffe")] == ["s2"]
        assert found(memory, "giraffe") == found(memory, "") == ["s2"]
        assert [each.id for each in memory.inspect.records("a")] == ["s2"]
        assert memory.page_text("s1") == "the giraffe eats"
        assert [(row.page_id, row.reason, row.actor) for row in memory.ledger(events=["forget"])] == [
            ("s1", "it was taken back", "house")
        ]
        assert memory.check() == []
        memory.forget_records(["s1"], "once more changes nothing")
        memory.purge("s1")
        assert memory.check() == []
        assert b"eats" not in (tmp_path / "pager.db").read_bytes()
        memory.append_user("hello")
        with pytest.raises(RejectedError, match="s3 is no message that was recorded"):
            memory.forget_records(["s2", "s3"], "a mistake")
        assert found(memory, "giraffe") == ["s2"]
