"""The store keeps steps and parts exactly as they came, the forms that epochs carry, and open calls."""

from __future__ import annotations

import json

import pytest

from pager.store import Store
from pager.types import Counts
from tests.store.rows import Place, say, text

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
    assert [(call.name, call.input, call.step) for call in calls][1] == ("tool a", {"x": "a"}, f"s{number}")
    assert table.load([number], 0)[0].open_calls == ["b", "a", "c"]
    for name in ("a", "b", "c"):
        table.answer_call(name, table.append_part(number, "said", "result", {"type": "tool_result"}, 0))
    assert (table.open_calls(), table.load([number], 0)[0].open_calls) == ([], [])
    assert (table.call_exists("a"), table.call_exists("d")) == (True, False)
