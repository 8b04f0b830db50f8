"""The store finds what was said by its words, knows who said it and when, and stores its vectors."""

from __future__ import annotations

import json

from pager.store import Store
from pager.store.rows import SaidMeta
from tests.store.rows import Place, found, say, text

VECTORS = [bytes([number] * 12) for number in range(3)]


def places(store: Store, word: str) -> list[int]:
    [[term]] = store.conversation.terms([word])
    return [int(part) for part in store.said.places(term)]


# --- words


def test_a_word_is_found_in_every_form_as_often_as_it_stands(store: Store) -> None:
    _, once = say(store, "we warm the room")
    say(store, "nothing of all that")
    _, twice = say(store, "Warmed lamps, warming: the caf\u00e9", 7, name="Dana")
    assert places(store, "warm") == places(store, "WARMS") == [once, twice, twice]
    assert places(store, "cafe") == [twice]
    assert places(store, "absent") == []


def test_a_question_has_each_word_once_in_its_order(store: Store) -> None:
    [warm, _, _], empty, odd = store.conversation.terms(["warming the room", "", '"* OR ('])
    assert (empty, odd) == ([], ["or"])
    assert store.conversation.terms(["warm? ROOM warming \u00e9t\u00e9 warmed"]) == [[warm, "room", "et"]]


def test_asking_leaves_nothing_behind(store: Store, place: Place) -> None:
    say(store, "warm")
    assert store.conversation.terms(["zyzzogeton"]) == [["zyzzogeton"]]
    assert b"zyzzogeton" not in place.bytes()
    assert store.conversation.terms(["warm"]) == [["warm"]]


def test_a_reader_asks_too_and_sees_what_is_committed(store: Store, place: Place) -> None:
    _, part = say(store, "warm")
    reader = place.open(read_only=True)
    assert places(reader, "warm") == [part]
    with store.transaction():
        _, later = say(store, "warm again")
        assert places(reader, "warm") == [part]
    assert places(reader, "warm") == [part, later]


def test_words_that_were_undone_are_gone(store: Store) -> None:
    _, part = say(store, "warm")
    try:
        with store.transaction():
            say(store, "warm again")
            assert len(places(store, "warm")) == 2
            raise OSError
    except OSError:
        assert places(store, "warm") == [part]


def test_what_was_said_is_known_without_its_text(store: Store) -> None:
    first, one = say(store, "we warm the room", 30, name="Dana", session="home")
    store.conversation.append_part(first, "said", "result", text("of a memory tool"), 99)
    second = store.conversation.append_step("record", "narrator", 20)
    two = store.conversation.append_part(second, "said", "user", text("x " * 300), 20, searchable=True)
    store.conversation.index_words(two, "x " * 300)
    told = store.said.metadata(0)
    assert told == [
        SaidMeta(one, first, 30, "user", "user", "Dana", "home", 4),
        SaidMeta(two, second, 20, "record", "narrator", None, None, 300),
    ]
    assert store.said.metadata(one) == told[1:]
    assert store.said.metadata(two) == []


def test_what_was_said_comes_back_by_its_part(store: Store) -> None:
    step, part = say(store, "warm", 7, name="Dana")
    say(store, "cold")
    assert store.said.said([part, 999]) == {part: (part, step, "user", "Dana", 7, text("warm"))}
    assert store.said.said([]) == {}


def test_newest_keeps_to_the_half_open_span(store: Store) -> None:
    steps = {at: say(store, "warm", at)[0] for at in (10, 30, 20)}  # recorded late
    spans = {(None, None): {10, 20, 30}, (20, None): {20, 30}, (None, 20): {10}, (10, 30): {10, 20}, (20, 20): set()}
    for (after, before), expected in spans.items():
        newest = [said.step for said in store.said.newest(10, after, before)]
        assert newest == [steps[at] for at in sorted(expected, reverse=True)]
    assert [said.at for said in store.said.newest(2, None, None)] == [30, 20]


def test_what_is_not_searchable_is_not_found(store: Store) -> None:
    number, _ = say(store, "warm")
    store.conversation.append_part(number, "said", "result", text("warm result of a memory tool"), 99)
    assert [said.block for said in store.said.newest(10, None, None)] == [text("warm")]
    assert found(store, "warm") == {number}


def test_words_can_be_made_again(store: Store) -> None:
    number, part = say(store, "warm", name="Dana")
    store.maintenance.clear_words()
    assert (found(store, "warm"), store.said.metadata(0)) == (set(), [])
    assert store.maintenance.words_missing() != []
    [(again, name, block)] = store.maintenance.said_for_words()
    assert (again, name, json.loads(block)) == (part, "Dana", text("warm"))
    store.conversation.index_words(part, "warm")
    assert (found(store, "warm"), store.maintenance.words_missing()) == ({number}, [])


# --- vectors


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
    part = store.conversation.append_part(recorded, "said", "user", text("elsewhere"), 0, searchable=True)
    assert store.said.unqueued() == [left, recorded]
    store.said.enqueue([left, recorded])
    assert store.said.unqueued() == []
    store.said.store_vectors([(part, VECTORS[0])])
    assert store.said.unqueued() == []


def test_what_is_purged_has_no_vector_and_waits_for_none(store: Store) -> None:
    steps, parts = zip(*(say(store, word) for word in ("one", "two")), strict=True)
    store.said.enqueue(steps)
    store.said.store_vectors([(parts[0], VECTORS[0])])
    for part in parts:
        store.maintenance.overwrite_part(part, lambda _: "{}")
    assert (store.said.vectors(0), store.said.queued(9), store.said.unqueued()) == ([], [], [])
    store.said.store_vectors([(parts[1], VECTORS[1])])  # made before the purge, kept after it
    assert store.said.vectors(0) == []
