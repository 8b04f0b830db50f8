"""Recall: every step that was ever said, by its words and by its date; turns recorded from elsewhere."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import Memory, MemoryReader, RejectedError
from tests.standin import call, thinking
from tests.support import HandClock, Talk, database_of


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        yield memory


def found(memory: Memory, query: str, **span: Any) -> list[str]:
    return [hit.page_id for hit in memory.search_recall(query, **span)]


# words


def test_what_was_undone_makes_nobody_read_all_turns_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        memory.record_many([{"role": "user", "text": f"topic{number}"} for number in range(9)])
        memory.search_recall("topic3")
        told, asked = memory._store.said.metadata, list[int]()
        monkeypatch.setattr(memory._store.said, "metadata", lambda after: asked.append(after) or told(after))
        with pytest.raises(RejectedError):
            memory.record_many([{"role": "user", "text": "topic9"}, {"role": "user"}])
        with pytest.raises(RejectedError):
            memory.core_append("nope", "x")
        assert memory.search_recall("topic3", limit=1)[0].page_id == "s4"
        assert asked == [9]
        with suppress(ZeroDivisionError), memory.transaction():
            memory.record("user", "topic10")
            assert memory.search_recall("topic10", limit=1)[0].page_id == "s10"
            raise ZeroDivisionError
        assert memory.search_recall("topic10") == []
        assert asked == [9, 9, 0]  # these were read while they could still be undone


@pytest.mark.parametrize(
    "query",
    ["up warm", "warm up", "WARMING", "morning engines up", "engine", "café", "CAFE", "cafés", "(warm) AND \"up\" OR *",
     "naïve", "who? warm!", "Ölofen", "olofen", "3.5", "x_y"],
)  # fmt: skip
def test_word_order_stems_case_and_accents_do_not_matter(memory: Memory, query: str) -> None:
    step = memory.record("user", "Warm up the engine each morning, near the Café, said the naive Ölöfen: 3.5 times x_y")
    memory.record("user", "nothing to see here", session="another")
    assert found(memory, query) == [step]


def test_a_text_with_more_of_the_words_comes_first(memory: Memory) -> None:
    memory.record("user", "the engine is red")
    both = memory.record("user", "the red engine warms")
    memory.record("user", "the sky is blue")
    assert found(memory, "warm engine")[0] == both
    assert len(found(memory, "warm engine sky")) == 3


@pytest.mark.slow
@given(
    words=st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), min_size=1, max_size=5),
    data=st.data(),
)
@settings(max_examples=20)
def test_any_order_of_a_text_s_words_finds_it(tmp_path_factory: Any, words: list[str], data: st.DataObject) -> None:
    with Memory.open(tmp_path_factory.mktemp("m"), embedder=None) as memory:
        step = memory.record("user", " ".join(words))
        memory.record("user", "something else", session="another")
        assert found(memory, " ".join(data.draw(st.permutations(words)))) == [step]


@pytest.mark.parametrize("query", ["", " \n\t"])
def test_a_blank_query_gives_the_newest_of_the_span(memory: Memory, query: str) -> None:
    steps = [memory.record("user", f"turn {number}", at=f"2026-01-{number + 1:02}") for number in range(9)]
    assert found(memory, query, limit=3) == steps[:-4:-1]
    assert found(memory, query, before="2026-01-02") == [steps[1], steps[0]]


@pytest.mark.parametrize("query", ["?!", "_", "\0", '"', "*", "NEAR(", "🗝", "^", "-", "a" * 5_000, "x " * 5_000])
def test_a_query_of_no_words_finds_nothing_and_fails_not(memory: Memory, query: str) -> None:
    memory.record("user", "the engine is red")
    assert found(memory, query) == []


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


def test_a_search_is_noted_with_its_span(memory: Memory) -> None:
    memory.record("user", "the engine", at="2026-01-01")
    memory.search_recall("engine", after="2026-01-01", actor="agent")
    row = memory.ledger(events=["search"])[0]
    assert (row.actor, row.detail["tier"], row.detail["after"]) == ("agent", "recall", "2026-01-01")
    assert [hit[0] for hit in row.detail["found"]] == ["s1"]


# what is indexed


def test_everything_said_is_found_and_only_that(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    source = {"type": "text", "media_type": "text/plain", "data": "gnu"}
    talk.memory.append_user(
        [{"type": "text", "text": "zebra"}, {"type": "document", "title": "Okapi", "source": source}]
    )
    talk.reply(thinking("secret lynx"), "I look for the giraffe.", call("weather", {"city": "Hippo"}))
    talk.answer("sunny in Ibex")
    talk.reply("done", call("weather", {"city": "x"}))
    talk.answer("found before: quokka", memory_tool=True)
    talk.reply("So.")
    for word, steps in {
        "zebra": ["s1"],
        "okapi": ["s1"],
        "gnu": ["s1"],
        "giraffe": ["s2"],
        "ibex": ["s2"],
        "lynx": [],
        "quokka": [],
    }.items():
        assert found(talk.memory, word)[:1] == steps, word


def test_steps_are_found_resident_and_evicted(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    step = talk.ask("hello", "the zebra is out")
    assert found(talk.memory, "zebra")[0] == step
    talk.fill(8_000)
    assert step not in {stay.page_id for stay in talk.memory.history.resident()}
    assert found(talk.memory, "zebra")[0] == step
    assert talk.reopen().search_recall("zebra")[0].text == "the zebra is out"


def test_a_reader_finds_the_same_and_writes_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.record("user", "the engine", at="2026-01-01")
        rows = len(memory.ledger())
        with MemoryReader.open(tmp_path) as reading:
            assert [hit.page_id for hit in reading.search_recall("engine", after="2026-01-01")] == ["s1"]
        assert len(memory.ledger()) == rows


# dates


def test_a_date_alone_means_that_whole_day(memory: Memory) -> None:
    for hour, minute in ((0, 0), (12, 0), (23, 59)):
        memory.record("user", "engine", at=datetime(2026, 5, 3, hour, minute, 59, 999_999, tzinfo=UTC))
    memory.record("user", "engine", at=datetime(2026, 5, 4, tzinfo=UTC))
    memory.record("user", "engine", at=datetime(2026, 5, 2, 23, 59, 59, 999_999, tzinfo=UTC))
    for day in ("2026-05-03", date(2026, 5, 3)):
        assert set(found(memory, "engine", after=day, before=day)) == {"s1", "s2", "s3"}
    assert found(memory, "engine", after="2026-05-04") == ["s4"]
    assert found(memory, "engine", before="2026-05-02") == ["s5"]


def test_moments_are_compared_across_time_zones(memory: Memory) -> None:
    memory.record("user", "engine", at="2026-05-03T23:30-05:00")
    memory.record("user", "engine", at="2026-05-04T06:00+02:00")
    assert found(memory, "engine", after="2026-05-04T04:15Z") == ["s1"]
    assert found(memory, "engine", before="2026-05-04T04:15Z") == ["s2"]
    assert found(memory, "engine", after=datetime(2026, 5, 4, 13, 25, tzinfo=timezone(timedelta(hours=9)))) == ["s1"]
    assert found(memory, "engine", after="2026-05-04T04:30Z", before="2026-05-04T04:30Z") == []


def test_a_span_is_half_open(memory: Memory) -> None:
    moments = [datetime(2026, 5, 3, 12, 0, 0, micro, tzinfo=UTC) for micro in (0, 1, 2)]
    for moment in moments:
        memory.record("user", "engine", at=moment)
    assert found(memory, "engine", after=moments[1], before=moments[2]) == ["s2"]


def test_a_moment_without_a_zone_is_read_where_the_clock_stands(tmp_path: Path) -> None:
    """Also across the night in which clocks change: 8 March 2026 in New York has 23 hours, 1 November has 25."""
    zone = ZoneInfo("America/New_York")
    with Memory.open(tmp_path, embedder=None, clock=HandClock(zone=zone)) as memory:
        memory.record("user", "naive", at=datetime(2026, 7, 1, 8, 0))  # noqa: DTZ001
        assert memory.search_recall("naive")[0].at == datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
        for day, hours in ((date(2026, 3, 8), 23), (date(2026, 11, 1), 25), (date(2026, 5, 3), 24)):
            first = datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
            for hour in range(-1, hours + 1):
                memory.record("user", f"d{day.month}x", at=first + timedelta(hours=hour))
            assert len(found(memory, f"d{day.month}x", after=day, before=day, limit=50)) == hours


def test_the_limit_is_applied_within_the_span(memory: Memory) -> None:
    """Fifty better hits outside of the span take no place of the one inside."""
    for _ in range(50):
        memory.record("user", "engine engine", at="2026-01-01")
    inside = memory.record("user", "a very long way to say something about an engine", at="2026-02-01")
    assert found(memory, "engine", after="2026-02-01", limit=1) == [inside]


@pytest.mark.parametrize("moment", ["", "soon", "2026-13-01", "2026-05-03T25:00", "03.05.2026", 5, True, []])
def test_what_is_no_moment_is_refused_with_the_forms_that_are(memory: Memory, moment: Any) -> None:
    for act in (
        lambda: memory.search_recall("x", after=moment),
        lambda: memory.search_recall("x", before=moment),
        lambda: memory.record("user", "x", at=moment),
        lambda: memory.append_user("x", at=moment),
    ):
        with pytest.raises(RejectedError, match="is not a moment; give a datetime, a date, or text such as 2026-05-03"):
            act()
    assert found(memory, "x") == []


@pytest.mark.parametrize("moment", [date(1, 1, 3), date(9999, 12, 29), "0001-01-02T00:00Z", "9999-12-30T23:59Z"])
def test_the_ends_of_the_calendar_are_moments_too(memory: Memory, moment: Any) -> None:
    memory.record("user", "engine", at="2026-01-01")
    assert len(found(memory, "engine", after=moment)) + len(found(memory, "engine", before=moment)) == 1


# turns from elsewhere


def test_a_recorded_turn_is_findable_and_never_resident(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.memory.record("user", "I moved to Porto.", at="2020-01-01", name="Dana", session="old")
    talk.ask("hello", "hello")
    talk.memory.record("assistant", "Porto is nice.")
    talk.ask("and?", "yes")
    assert "Porto" not in str(talk.standin.requests[-1])
    assert step not in {stay.page_id for stay in talk.memory.history.resident()}
    assert set(found(talk.memory, "Porto")) == {"s1", "s4"}
    assert talk.memory.page_in(step).text == "I moved to Porto."
    assert not talk.memory.check()


def test_a_turn_is_recorded_also_while_calls_are_open(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("look", call("weather", {"city": "Porto"}))
    talk.memory.record("user", "from elsewhere")
    talk.answer()
    talk.reply("sunny")
    assert not talk.memory.check()


@pytest.mark.slow
def test_ten_thousand_turns_are_one_transaction(tmp_path: Path) -> None:
    commits: list[str] = []
    with Memory.open(tmp_path, embedder=None) as memory:
        database_of(memory).trace(lambda sql: commits.append(sql) if sql.startswith(("COMMIT", "BEGIN")) else None)
        turns = ({"role": "user", "text": f"turn {number}", "at": "2026-01-01"} for number in range(10_000))
        steps = memory.record_many(turns)
        database_of(memory).trace(None)
        assert commits == ["BEGIN IMMEDIATE", "COMMIT"]
        assert (steps[0], steps[-1], len(steps)) == ("s1", "s10000", 10_000)
        assert found(memory, "9999")[0] == "s10000"


@pytest.mark.parametrize(
    ("turn", "why"),
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
def test_all_turns_are_recorded_or_none_and_the_error_says_which(memory: Memory, turn: Any, why: str) -> None:
    with pytest.raises(RejectedError, match=rf"turn 2: .*{why}"):
        memory.record_many([{"role": "user", "text": "one"}, {"role": "user", "text": "two"}, turn])
    assert found(memory, "") == []
    assert memory.record_many([]) == []
    assert memory.record("user", "one") == "s1"


def test_a_source_that_fails_in_the_middle_leaves_nothing(memory: Memory) -> None:
    def turns() -> Any:
        yield {"role": "user", "text": "one"}
        raise OSError("the file is gone")

    with pytest.raises(OSError, match="the file is gone"):
        memory.record_many(turns())
    assert found(memory, "") == []
    assert not memory.check()


@pytest.mark.slow
@given(
    text=st.text(alphabet=st.characters(), max_size=40), name=st.none() | st.text(alphabet=st.characters(), max_size=5)
)
@settings(max_examples=30)
def test_any_text_by_anyone_is_recorded(tmp_path_factory: Any, text: str, name: str | None) -> None:
    with Memory.open(tmp_path_factory.mktemp("m"), embedder=None) as memory:
        step = memory.record(f"r{text}", text, name=name, session=name)
        said = memory.append_user(text, name=name)
        cleaned = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
        assert memory.page(step) == memory.page(said) == cleaned
        memory.request()
        assert not memory.check()
