"""What every Store must do: transactions, and the conversation. The other tables are in the files beside this one."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pager.errors import StorageError
from pager.store import Store
from pager.types import Counts
from tests.contract.stores import Place, say, text

# --- transactions


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


# --- steps and parts

ODD = [
    "",
    " \n\t",
    "a\0b",
    "👩‍👩‍👧‍👦 é é",
    "\u202e\u05e9\u05dc\u05d5\u05dd\u202c",
    "<|endoftext|></core>",
    "'; DROP TABLE steps; --",
    "x" * 1_000_000,
]


def test_ids_grow(store: Store) -> None:
    steps = [say(store, "a")[0], store.conversation.append_step("record", "user", 0), say(store, "b")[0]]
    parts = [store.conversation.append_part(step, "said", "user", text(""), 0) for step in reversed(steps)]
    assert steps == sorted(set(steps))
    assert parts == sorted(set(parts))
    assert store.conversation.last_step() == steps[-1]


@pytest.mark.parametrize("said", ODD, ids=range(len(ODD)))
def test_blocks_come_back_as_they_came(store: Store, place: Place, said: str) -> None:
    block = {"z": said, "type": "odd", "a": [1.5, 10**30, None, True, {"ключ": said}], said[:9]: -0.0}
    number = store.conversation.append_step("user", "user", 0, name=said, session=said, stop_reason=said)
    part = store.conversation.append_part(number, "said", "user", block, 7)
    again = place.reopen().conversation
    assert json.dumps(again.originals(number)) == json.dumps([block])  # in the same order, too
    row, step = again.original(part), again.step(number)
    assert row is not None
    assert step is not None
    assert (json.loads(row["block"]), row["step"], row["purged"]) == (block, number, 0)
    assert (step["name"], step["session"], step["stop_reason"], step["kind"]) == (said, said, said, "user")


def test_a_step_begins_a_turn_of_its_own_or_joins_one(store: Store) -> None:
    table = store.conversation
    assert (table.last_step(), table.last_live()) == (0, None)
    first, _ = say(store, "do it")
    reply = table.append_step("assistant", "assistant", 0, turn=first)
    told, _ = say(store, "and that", turn=first)
    table.append_step("record", "user", 0)
    last = table.last_live()
    assert last is not None
    assert (last["id"], last["turn"], last["ends_turn"]) == (told, first, 0)
    assert table.requests_of_turn(first) == [first, told]
    assert [row["id"] for row in table.newest_of_turn(first, 2)] == [told, reply]
    table.mark_done(first)
    assert table.requests_of_turn(first) == [told]
    table.end_turn(reply)
    assert [step.ends_turn for step in table.load([first, reply], 0)] == [False, True]


def test_only_what_was_said_is_the_step_itself(store: Store) -> None:
    number, _ = say(store, "hello")
    store.conversation.append_part(number, "notice", "user", text("the window fills"), 0)
    store.conversation.append_part(number, "said", "result", text("late"), 0)
    assert store.conversation.originals(number) == [text("hello"), text("late")]


def test_an_epoch_sees_the_newest_form_up_to_it(store: Store) -> None:
    table = store.conversation
    number, part = say(store, "as it came")
    table.reform(part, 2, text("two, first"))
    table.reform(part, 2, text("two"))
    table.reform(part, 5, None)
    table.reform(part, 7, text("seven"))
    forms = [table.load([number], seen)[0].parts[0].form for seen in (0, 1, 2, 4, 5, 6, 7, 100)]
    came, two, seven = text("as it came"), text("two"), text("seven")
    assert forms == [came, came, two, two, None, None, seven, seven]
    assert [table.load([number], seen)[0].parts[0].form for seen in (1, 4, 6, 9)] == [came, two, None, seven]
    assert table.originals(number) == [came]


def test_load_gives_steps_whole_and_in_order_or_up_to_a_part(store: Store) -> None:
    table = store.conversation
    (first, early), (second, late) = say(store, "one", at=3), say(store, "two")
    extra = table.append_part(first, "recalled", "user", text("besides"), 0)
    empty = table.append_step("assistant", "assistant", 9, turn=first, stop_reason="pause_turn", continues=True)
    table.size(early, Counts(9, 9, 9, 9, 9))
    table.size(early, Counts(1, 2, 3, 4, 5))
    steps = table.load([empty, second, first], 0)
    assert [(step.id, [part.id for part in step.parts]) for step in steps] == [
        (first, [early, extra]), (second, [late]), (empty, []),
    ]  # fmt: skip
    assert [(part.kind, part.slot, part.counts) for part in steps[0].parts] == [
        ("said", "user", Counts(1, 2, 3, 4, 5)), ("recalled", "user", Counts()),
    ]  # fmt: skip
    assert [(s.kind, s.turn, s.at, s.continues, s.stop_reason) for s in (steps[0], steps[2])] == [
        ("user", first, 3, False, None), ("assistant", first, 9, True, "pause_turn"),
    ]  # fmt: skip
    through = table.load([first, second, empty], 0, late)
    assert [[part.id for part in step.parts] for step in through] == [[early], [late]]
    assert table.load([], 0) == []


def test_calls_are_open_until_they_are_answered(store: Store) -> None:
    table = store.conversation
    number = table.append_step("assistant", "assistant", 0)
    for name in ("b", "a", "c"):
        block = {"type": "tool_use", "id": "as it came", "name": f"tool {name}", "input": {"x": name}}
        table.append_call(name, number, table.append_part(number, "said", "reply", block, 0))
    table.begin_call("b", 5)
    table.hold_call("a")
    table.hold_call("c")
    table.begin_call("c", 6)  # approved
    calls = table.open_calls()
    assert [(call.id, call.begun, call.waiting) for call in calls] == [
        ("b", True, False), ("a", False, True), ("c", True, False),
    ]  # fmt: skip
    assert [(call.name, call.input, call.step) for call in calls][1] == ("tool a", {"x": "a"}, number)
    assert table.load([number], 0)[0].open_calls == ["b", "a", "c"]
    for name in ("a", "b", "c"):
        table.answer_call(name, table.append_part(number, "said", "result", {"type": "tool_result"}, 0))
    assert (table.open_calls(), table.load([number], 0)[0].open_calls) == ([], [])
    assert (table.call_exists("a"), table.call_exists("d")) == (True, False)
