"""Facts that end by themselves: their ends, the retention of tags, and the purge of what has expired."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import Memory, MemoryReader, Prefetch, RejectedError
from pager.types import number_of
from tests.support import HandClock, Talk, Words

DAY = timedelta(days=1)


def ids(hits: Any) -> list[str]:
    return [hit.page_id for hit in hits]


def later(memory: Memory, span: timedelta) -> None:
    clock = memory._clock
    assert isinstance(clock, HandClock)
    clock.set(clock.now() + span)


def test_an_expired_fact_leaves_like_a_superseded_one(memory: Memory) -> None:
    fact = memory.archive("the pass is 4711", key="pass", valid_until="2026-05-04", tags=["guests"])
    assert fact.expires == fact.valid_until == datetime(2026, 5, 5, tzinfo=UTC)
    assert ids(memory.search_archive("pass")) == ["f1"]
    assert [memory.inspect.facts(kind).total for kind in ("current", "unused", "ended")] == [1, 0, 0]
    later(memory, 3 * DAY)
    assert ids(memory.search_archive("pass")) == ids(memory.search_archive("pass", tags=["guests"])) == []
    assert ids(memory.search_archive("pass", as_of="2026-05-04")) == ["f1"]
    assert memory.inspect.current_fact("pass") is None
    assert not memory.inspect.is_true(fact)
    assert [memory.inspect.facts(kind).total for kind in ("all", "current", "ended")] == [1, 0, 1]
    assert memory.inspect.fact_counts().current == 0
    assert not memory.check()


def test_the_ledger_says_at_once_when_it_ends(memory: Memory) -> None:
    memory.archive("the pass is 4711", valid_until="2026-05-04")
    assert memory.ledger(page="f1")[0].detail["until"].startswith("2026-05-05")


def test_a_new_fact_of_the_key_follows_an_expired_one_whose_end_stays(memory: Memory) -> None:
    old = memory.archive("the pass is 4711", key="pass", valid_until="2026-05-04")
    later(memory, 10 * DAY)
    new = memory.archive("the pass is 4712", key="pass")
    assert new.supersedes == "f1"
    assert memory.fact("f1").valid_until == old.expires
    assert memory.fact("f1").superseded_by == new.id
    assert ids(memory.search_archive("pass", as_of="2026-05-06")) == []
    assert ids(memory.search_archive("pass")) == ["f2"]
    assert not memory.check()


def test_what_is_over_joins_the_history_beside_a_current_one(memory: Memory) -> None:
    memory.archive("in Faro", key="home")
    memory.archive("in Porto", key="home", valid_from="2024-01-01", valid_until="2024-06-30")
    assert ids(memory.search_archive("in")) == ["f1"]
    assert ids(memory.search_archive("in", as_of="2024-06-30")) == ["f2"]
    assert ids(memory.search_archive("in", as_of="2024-07-01")) == []
    assert memory.fact("f2").superseded_by == "f1"
    again = memory.archive("in Porto", key="home", valid_from="2024-01-01", valid_until="2024-06-30")
    assert again.id == "f2"
    assert not memory.check()


def test_the_same_fact_again_ends_when_it_is_given_an_end_and_else_as_before(memory: Memory) -> None:
    memory.archive("the pass is 4711", key="pass", valid_until="2026-05-04")
    assert memory.archive("the pass is 4711", key="pass").expires == datetime(2026, 5, 5, tzinfo=UTC)
    renewed = memory.archive("the pass is 4711", key="pass", valid_until="2026-06-04")
    assert (renewed.id, renewed.valid_until) == ("f1", datetime(2026, 6, 5, tzinfo=UTC))


@pytest.mark.parametrize(
    ("valid_until", "why"),
    [
        ("2020-01-01", "is not after 2026-.* Give a later one, or valid_from as well"),
        ("soon", "'soon' is not a moment"),
        ("", "'' is not a moment"),
        ("90d", "'90d' is not a moment"),
        (7, "7 is not a moment"),
    ],
)
def test_an_end_that_cannot_be_is_refused_and_nothing_is_stored(memory: Memory, valid_until: Any, why: str) -> None:
    with pytest.raises(RejectedError, match=why):
        memory.archive("x", valid_until=valid_until)
    with pytest.raises(RejectedError, match="is not after 2030-01-02 00:00"):
        memory.archive("x", valid_from="2030-01-02", valid_until="2030-01-01")
    assert memory.inspect.fact_counts().total == 0
    assert memory.ledger() == []


@pytest.mark.parametrize(
    ("retention", "why"),
    [
        ({"note": "0d"}, "'0d' is not a span of time; give a whole number of hours, days or weeks"),
        ({"note": "-1d"}, "'-1d' is not a span"),
        ({"note": "90"}, "'90' is not a span"),
        ({"note": "90m"}, "'90m' is not a span"),
        ({"note": "999999w"}, "at most 36500d"),
        ({"note": "\uff19d"}, "is not a span"),
        ({"note": 90}, "90 is not a span"),
        ({"  ": "90d"}, "names the tag '  '"),
        (["note"], "give a dict such as"),
    ],
)
def test_a_retention_that_cannot_be_is_refused(tmp_path: Path, retention: Any, why: str) -> None:
    with pytest.raises(RejectedError, match=why):
        Memory.open(tmp_path / "a", embedder=None, clock=HandClock(), retention=retention)
    with Memory.open(tmp_path / "a", embedder=None, clock=HandClock()) as memory:
        assert memory.archive("x", tags=["note"]).expires is None


def test_the_shortest_span_of_its_tags_ends_a_fact_and_what_was_set_last_holds(tmp_path: Path) -> None:
    spans = {"Note": "90d", "visit": "12h", "nobody": "1w"}
    with Memory.open(tmp_path, embedder=None, clock=HandClock(), retention=spans) as memory:
        begin = memory.archive("a", tags=["NOTE"])
        assert begin.expires == begin.at + 90 * DAY
        both = memory.archive("b", tags=["note", "Visit"])
        assert both.expires == both.at + DAY / 2
        assert memory.archive("c", tags=["visit"], valid_until="2027-01-01").expires == datetime(2027, 1, 2, tzinfo=UTC)
        planned = memory.archive("d", tags=["visit"], valid_from="2028-01-01")
        assert planned.expires == planned.valid_from + DAY / 2
        assert memory.archive("e", tags=["other"]).expires is None
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        assert memory.archive("f", tags=["note"]).expires is not None
    with Memory.open(tmp_path, embedder=None, clock=HandClock(), retention={}) as memory:
        assert memory.archive("g", tags=["note"]).expires is None
        assert memory.fact("f1") == begin


def test_an_expired_fact_is_not_recalled_and_its_pin_goes_with_the_epoch(tmp_path: Path) -> None:
    talk = Talk(tmp_path, prefetch=Prefetch(k=3))
    memory = talk.memory
    memory.archive("the guest pass for the wifi is sunflower", valid_until="2026-05-03")
    memory.page_in("f1", pin=True)
    talk.ask("what is the guest pass for the wifi?")
    assert any(row.page_id == "f1" for row in memory.ledger(events=["recall"])) or "sunflower" in talk.text
    later(memory, 5 * DAY)
    talk.fill(60_000)
    assert [row.reason for row in memory.ledger(page="f1", events=["unpin"])] == ["it has expired"]
    count = len(memory.ledger(events=["recall"]))
    talk.ask("what is the guest pass for the wifi?")
    assert all(row.page_id != "f1" for row in memory.ledger(events=["recall"])[count:])
    memory.close()


def test_what_is_taken_back_brings_back_only_what_has_not_expired(memory: Memory) -> None:
    memory.archive("pass one", key="pass", valid_until="2026-05-04")
    memory.archive("wifi one", key="wifi", valid_until="2027-05-04")
    memory.archive("pass two", key="pass", source="web:example.org")
    memory.archive("wifi two", key="wifi", source="web:example.org")
    later(memory, 10 * DAY)
    assert memory.forget_source("web:example.org").restored == ("f2",)
    back = memory.inspect.current_fact("wifi")
    assert back
    assert (back.text, back.expires) == ("wifi one", memory.fact("f2").expires)
    assert memory.inspect.current_fact("pass") is None


def test_expired_facts_are_purged_from_everything_and_others_stay(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        memory.archive("the door code is 8431 blue", key="door", valid_until="2026-05-04")
        memory.archive("the safe code is 7788 green", valid_until="2026-05-04")
        memory.archive("the safe code is 7788 green, says Dana")
        memory.archive("the gate code is 1111 red", valid_until="2027-05-04")
        memory.record("user", "I wrote down: the door code is 8431 blue. Right?")
        memory.search_archive("the door code is 8431 blue")
        later(memory, 20 * DAY)
        memory.archive("the door code is 9999 grey", key="door")
        assert memory.purge_expired("60d") == ([], [])
        gone, held = memory.purge_expired("2w", dry_run=True)
        assert ([fact.id for fact in gone], [fact.id for fact in held]) == (["f1"], ["f2"])
        assert memory.page_text("f1")
        assert memory.purge_expired("2w") == (gone, held)
        assert [fact.id for fact in memory.history.fact_versions("door")] == ["f5"]
        assert sorted(ids(memory.search_archive("code"))) == ["f3", "f4", "f5"]
        row = memory.ledger(page="f1", events=["purge"])[0]
        assert row.reason == "it expired more than 2w ago"
        assert memory.purge_expired("2w") == ([], held)
        assert not memory.check()
    held_bytes = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"8431 blue" not in held_bytes
    assert b"7788 green" in held_bytes


@pytest.mark.parametrize("span", ["", "0d", "400", "a year", "-3d"])
def test_a_purge_of_no_span_is_refused(memory: Memory, span: str) -> None:
    with pytest.raises(RejectedError, match="is not a span of time"):
        memory.purge_expired(span)


KEYS = st.sampled_from([None, None, "home", "pass"])
ENDS = st.one_of(st.none(), st.integers(1, 40))
STARTS = st.one_of(st.none(), st.none(), st.integers(-30, 30))
STORED = st.tuples(
    st.integers(0, 5), KEYS, STARTS, ENDS, st.sampled_from([(), ("note",), ("visit",), ("note", "visit")])
)


@given(st.lists(STORED, min_size=1, max_size=8))
def test_at_any_moment_just_what_has_not_ended_is_true(stored: list[Any]) -> None:
    """A plain model: a fact is true from its start to its end, or until another one of its key takes its place."""
    spans = {"note": 7, "visit": 3}
    with (
        TemporaryDirectory() as place,
        Memory.open(
            place, embedder=None, clock=HandClock(), retention={tag: f"{days}d" for tag, days in spans.items()}
        ) as memory,
    ):
        begin = memory._clock.now()
        expected: dict[str, tuple[str | None, datetime, datetime | None]] = {}
        for number, (pause, key, start, length, tags) in enumerate(stored):
            later(memory, pause * DAY)
            now = memory._clock.now()
            at = now if start is None else begin + start * DAY
            until = None if length is None else at + length * DAY
            fact = memory.archive(
                f"word{number}", key=key, tags=tags, valid_from=None if start is None else at, valid_until=until
            )
            kept = [max(at, fact.at) + spans[tag] * DAY for tag in tags] if until is None else []
            end = until or min(kept, default=None)
            assert fact.expires == end
            expected[fact.id] = (key, fact.valid_from, end)
        for moment in [memory._clock.now(), *(begin + day * DAY + timedelta(hours=1) for day in range(-35, 60, 3))]:
            found = {
                hit.page_id
                for hit in memory.search_archive(" ".join(f"word{n}" for n in range(8)), limit=20, as_of=moment)
            }
            within = {
                page
                for page, (_, first, last) in expected.items()
                if first <= moment and (last is None or moment < last)
            }
            assert found <= within
            assert {page for page in within if expected[page][0] is None} <= found
            for key in ("home", "pass"):
                of_key = [page for page in found if expected[page][0] == key]
                assert len(of_key) <= 1
                newest = max((page for page in expected if expected[page][0] == key), default=None, key=number_of)
                if newest in within and all(start is None for _, of, start, *_ in stored if of == key):
                    assert of_key == [newest]  # the last word on a key holds as long as it says
        assert not memory.check()


def test_a_reader_sees_the_same_end(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=None, clock=clock) as memory:
        memory.archive("the pass is 4711", valid_until="2026-05-04")
        with MemoryReader.open(tmp_path, embedder=None, clock=clock) as reader:
            assert ids(reader.search_archive("pass")) == ["f1"]
            clock.set(clock.now() + 5 * DAY)
            assert ids(reader.search_archive("pass")) == []
