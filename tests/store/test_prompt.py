"""The store keeps epochs as they were sent, answered requests, and what was resident when."""

from collections import Counter
from contextlib import suppress
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pager.store import Store
from pager.store.rows import Answered, Pin
from pager.types import Residency, number_of
from tests.store.rows import epoch, say

# --- epochs and requests


def reply(store: Store, turn: int) -> int:
    return store.conversation.append_step("assistant", "assistant", 0, turn=turn)


def test_the_last_request_is_that_of_its_epoch(store: Store) -> None:
    assert (store.prompt.last_answered(), store.prompt.last_request(1)) == (None, None)
    first, part = say(store, "hello")
    made = dict[int, list[Answered]]()
    for number in (1, 2):
        store.prompt.open_epoch(epoch(number), 0, store.conversation.last_step())
        made[number] = [Answered(reply(store, first), number, part, None, "m", 1, None) for _ in range(2)]
        for request in made[number]:
            store.prompt.save_request(request, 0)
    store.prompt.open_epoch(epoch(3), 0, store.conversation.last_step())
    assert [store.prompt.last_request(number) for number in (1, 2, 3)] == [made[1][-1], made[2][-1], None]
    assert store.prompt.last_answered() == made[2][-1].step


class ExampleOver(Exception):
    """Undoes what an example wrote."""


WAYS = st.sampled_from([("s1", "step"), ("s2", "step"), ("s1", "pinned"), ("f1", "recalled")])
INTERVALS = st.lists(st.tuples(WAYS, st.integers(0, 6), st.none() | st.integers(0, 6)), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(intervals=INTERVALS)
def test_a_page_is_in_the_requests_after_it_entered_until_it_left(store: Store, intervals: list[Any]) -> None:
    with suppress(ExampleOver), store.transaction():
        held = list[Residency]()
        for (page, how), start, length in sorted(intervals, key=itemgetter(1)):
            if how in {stay.how for stay in held if stay.page_id == page and stay.until_step is None}:
                continue  # it is there already, in this way
            store.prompt.enter(page, how, start)
            held.append(Residency(page, how, f"s{start}", None))
            if length is not None:
                store.prompt.leave(page, how, start + length, f"after {length}")
                held[-1] = Residency(page, how, f"s{start}", f"s{start + length}", f"after {length}")
        compare(store, held)
        raise ExampleOver


def compare(store: Store, held: list[Residency]) -> None:
    """The store against a list."""
    for at in range(15):
        there = [stay for stay in held if number_of(stay.from_step) < at <= number_of(stay.until_step or f"s{at}")]
        resident = store.prompt.resident(at)
        assert Counter(resident) == Counter(there)
        assert [number_of(stay.from_step) for stay in resident] == sorted(number_of(stay.from_step) for stay in there)
        assert Counter(store.prompt.resident_steps(at)) == Counter(int(s.page_id[1:]) for s in there if s.how == "step")
    now = [stay for stay in held if stay.until_step is None]
    assert Counter(store.prompt.resident()) == Counter(now)
    assert Counter(store.prompt.resident_steps()) == Counter(int(s.page_id[1:]) for s in now if s.how == "step")
    for page in ("s1", "s2", "f1"):
        assert store.prompt.residencies(page) == [stay for stay in held if stay.page_id == page]
        assert store.prompt.how_resident(page) == {stay.how for stay in now if stay.page_id == page}


def resident(store: Store) -> list[str]:
    return sorted(stay.page_id for stay in store.prompt.resident())


def test_steps_that_leave_take_with_them_what_they_hold(store: Store) -> None:
    for page, holder in (("f1", 4), ("f2", 5), ("f3", 6), ("f4", None)):
        store.prompt.enter(page, "paged_in", 4, holder)
    store.prompt.release([4, 6, 99], 7, "full")
    assert resident(store) == ["f2", "f4"]
    assert store.prompt.residencies("f1") == [Residency("f1", "paged_in", "s4", "s7", "full")]
    store.prompt.enter("f1", "paged_in", 8, 9)
    store.prompt.release([4], 10, "again")
    store.prompt.release([], 10, "nothing")
    assert resident(store) == ["f1", "f2", "f4"]
    assert store.prompt.residencies("f1")[0].until_step == "s7"


@pytest.mark.parametrize(("unsent", "kept"), [(5, ["f2", "f3"]), (None, ["f3"])])
def test_recalled_facts_leave_but_for_those_of_the_unsent_step(
    store: Store, unsent: int | None, kept: list[str]
) -> None:
    store.prompt.enter("f1", "recalled", 4, 4)
    store.prompt.enter("f2", "recalled", 5, 5)
    store.prompt.enter("f3", "paged_in", 4, 4)
    store.prompt.release_recalled(unsent, 6, "an epoch opened")
    assert resident(store) == kept
    assert store.prompt.residencies("f1") == [Residency("f1", "recalled", "s4", "s6", "an epoch opened")]


def test_a_page_has_one_pin(store: Store) -> None:
    store.prompt.pin("f2", 0, 10, 5, 1, "agent", unseen=False)
    store.prompt.pin("f1", 0, 10, 5, 1, "agent", unseen=True)
    store.prompt.pin("f2", 7, 3, 2, 2, "person", unseen=True)
    first, second = Pin("f1", 0, 10, 5, unseen=True), Pin("f2", 7, 3, 2, unseen=True)
    assert store.prompt.pins() == [first, second]  # the oldest first
    store.prompt.pins_seen()
    assert [pin.unseen for pin in store.prompt.pins()] == [False, False]
    store.prompt.unpin("f2")
    store.prompt.unpin("f2")
    assert [pin.page_id for pin in store.prompt.pins()] == ["f1"]
