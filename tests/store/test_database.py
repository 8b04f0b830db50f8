"""Transactions nest, a failure undoes its own; SQLite's plans and triggers; a schema that explains itself."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pager import BlockSpec, Memory, NotFoundError, StorageError
from pager.store import Store
from pager.store.schema import BASE
from tests.standin import call
from tests.support import Talk, Words, undone


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


def test_an_action_after_the_commit_sees_it_committed_and_may_write(store: Store, reader: Store) -> None:
    seen = list[str | None]()

    def act() -> None:
        seen.append(reader.settings.get("a"))
        with store.transaction():
            store.settings.put("b", "2")

    with store.transaction():
        with store.transaction():
            store.settings.put("a", "1")
            store.after_commit(act)
        assert reader.settings.get("a") is None
        assert not seen
    assert seen == ["1"]
    assert reader.settings.get("b") == "2"


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


# Every other table is only reached by an index and a value to look for: these queries stop early or read a small thing.
MAY_BE_WALKED = (
    "best",  # a subquery of at most as many rows as were asked for
    "steps USING INDEX steps_turn",  # from the end, LIMIT 1
    "p USING INDEX parts_at",  # from the end, LIMIT
    "vectors USING COVERING INDEX sqlite_autoindex_vectors_1",  # counted, which reads a few pages
    "c USING INDEX calls_open",  # open calls only
    "blocks USING INDEX blocks_unseen",  # unseen blocks only
    "names",  # of core blocks: a handful, each found by one look into an index
    "facts USING INDEX facts_never_used",  # from the start, LIMIT
    "facts USING COVERING INDEX facts_never_used",  # counted, which reads a few pages
    "facts USING INDEX facts_purged",  # purges are rare
    "epochs",  # from the end, LIMIT 1
    "pins",  # a fifth of the window
    "f",  # facts without a vector: asked only while some are known to have none
    r"\(subquery-1\)",  # of at most as many rows as were asked for
    r"main\.\w+_config",  # two rows of the full text's own
    "said_owed",  # what waits for a vector, from the start, LIMIT
)
# The latter three: full text, its settings, which are few, and the values of a statement.
WALKS = (*MAY_BE_WALKED, r"main.\w+_words_config", r"\d+ CONSTANT ROWS")
ALLOWED = re.compile(rf"SCAN (?:(?:{'|'.join(WALKS)})$|[\w.]+ VIRTUAL TABLE INDEX)")
EXPLAINED = re.compile("(?:WITH|SELECT|INSERT|UPDATE|DELETE|REPLACE)\\b", re.IGNORECASE)


def live(talk: Talk) -> None:
    """Whatever a person and an agent do all day, an eviction included."""
    memory = talk.memory
    for number in range(8):
        talk.ask(f"turn {number} " + "and a long story " * 60, call("weather", {"city": "Porto"}))
        memory.begin_call(memory.open_calls[0].id)
        talk.answer("sunny")
        talk.reply("It is sunny.")
    memory.core_append("human", "lives in Porto")
    memory.archive("prefers window seats", key="seat", tags=["travel"])
    fact = memory.archive("prefers aisle seats", key="seat", tags=["travel", "seat"])
    for tags in ((), ("travel",), ("travel", "seat")):
        memory.search_archive("which seat?", tags=tags, as_of="2026-05-03")
    for query in ("sunny story", ""):
        memory.search_recall(query, after="2020-01-01", before="2030-01-01")
        memory.search_recall(query)
    memory.page_in(fact.id, pin=True)
    memory.page_in("s1")
    talk.ask("and now?", "well")
    memory.page_out(fact.id)
    memory.forget(fact.id, "wrong")
    memory.record("user", "I moved to Porto.", name="Dana")
    assert memory.history.resident("s3") != memory.history.resident()
    memory.history.rebuild("s2")
    memory.history.residencies("s1")
    memory.ledger(page="s1")
    memory.ledger(page="s1", events=["evict"])
    memory.ledger(events=["search", "archive"], limit=3)
    memory.inspect.newest_facts()
    memory.history.core_versions("human")
    look_on(memory)
    with undone(memory):
        pass  # everything is loaded again
    talk.ask("are you there?", "yes")


def look_on(memory: Memory) -> None:
    """What an overview of now and of then asks."""
    memory.inspect.fact_counts()
    memory.inspect.most_used_facts()
    memory.inspect.never_used_facts()
    memory.inspect.newest_facts(9, "s3")
    memory.ledger(at="s3", limit=10)
    memory.history.limits_at("s3")
    for block in memory.core("s3"):
        memory.history.core_version_number(block)
    memory.inspect.window()
    memory.inspect.window("s3")
    with suppress(NotFoundError):
        memory.inspect.window("s1")


def test_no_query_of_a_turn_walks_a_table_that_grows(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000, embedder=Words(), core={"human": BlockSpec(limit_tokens=200)})
    store = cast(Store, talk.memory._store)
    asked = dict[str, None]()
    store.trace(asked.setdefault)
    live(talk)
    store.trace(None)
    assert talk.memory.ledger(events=["evict"]) != []
    queries = [sql for sql in asked if EXPLAINED.match(sql) and " IN ()" not in sql]  # which is false at once
    plans = {sql: store.rows(f"EXPLAIN QUERY PLAN {sql}") for sql in queries}
    steps = {(row["detail"], sql) for sql, rows in plans.items() for row in rows}
    assert len(steps) > 100
    assert [each for each in steps if each[0].startswith("SCAN") and not ALLOWED.match(each[0])] == []
    # Rows of a page are few, those of an event may be half of the ledger.
    of_a_page = [
        detail for detail, sql in steps
        if "FROM ledger" in sql and "page = " in sql and detail.startswith(("SEARCH ledger ", "SEARCH l "))
    ]  # fmt: skip
    assert of_a_page
    assert [detail for detail in of_a_page if "INDEX ledger_page" not in detail] == []
    talk.memory.close()


def test_no_row_of_the_ledger_is_deleted_not_even_by_a_purge(store: Store) -> None:
    store.ledger.write("archive", "f1", step=3, actor="agent")
    store.settings.put("purging", "f1")
    with pytest.raises(StorageError, match="append-only"):
        store.run("DELETE FROM ledger")
    assert len(store.ledger.movements()) == 1


def test_every_table_and_every_column_says_what_it_is() -> None:
    tables = re.findall(r"((?:^--.*\n)*)^CREATE (?:VIRTUAL )?TABLE (\w+)[^\n]*\n((?:  .*\n)*)", BASE, re.MULTILINE)
    assert len(tables) == BASE.count(" TABLE ")
    assert [name for comment, name, _ in tables if not comment and name != "fact_words"] == []  # beside said_words
    silent = [(name, line.split()[0]) for _, name, body in tables for line in body.splitlines() if "--" not in line]
    # What the module's docstring or the line above the table says.
    general = {"id", "at", "step", "PRIMARY", "part", "fact"}
    assert [each for each in silent if each[1] not in general] == []
