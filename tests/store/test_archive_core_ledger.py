"""The store holds the archive, core blocks, the ledger and values."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from pager.clock import from_micros
from pager.errors import StorageError
from pager.store import Store
from pager.types import Block, Movement, number_of
from tests.contract.vector_sources import unit_vectors
from tests.store.rows import Place, keep
from tests.support.clock import START

# --- facts


def test_a_fact_comes_back_as_it_went_in(store: Store, place: Place) -> None:
    old = store.archive.append("was", "seat", (), 1, None, 1, "agent", 0, stated=False)
    store.archive.supersede(old, old, 5)
    said = "aisle\0 é \u05e9" + "x" * 1_000_000
    new = store.archive.append(said, "seat", ["Travel", "é"], 5, 9, 7, "person", 3, stated=True, supersedes=old)
    fact = place.reopen().archive.fact(new)
    assert fact is not None
    assert new > old
    assert (number_of(fact.id), fact.text, fact.key, fact.tags) == (new, said, "seat", ("Travel", "é"))
    assert (fact.valid_from, fact.valid_until, fact.at) == (from_micros(5), from_micros(9), from_micros(7))
    assert (fact.actor, fact.step, fact.supersedes, fact.superseded_by) == ("person", "s3", f"f{old}", None)
    assert (fact.forgotten, fact.purged) == (None, False)


def test_facts_by_id_and_by_age(store: Store) -> None:
    ids = [keep(store, name) for name in "abcde"]
    assert list(store.archive.facts([ids[3], ids[1], 999])) == [ids[1], ids[3]]
    assert (store.archive.facts([]), store.archive.fact(999)) == ({}, None)
    assert [number_of(fact.id) for fact in store.archive.newest(2)] == [ids[4], ids[3]]


def test_a_key_has_one_current_fact(store: Store) -> None:
    old = keep(store, "window", key="seat", start=20)
    with pytest.raises(StorageError), store.transaction():
        keep(store, "aisle", key="seat", start=30)
    store.archive.release_key(old)
    assert keep(store, "aisle", key="seat", start=30, supersedes=old) > old


def test_vectors_come_back_bit_for_bit(store: Store, place: Place) -> None:
    ids = [keep(store, f"fact {number}") for number in range(7)]
    rows = unit_vectors(7)
    for fact, row in zip(ids, rows, strict=True):
        store.archive.store_vector(fact, rows[0])
        store.archive.store_vector(fact, row)  # the newest holds
    table = place.reopen().archive
    some, matrix = table.vectors([ids[4], ids[1], 999])
    assert dict(zip(some, matrix.tolist(), strict=True)) == {ids[4]: rows[4].tolist(), ids[1]: rows[1].tolist()}
    assert matrix.dtype == np.float32
    after, matrix = table.vectors_after(ids[2], 2)
    assert (after, matrix.tolist()) == (ids[3:5], rows[3:5].tolist())
    assert table.vectors_after(ids[2], -1)[0] == ids[3:]
    assert (table.vectors_after(ids[0], 4)[0], table.vectors_after(ids[4], 4)[0]) == (ids[1:5], ids[5:])
    assert np.array_equal(table.vectors_after(0, -1)[1], rows)
    assert (table.vectors([])[0], table.vectors_after(ids[-1], 3)[0]) == ([], [])
    assert (table.count_vectors(), table.count_vectors(ids[2]), table.last_vector()) == (7, 3, ids[-1])


def test_what_has_no_vector_or_a_wrong_one_is_known(store: Store) -> None:
    table = store.archive
    one, two, three = (keep(store, name) for name in ("one", "two", "three"))
    assert (table.last_vector(), table.dimension()) == (0, None)
    assert table.without_vector(2) == [(one, "one"), (two, "two")]
    table.store_vector(one, unit_vectors(1, 16)[0])
    table.store_vector(three, unit_vectors(1, 8)[0])
    assert (table.without_vector(9), table.wrong_vectors(16)) == ([(two, "two")], [three])
    store.maintenance.drop_vector(three)
    assert table.dimension() == 16
    assert [fact for fact, _ in table.without_vector(9)] == [two, three]
    table.drop_vectors()
    assert (table.count_vectors(), len(table.without_vector(9))) == (0, 3)


# --- core

NOW = datetime(2026, 5, 3, 12, tzinfo=UTC)
HUMAN = Block("human", "", "who", 100, 0, False, None, 0, "person", NOW)


def test_unseen_is_what_changed_behind_the_agent_as_it_reads_now(store: Store) -> None:
    store.core.append(replace(HUMAN, name="other"), 1, unseen=False)
    store.core.append(replace(HUMAN, value="by a person"), 0, unseen=True)
    store.core.append(replace(HUMAN, value="by the agent"), 0, unseen=False)
    assert [block.value for block in store.core.unseen()] == ["by the agent"]
    store.core.seen()
    assert store.core.unseen() == []


def test_the_ledger_gives_rows_in_order_by_page_event_and_age(store: Store) -> None:
    for page, event in (("f1", "archive"), ("f2", "archive"), (None, "search"), ("f1", "forget"), ("f1", "archive")):
        store.ledger.write(
            event, page, reason="why \0 é", actor="agent", tokens=5, step=3, query="\0 é", found=[["f1", 0.5]]
        )
    store.ledger.write("notice", nothing=None, none=[])
    rows = store.ledger.movements()
    first = Movement(
        rows[0].number, START + timedelta(seconds=1), "s3", "archive", "f1", "why \0 é", "agent", 5,
        {"query": "\0 é", "found": [["f1", 0.5]]},
    )  # fmt: skip
    assert (rows[0], rows[-1].tokens, rows[-1].detail, rows[-1].step) == (first, 0, {}, "s0")
    numbers = [row.number for row in rows]
    assert numbers == sorted(set(numbers))

    def places(**asked: Any) -> list[int]:
        return [numbers.index(row.number) for row in store.ledger.movements(**asked)]

    assert (places(), places(limit=2), places(limit=0)) == ([0, 1, 2, 3, 4, 5], [4, 5], [])
    assert (places(page="f1"), places(page="f1", limit=2), places(page="f9")) == ([0, 3, 4], [3, 4], [])
    assert (places(events=["search", "forget"]), places(events=["archive"], limit=1)) == ([2, 3], [4])
    assert (places(page="f1", events=["archive"]), places(after=numbers[3])) == ([0, 4], [4, 5])


def test_the_ledger_is_changed_by_a_purge_only(store: Store) -> None:
    store.ledger.write("archive", "f1", reason="secret")

    def change(text: str, *, is_json: bool) -> str:
        return text.replace("secret", "gone")

    with pytest.raises(StorageError, match="append-only"):
        store.maintenance.rewrite(change)
    assert [row.reason for row in store.ledger.movements()] == ["secret"]
    store.settings.put("purging", "f1")
    store.maintenance.rewrite(change)
    assert [row.reason for row in store.ledger.movements()] == ["gone"]


# --- upkeep
