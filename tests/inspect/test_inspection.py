"""Long lists, places of a text, and the window over time; the lists themselves are tested in tests/store."""

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pytest

from pager import Memory, MemoryReader, NotFoundError, RejectedError
from pager.inspect import Inspection, normalize_text
from pager.inspect.inspection import LONGEST_LIST
from pager.inspect.places import like_pattern
from tests.inspect.life import Life


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda browse: browse.steps(-1, 5), "offset is -1"),
        (lambda browse: browse.facts(limit=LONGEST_LIST + 1), "at most 1000 at a time"),
        (lambda browse: browse.movements(limit=-1), "limit is -1"),
        (lambda browse: browse.facts("odd"), "'odd' is no kind of facts; there are all, current"),
        (lambda browse: browse.requests(0, 1, "f1"), "'f1' is not a step"),
        (lambda browse: browse.step("s9"), "there is no step 's9'"),
        (lambda browse: browse.searches(["odd"], [], 5), "is not a page id"),
    ],
)
def test_what_cannot_be_listed_says_why(memory: Memory, ask: Callable[[Inspection], object], told: str) -> None:
    with pytest.raises((RejectedError, NotFoundError), match=told):
        ask(memory.inspect)


def test_only_so_many_places_are_told_newest_first(memory: Memory) -> None:
    for number in range(7):
        memory.record("user", f"the tram {number}")
        memory.archive(f"the tram {number}")
    places = memory.inspect.find_text("TRAM", most=3)
    assert [piece.step for piece in places.parts] == ["s7", "s6", "s5"]
    assert [fact.id for fact in places.facts] == ["f7", "f6", "f5"]
    assert places.more
    assert not memory.inspect.find_text("tram", most=7).more
    assert not memory.inspect.find_text("boat")


def test_a_pattern_fits_what_a_text_holds_however_it_is_written() -> None:
    assert like_pattern('say "Hi"\n100%') == "%say%Hi%100%"
    assert like_pattern("日本") == "%日本%"
    assert like_pattern("Straße İ") == "%Stra%e%"
    assert like_pattern("  ") == "%"
    assert normalize_text(" A\tb\n C ") == "a b c"


def test_what_is_pinned_is_known_before_the_prompt_shows_it(memory: Memory) -> None:
    memory.archive("the tram")
    memory.page_in("f1", pin=True)
    assert [(pin.page_id, pin.unseen) for pin in memory.inspect.pins()] == [("f1", True)]


@pytest.mark.slow
def test_every_column_is_the_window_of_its_request(life: Life, inspect: Inspection) -> None:
    columns = inspect.columns(500)
    requests = inspect.requests(0, 500).rows[::-1]
    assert [column.step for column in columns] == [request.step for request in requests] == life.steps
    for column in columns:
        window = inspect.window(column.step)
        assert column.tokens == tuple(part.tokens for part in window.parts)
        assert column.used_tokens == window.used_tokens
        assert (column.usable_tokens, column.epoch) == (window.usable_tokens, window.epoch)
        assert window.thresholds
        assert column.thresholds == astuple(window.thresholds)
    assert len({column.usable_tokens for column in columns}) == 2


def test_a_column_says_why_an_epoch_began_with_it(life: Life, inspect: Inspection) -> None:
    columns = inspect.columns(500)
    reasons = [row.reason for row in life.memory.ledger(events=["epoch"])]
    assert [column.opened for column in columns if column.opened] == reasons
    first = {column.epoch: column.step for column in reversed(columns)}
    assert {column.step for column in columns if column.opened} == set(first.values())


@pytest.mark.parametrize("limit", [0, 1, 7, 500])
def test_the_newest_or_those_up_to_a_step(inspect: Inspection, limit: int) -> None:
    columns = inspect.columns(500)
    assert inspect.columns(limit) == (columns[-limit:] if limit else ())
    middle = len(columns) // 2
    assert inspect.columns(limit, through=columns[middle].step) == (columns[: middle + 1][-limit:] if limit else ())


@pytest.mark.parametrize(
    ("method", "positional", "named"),
    [
        ("find_text", [5], {}), ("find_text", ["x"], {"most": -1}), ("find_text", ["x"], {"most": None}),
        ("facts", [], {"text": 5}), ("facts", [[]], {}), ("facts", [], {"limit": "5"}),
        ("columns", [-1], {}), ("columns", [None], {}), ("columns", [], {"through": 5}),
        ("movements", [], {"events": 5}), ("movements", ["evict"], {}), ("movements", [[5]], {}),
        ("searches", [], {"pages": 5, "words": [], "limit": 5}), ("searches", [["f1"], [5], 5], {}),
        ("is_true", ["f1"], {}), ("epoch", ["1"], {}), ("epoch", [10**30], {}), ("command", [5], {}),
        ("current_fact", [5], {}), ("facts_by_key", [None], {}), ("step", [5], {}), ("window", [5], {}),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused_with_its_value(
    inspect: Inspection, method: str, positional: list[Any], named: dict[str, Any]
) -> None:
    with pytest.raises(RejectedError, match=r"; (give|ask for|pages are)|has more than 64 bits"):
        getattr(inspect, method)(*positional, **named)


def test_a_reader_beside_the_writer_sees_the_same(life: Life, inspect: Inspection) -> None:
    with MemoryReader.open(life.talk.directory, clock=life.talk.clock) as reader:
        assert reader.inspect.columns() == inspect.columns()
        assert reader.inspect.pieces() == inspect.pieces()
