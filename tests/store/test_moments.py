"""The store answers about earlier moments: counts of facts, what was written before a step, one moment for a reader."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from pager.clock import from_micros
from pager.errors import StorageError
from pager.store import Store
from pager.store.rows import Answered
from pager.types import Block, FactCounts, number_of
from tests.store.rows import Place, epoch, keep, say, say_until, text


def test_facts_are_counted_by_what_they_are(store: Store) -> None:
    """Every kind of fact there is, in different numbers, against counting one by one."""
    facts = dict[int, tuple[int, int | None, bool, int]]()
    kinds = product((5, 50), (None, 7, 60), (False, True), (0, 2))
    for times, (start, until, purged, uses) in enumerate(kinds):
        for _ in range(times % 5 + 1):
            fact = store.archive.append("x", None, (), start, until, 1, "agent", 0, stated=True)
            for _ in range(uses):
                store.archive.used([fact], 9)
            if purged:
                store.maintenance.mark_fact_purged(fact)
            facts[fact] = (start, until, purged, uses)
    for at in (0, 5, 6, 7, 8, 49, 50, 60, 61):
        there = [known for known in facts.values() if not known[2]]
        true = [known for known in there if known[0] <= at and (known[1] is None or known[1] > at)]
        idle = [known for known in there if known[1] is None and not known[3]]
        assert store.archive.counts(at) == FactCounts(len(there), len(true), len(idle))
    oldest = [fact for fact, (_, until, purged, uses) in facts.items() if not (until or purged or uses)]
    assert [number_of(fact.id) for fact in store.archive.never_used(3)] == oldest[:3]


def test_the_most_used_facts_come_first_and_say_how_often(store: Store) -> None:
    assert store.archive.most_used(5) == []
    ids = [keep(store, name) for name in "abcd"]
    for at, fact in enumerate([ids[0], ids[2], ids[2], ids[3]]):
        store.archive.used([fact], at)
    told = [(number_of(use.fact.id), use.uses, use.used_at) for use in store.archive.most_used(2)]
    assert told == [(ids[2], 2, from_micros(2)), (ids[3], 1, from_micros(3))]
    store.maintenance.mark_fact_purged(ids[2])
    assert [number_of(use.fact.id) for use in store.archive.most_used(5)] == [ids[3], ids[0]]


@pytest.mark.parametrize("rows_per_step", [(0,), (1,), (3, 0, 0, 2, 1, 0, 5)])
def test_what_was_written_before_a_step(store: Store, rows_per_step: tuple[int, ...]) -> None:
    written = list[tuple[int, int]]()
    for step, rows in enumerate(rows_per_step):
        for _ in range(rows):
            fact = store.archive.append("x", None, (), 0, None, 0, "agent", step, stated=False)
            store.ledger.write("archive", f"f{fact}", step=step)
            written.append((step, fact))
    for before in range(len(rows_per_step) + 1):
        expected = [fact for step, fact in written if step < before]
        assert store.archive.last_before(before) == max(expected, default=0)
        rows = store.ledger.movements(before_step=before)
        assert [row.page_id for row in rows] == [f"f{fact}" for fact in expected]
        newest = store.ledger.movements(before_step=before, limit=2)
        assert [row.page_id for row in newest] == [f"f{fact}" for fact in expected[-2:]]


def block(name: str, value: str, *, retired: bool = False) -> Block:
    at = from_micros(0) + timedelta(1)
    return Block(name, value, "", 100, 1, False, None, 0, "agent", at, retired)


def test_blocks_as_they_read_before_a_step(store: Store) -> None:
    assert store.core.blocks(before_step=9) == []
    for step, name, value in ((0, "b", "b0"), (0, "a", "a0"), (3, "b", "b3"), (3, "b", "b3 again"), (5, "a", "")):
        say_until(store, step)
        store.core.append(block(name, value, retired=not value), 0, unseen=False)
    read = {step: [known.value for known in store.core.blocks(before_step=step)] for step in range(7)}
    assert read == {
        0: [], 1: ["a0", "b0"], 2: ["a0", "b0"], 3: ["a0", "b0"], 4: ["a0", "b3 again"], 5: ["a0", "b3 again"],
        6: ["b3 again"],
    }  # fmt: skip
    assert read[6] == [known.value for known in store.core.blocks()]
    numbers = [store.core.count_versions("b", known.version) for known in store.core.versions("b")]
    assert numbers == [1, 2, 3]


def test_parts_that_a_later_epoch_carries_otherwise_are_known(store: Store) -> None:
    (first, one), (second, two) = say(store, "one"), say(store, "two")
    for number in (1, 2, 3):
        store.prompt.open_epoch(epoch(number), 0, second)
    store.conversation.reform(one, 2, text("shorter"))
    store.conversation.reform(two, 1, None)
    steps = [first, second]
    assert [store.conversation.reformed_since(steps, number) for number in (0, 1, 2)] == [{one, two}, {one}, set()]
    assert store.conversation.reformed_since([second], 1) == set()


def test_the_replies_around_a_step(store: Store) -> None:
    assert store.prompt.answered_around(3) == (None, None)
    first, part = say(store, "hello")
    store.prompt.open_epoch(epoch(1), 0, first)
    replies = [store.conversation.append_step("assistant", "assistant", 0, turn=first) for _ in range(3)]
    for step in (replies[0], replies[2]):
        store.prompt.save_request(Answered(step, 1, part, None, "m", 1, None), 0)
    around = [store.prompt.answered_around(step) for step in (first, *replies)]
    assert around == [(None, replies[0]), (None, replies[2]), (replies[0], replies[2]), (replies[0], None)]


def test_a_reader_s_transaction_is_one_moment_and_its_revision_says_that_it_passed(store: Store, place: Place) -> None:
    number, _ = say(store, "hello")
    reader = place.open(read_only=True)
    before = reader.revision()
    with reader.transaction():
        assert reader.conversation.last_step() == number
        say(store, "meanwhile")
        assert reader.conversation.last_step() == number
        with pytest.raises(StorageError):
            reader.settings.put("a", "1")
    assert reader.conversation.last_step() > number
    assert reader.revision() != before
    assert reader.revision() == reader.revision()
