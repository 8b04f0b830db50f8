"""The archive: keys, validity, tags, and how facts are found by words and by meaning."""

import math
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import Memory, MemoryReader, RejectedError
from pager.tiers.archive import MAX_EXACT, fuse
from tests.support import HandClock, Words


def ids(hits: Any) -> list[str]:
    return [hit.page_id for hit in hits]


def test_a_fact_says_what_it_was_given(memory: Memory) -> None:
    fact = memory.archive(" prefers window seats ", key=" seat ", tags=["Travel", "seats "], actor="agent")
    assert (fact.id, fact.text, fact.key, fact.tags) == ("f1", " prefers window seats ", "seat", ("Travel", "seats"))
    assert (fact.actor, fact.valid_until, fact.supersedes, fact.superseded_by) == ("agent", None, None, None)
    assert memory.fact("f1") == fact


def test_the_same_key_supersedes_and_the_old_one_keeps_its_interval(memory: Memory) -> None:
    old = memory.archive("lives in Porto", key="home")
    new = memory.archive("lives in Faro", key="home")
    was = memory.fact(old.id)
    assert new.supersedes == old.id
    assert was.superseded_by == new.id
    assert was.valid_until == new.valid_from
    assert (was.text, was.valid_from) == (old.text, old.valid_from)
    assert ids(memory.search_archive("where lives")) == [new.id]
    assert ids(memory.search_archive("where lives", as_of=old.valid_from)) == [old.id]
    assert [f.id for f in memory.history.fact_versions("home")] == ["f1", "f2"]
    assert memory.archive("lives in Faro", key=None).supersedes is None


def test_as_of_is_exact_to_the_moment_and_a_day_means_its_end(memory: Memory) -> None:
    memory.archive("in Porto", key="home", valid_from="2025-01-01")
    memory.archive("in Faro", key="home", valid_from="2025-03-01T12:00+01:00")
    for at, found in (
        ("2024-12-31", []), ("2025-01-01", ["f1"]), ("2025-03-01T10:59:59Z", ["f1"]), ("2025-03-01T11:00Z", ["f2"]),
        ("2025-03-01", ["f2"]), (date(2025, 2, 28), ["f1"]),
    ):  # fmt: skip
        assert ids(memory.search_archive("in", as_of=at)) == found, at
    fact = memory.archive("today")
    assert ids(memory.search_archive("today", as_of=fact.at.date())) == [fact.id]


def test_what_is_said_now_holds_until_what_was_stated_to_begin_later(memory: Memory) -> None:
    memory.archive("in Porto", key="home")
    memory.archive("in Faro", key="home", valid_from="2027-01-01")
    memory.archive("in Lisbon", key="home")
    assert ids(memory.search_archive("in")) == ["f3"]
    assert ids(memory.search_archive("in", as_of="2027-01-02")) == ["f2"]
    memory.forget("f2", "she stays")
    assert ids(memory.search_archive("in", as_of="2027-01-02")) == []
    memory.archive("in Braga", key="home", valid_from="2028-01-01")
    assert ids(memory.search_archive("in")) == ["f3"]
    assert not memory.check()


def test_forgetting_ends_a_fact_and_destroys_nothing(memory: Memory) -> None:
    fact = memory.archive("has two cats", key="cats")
    ended = memory.forget(fact.id, "they moved out", actor="agent")
    assert ended.forgotten == "they moved out"
    assert ids(memory.search_archive("cats")) == []
    assert ids(memory.search_archive("cats", as_of=fact.valid_from)) == [fact.id]
    assert memory.page_text(fact.id) == "has two cats"
    assert memory.archive("has a dog", key="cats").supersedes is None
    with pytest.raises(RejectedError, match="f1 was forgotten already; there is nothing to do"):
        memory.forget(fact.id, "again")
    row = memory.ledger(events=["forget"])[0]
    assert (row.page_id, row.reason, row.actor) == ("f1", "they moved out", "agent")


@pytest.mark.parametrize(
    ("page", "why"), [("f9", "there is no fact f9"), ("s1", "only facts"), ("cats", "not a page id")]
)
def test_only_facts_can_be_forgotten(memory: Memory, page: str, why: str) -> None:
    memory.record("user", "hello")
    with pytest.raises(RejectedError, match=why):
        memory.forget(page, "why not")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"text": " \n"}, "needs a text"),
        ({"text": "a", "key": " "}, "key is empty"),
        ({"text": "a", "tags": [" "]}, "tag is empty"),
        ({"text": "a", "tags": "travel"}, r"give a list, such as \['travel'\]"),
        ({"text": "a", "valid_from": "soon"}, "'soon' is not a moment"),
    ],
)
def test_a_wrong_fact_is_refused_and_nothing_is_stored(memory: Memory, arguments: Any, why: str) -> None:
    with pytest.raises(RejectedError, match=why):
        memory.archive(**arguments)
    assert memory.inspect.newest_facts() == []
    assert memory.ledger() == []


def test_tags_are_exact_and_all_of_them_are_needed(memory: Memory) -> None:
    memory.archive("seat one", tags=["travel", "Étage"])
    memory.archive("seat two", tags=["travels"])
    memory.archive("seat three", tags=["TRAVEL"])
    assert set(ids(memory.search_archive("seat", tags=["travel"]))) == {"f1", "f3"}
    assert ids(memory.search_archive("seat", tags=["Travel", "étage"])) == ["f1"]
    assert ids(memory.search_archive("seat", tags=["trav"])) == []
    assert ids(memory.search_archive("seat", tags=[" travels "])) == ["f2"]
    assert ids(memory.search_archive("seat", tags=["E\u0301tage"])) == ["f1"]  # as macOS takes it apart


def test_a_key_is_one_however_its_letters_are_typed(memory: Memory) -> None:
    memory.archive("by the window", key="caf\u00e9")
    memory.archive("by the door", key="cafe\u0301")  # as macOS takes it apart
    assert ids(memory.search_archive("window door")) == ["f2"]
    current = memory.inspect.current_fact("cafe\u0301")
    assert (current and current.id, len(memory.history.fact_versions("cafe\u0301"))) == ("f2", 2)


def test_as_many_as_were_asked_for_and_no_more(memory: Memory) -> None:
    with memory.transaction():
        for number in range(150):
            memory.archive(f"seat number {number}", tags=["all"])
    assert len(memory.search_archive("seat", limit=7)) == 7
    assert len(memory.search_archive("seat", limit=120)) == 120
    assert len(memory.search_archive("seat", limit=1_000)) == 150
    assert len(memory.search_archive("seat", limit=1_000, tags=["all"])) == 150


def test_a_long_fact_is_shown_in_part_and_kept_whole(memory: Memory) -> None:
    text = "before " * 2_000 + "needle " + "after " * 2_000
    fact = memory.archive(text)
    hit = memory.search_archive("needle")[0]
    assert "needle" in hit.text
    assert len(hit.text) < 3_000
    assert memory.page_text(fact.id) == text


def test_a_day_is_a_day_where_the_clock_stands(tmp_path: Path) -> None:
    zone = ZoneInfo("America/New_York")
    with Memory.open(tmp_path, embedder=None, clock=HandClock(zone=zone)) as memory:
        fact = memory.archive("in Porto", valid_from=date(2026, 3, 8))  # the day on which clocks go forward
        assert fact.valid_from.isoformat() == "2026-03-08T00:00:00-05:00"
        assert ids(memory.search_archive("Porto", as_of="2026-03-08T04:59Z")) == []
        assert ids(memory.search_archive("Porto", as_of="2026-03-08T05:00Z")) == ["f1"]
        assert ids(memory.search_archive("Porto", as_of=datetime(2026, 3, 8, 0, 0))) == ["f1"]  # noqa: DTZ001 -- naive


def test_a_clock_that_is_set_back_hides_nothing_that_was_stored(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=None, clock=clock) as memory:
        memory.archive("by the window", key="seat")
        memory.archive("by the door in the end", key="seat", valid_from="2030-01-01")
        clock.set(datetime(2020, 1, 1, tzinfo=UTC))
        assert ids(memory.search_archive("door window")) == ["f1"]
        assert memory.inspect.is_true(memory.fact("f1"))
        memory.archive("in the aisle, not by the window", key="seat")
        assert ids(memory.search_archive("door window aisle")) == ["f3"]
        memory.forget("f3", "none")
        assert ids(memory.search_archive("door window aisle")) == []


def test_a_clock_that_was_ahead_for_a_moment_leaves_later_times_as_they_are(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=None, clock=clock) as memory:
        clock.set(datetime(2030, 1, 1, tzinfo=UTC))
        memory.archive("lives in Lisbon", key="home")
        for day in (19, 20):
            clock.set(datetime(2026, 11, day, tzinfo=UTC))
            memory.archive(f"lives in Porto, number {day}", key="home")
        assert ids(memory.search_archive("lives")) == ids(memory.search_archive("lives", as_of="2026-11-20")) == ["f3"]
        assert ids(memory.search_archive("lives", as_of="2026-11-19")) == ["f2"]
        assert ids(memory.search_archive("lives", after="2026-11-20", before="2026-11-20")) == ["f3"]
        memory.archive("has a cat")
    with MemoryReader.open(tmp_path, embedder=None, clock=clock) as reading:
        assert ids(reading.search_archive("lives cat Lisbon")) == ["f4", "f3"]


@pytest.mark.parametrize("embedder", [None, Words()])
def test_facts_are_asked_for_by_when_they_were_stored(tmp_path: Path, embedder: Words | None) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=embedder, clock=clock) as memory:
        for day in range(1, 10):
            clock.set(datetime(2026, 5, day, 12, tzinfo=UTC))
            memory.archive(f"seat number {day}", valid_from="2020-01-01", tags=["odd"] * (day % 2))
        assert set(ids(memory.search_archive("seat", after="2026-05-08"))) == {"f8", "f9"}
        assert set(ids(memory.search_archive("seat", before="2026-05-02"))) == {"f1", "f2"}
        assert set(ids(memory.search_archive("seat", after="2026-05-04", before="2026-05-06"))) == {"f4", "f5", "f6"}
        assert set(ids(memory.search_archive("seat", after="2026-05-04", before="2026-05-06", tags=["ODD"]))) == {"f5"}
        assert memory.search_archive("seat", after=datetime(2026, 5, 9, 13, tzinfo=UTC)) == []
        assert memory.search_archive("seat", after="2026-05-04", as_of="2019-01-01") == []
        assert memory.ledger(events=["search"])[-1].detail["after"] == "2026-05-04"
        with MemoryReader.open(tmp_path, embedder=embedder, clock=clock) as reading:
            assert ids(reading.search_archive("seat", before="2026-05-01")) == ["f1"]
        with pytest.raises(RejectedError, match="not a moment"):
            memory.search_archive("seat", after="lately")


@pytest.mark.slow
@pytest.mark.parametrize("embedder", [None, Words()])
def test_of_many_facts_that_a_filter_leaves_the_oldest_is_found_too(tmp_path: Path, embedder: Words | None) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=embedder, clock=clock) as memory, memory.transaction():
        memory.archive("a stool", key="room", tags=["all"])  # ended: the next one takes its place
        old = memory.archive("a chair in some other room of the house", key="room", tags=["all"])
        clock.set(clock.now() + timedelta(days=30))
        for number in range(300):  # nearer than most, but not of the tag
            memory.archive(f"chair in a room {number}")
        for number in range(MAX_EXACT):
            memory.archive(f"chair {number}", tags=["all"])
        assert ids(memory.search_archive("chair", before="2026-05-10", limit=5)) == [old.id]
        assert len(memory.search_archive("chair", after="2026-05-10", limit=5)) == 5
        assert ids(memory.search_archive("some other room of the house", tags=["all"], limit=9))[0] == old.id
        hits = memory.search_archive("chair", tags=["all"], limit=MAX_EXACT + 9)
        assert (len(hits), {"all" in hit.tags for hit in hits}) == (MAX_EXACT + 1, {True})


def scores(least: float, most: float) -> st.SearchStrategy[dict[int, float]]:
    return st.dictionaries(st.integers(1, 9), st.floats(least, most, allow_subnormal=True))


RARE = {1: 1.1e-6, 2: 1.0e-6, 3: 1.1e-6}  # as SQLite scores a word of more than half of the facts


@pytest.mark.parametrize(
    ("by_words", "by_meaning", "order"),
    [
        ({1: 3.0, 2: 3.0, 3: 0.5}, {2: 0.8, 4: 0.8, 1: 0.1}, [2, 1, 3, 4]),  # what both sides find comes first
        (RARE, {1: 0.3, 2: 0.5, 3: 0.4, 4: 0.6}, [4, 2, 3, 1]),
        (RARE, {}, [3, 1, 2]),
        ({5: 1.0, 7: 2.0, 6: 1.0}, {}, [7, 6, 5]),  # the newest of equal ones is first
        ({}, {5: 0.1, 7: 0.2}, [7, 5]),
        ({}, {}, []),
    ],
)
def test_two_scores_are_made_one(by_words: dict[int, float], by_meaning: dict[int, float], order: list[int]) -> None:
    assert [each for each, _ in fuse(by_words, by_meaning, {})] == order


def test_the_units_of_a_side_do_not_matter() -> None:
    by_words, by_meaning = {1: 3.0, 2: 1.0, 3: 0.5}, {3: 0.8, 4: 0.7, 1: 0.1}
    larger = {each: 1_000 * score for each, score in by_words.items()}
    shifted = {each: 0.5 + score / 9 for each, score in by_meaning.items()}
    late = {3: 5.0, 4: 4.0}
    assert [each for each, _ in fuse(by_words, by_meaning, late)] == [each for each, _ in fuse(larger, shifted, late)]
    assert fuse({1: 2.0}, {}, {}) == [(1, {"words": 2.0})]


@given(scores(0, 50), scores(-1, 1), scores(-50, 50))
def test_everything_that_was_found_has_a_score_that_is_not_negative(
    by_words: dict[int, float], by_meaning: dict[int, float], late: dict[int, float]
) -> None:
    by_late = {each: score for each, score in late.items() if each in by_words or each in by_meaning}
    found = fuse(by_words, by_meaning, by_late)
    assert {each for each, _ in found} == by_words.keys() | by_meaning.keys()
    assert all(part >= 0 for _, parts in found for part in parts.values())
    totals = [math.fsum(parts.values()) for _, parts in found]
    assert totals == sorted(totals, reverse=True)
