"""The store keeps steps and parts as they came, finds what was said by its words, and stores its vectors."""

import json

from pager.store import Store
from pager.store.rows import SaidMeta
from pager.types import Counts
from tests.store.rows import Place, found, say, text


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
    extra = table.append_part(first, "recalled", "user", text("besides"), 0, None, None)
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


VECTORS = [bytes([number] * 12) for number in range(3)]


# --- words


def test_a_question_has_each_word_once_in_its_order(store: Store) -> None:
    [warm, _, _], empty, odd = store.conversation.terms(["warming the room", "", '"* OR ('])
    assert (empty, odd) == ([], ["or"])
    assert store.conversation.terms(["warm? ROOM warming \u00e9t\u00e9 warmed"]) == [[warm, "room", "et"]]


def test_asking_leaves_nothing_behind(store: Store, place: Place) -> None:
    say(store, "warm")
    assert store.conversation.terms(["zyzzogeton"]) == [["zyzzogeton"]]
    assert b"zyzzogeton" not in place.bytes()
    assert store.conversation.terms(["warm"]) == [["warm"]]


def test_what_was_said_is_known_without_its_text(store: Store) -> None:
    first, one = say(store, "we warm the room", 30, name="Dana", session="home")
    store.conversation.append_part(first, "said", "result", text("of a memory tool"), 99, None, None)
    second = store.conversation.append_step("record", "narrator", 20)
    two = store.conversation.append_part(second, "said", "user", text("x " * 300), 20, "x " * 300, None)
    told = store.said.metadata(0)
    assert told == [
        SaidMeta(one, first, 30, "user", "user", "Dana", "home", 4),
        SaidMeta(two, second, 20, "record", "narrator", None, None, 300),
    ]
    assert store.said.metadata(one) == told[1:]
    assert store.said.metadata(two) == []


def test_newest_keeps_to_the_half_open_span(store: Store) -> None:
    steps = {at: say(store, "warm", at)[0] for at in (10, 30, 20)}  # recorded late
    spans = {(None, None): {10, 20, 30}, (20, None): {20, 30}, (None, 20): {10}, (10, 30): {10, 20}, (20, 20): set()}
    for (after, before), expected in spans.items():
        newest = [said.step for said in store.said.newest(10, after, before)]
        assert newest == [steps[at] for at in sorted(expected, reverse=True)]
    assert [said.at for said in store.said.newest(2, None, None)] == [30, 20]


def test_words_can_be_made_again(store: Store) -> None:
    number, part = say(store, "warm", name="Dana")
    store.maintenance.clear_words()
    assert (found(store, "warm"), store.said.metadata(0)) == (set(), [])
    assert store.maintenance.words_missing() != []
    [(again, name, block)] = store.maintenance.said_for_words()
    assert (again, name, json.loads(block)) == (part, "Dana", text("warm"))
    store.conversation.index_words(part, "warm")
    assert (found(store, "warm"), store.maintenance.words_missing()) == ({number}, [])


def test_steps_wait_for_vectors_and_get_them(store: Store, place: Place) -> None:
    steps, parts = zip(*(say(store, word) for word in ("one", "two", "three")), strict=True)
    store.said.enqueue([steps[2], steps[0], 999])
    store.said.enqueue([steps[0]])
    assert [said.part for said in store.said.queued(9)] == [parts[0], parts[2]]
    assert [said.part for said in store.said.queued(1)] == [parts[0]]
    assert (store.said.count_queued(9), store.said.count_queued(1)) == (2, 1)
    store.said.store_vectors([(parts[2], VECTORS[2]), (parts[1], VECTORS[1])])  # the second one waits for none
    [(row, part, vector)] = store.said.vectors(0)
    assert (part, vector) == (parts[2], VECTORS[2])
    store.said.store_vectors([(parts[0], VECTORS[0])])
    store = place.reopen()
    assert [each[1:] for each in store.said.vectors(row)] == [(parts[0], VECTORS[0])]
    assert (store.said.queued(9), len(store.said.vectors(0))) == ([], 2)


def test_vectors_that_are_dropped_are_waited_for_again(store: Store) -> None:
    steps, parts = zip(*(say(store, word) for word in ("one", "two", "three")), strict=True)
    store.said.enqueue(steps)
    store.said.store_vectors(list(zip(parts[:2], VECTORS, strict=False)))
    store.said.renew_vector(parts[0])
    assert [said.part for said in store.said.queued(9)] == [parts[0], parts[2]]
    assert (store.said.wrong_vectors(12), store.said.dimension()) == ([], 8)
    assert store.said.wrong_vectors(13) == [parts[1]]
    store.said.drop_vectors()
    assert (store.said.vectors(0), store.said.dimension(), len(store.said.queued(9))) == ([], None, 3)


def test_who_needs_a_vector_and_waits_for_none_is_told(store: Store) -> None:
    resident, _ = say(store, "in the prompt")
    store.prompt.enter(f"s{resident}", "step", resident)
    left, _ = say(store, "has left it")
    store.prompt.enter(f"s{left}", "step", left)
    store.prompt.leave(f"s{left}", "step", left, "old")
    recorded = store.conversation.append_step("record", "user", 0)
    part = store.conversation.append_part(recorded, "said", "user", text("elsewhere"), 0, "elsewhere", None)
    assert store.said.unqueued() == [left, recorded]
    store.said.enqueue([left, recorded])
    assert store.said.unqueued() == []
    store.said.store_vectors([(part, VECTORS[0])])
    assert store.said.unqueued() == []
