"""Transactions of the store nest: a failure undoes its own, and actions after the commit see it committed."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pager.errors import StorageError
from pager.store import Store
from tests.store.rows import Place, say, text


class Undone(Exception):
    pass


class Nested(NamedTuple):
    """A transaction: what it does (numbers are writes), and whether it fails at its end. Its caller goes on."""

    does: list[int | Nested]
    fails: bool


def nested(does: st.SearchStrategy[int | Nested]) -> st.SearchStrategy[Nested]:
    return st.builds(Nested, st.lists(does, max_size=4), st.booleans())


SCRIPTS = nested(st.recursive(st.integers(0, 3), nested, max_leaves=12))
RUNS = count()


def carry_out(store: Store, run: int, script: Nested, acted: list[int]) -> None:
    with suppress(Undone), store.transaction():
        for deed in script.does:
            if isinstance(deed, Nested):
                carry_out(store, run, deed, acted)
            else:
                held = store.settings.get(f"run {run}") or ""
                store.settings.put(f"run {run}", f"{held}{deed}")
                store.after_commit(lambda deed=deed: acted.append(deed))
        if script.fails:
            raise Undone


def what_stays(script: Nested) -> list[int]:
    if script.fails:
        return []
    return [
        each for deed in script.does for each in (what_stays(deed) if isinstance(deed, Nested) else [deed])
    ]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(script=SCRIPTS)
def test_a_failure_undoes_its_own_transaction_and_what_is_inside(store: Store, script: Nested) -> None:
    run, acted = next(RUNS), list[int]()
    carry_out(store, run, script, acted)
    with store.transaction():
        pass  # brings up nothing from before
    assert acted == what_stays(script)  # nothing that was undone is acted on, and everything else in order
    assert (store.settings.get(f"run {run}") or "") == "".join(map(str, acted))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_whatever_is_raised_undoes(store: Store, error: type[BaseException]) -> None:
    def fail() -> None:
        with store.transaction():
            store.settings.put("a", "1")
            raise error

    with pytest.raises(error):
        fail()
    assert store.settings.get("a") is None


def test_an_action_after_the_commit_sees_it_committed_and_may_write(store: Store, place: Place) -> None:
    other, seen = place.open(read_only=True), list[str | None]()

    def act() -> None:
        seen.append(other.settings.get("a"))
        with store.transaction():
            store.settings.put("b", "2")

    with store.transaction():
        with store.transaction():
            store.settings.put("a", "1")
            store.after_commit(act)
        assert other.settings.get("a") is None
        assert not seen
    assert seen == ["1"]
    assert other.settings.get("b") == "2"


def test_an_action_outside_of_transactions_is_due_at_once(store: Store) -> None:
    acted = list[int]()
    store.after_commit(lambda: acted.append(1))
    assert acted == [1]


def test_every_undoing_is_told_when_it_is_done(store: Store) -> None:
    held = list[str | None]()
    store.when_rolled_back(lambda: held.append(store.settings.get("run 0")))
    carry_out(store, 0, Nested([1, Nested([2], fails=False)], fails=False), [])
    assert held == []
    carry_out(store, 0, Nested([3, Nested([4], fails=True), 5], fails=True), [])
    assert held == ["123", "12"]


def test_what_was_committed_is_there_after_opening_again(store: Store, place: Place) -> None:
    number, _ = say(store, "hello")
    again = place.reopen()
    assert not again.read_only
    assert again.conversation.originals(number) == [text("hello")]


def test_a_reader_sees_what_is_committed_and_cannot_write(store: Store, place: Place) -> None:
    reader = place.open(read_only=True)
    assert reader.read_only
    number, _ = say(store, "hello")
    assert reader.conversation.last_step() == number
    with pytest.raises(StorageError):
        reader.settings.put("a", "1")
