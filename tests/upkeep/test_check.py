"""The fsck: every audit fires on the damage that it is for, and what can be rebuilt is."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pager import BlockSpec, Memory
from pager.store import Store
from pager.store.database import PAGE_BYTES
from pager.store.maintenance import AUDITS
from pager.upkeep import check
from tests.standin import call, thinking
from tests.support import Talk, Words, database_of

# For each law: words of what is wrong, and the damage.
DAMAGE_OF = {
    "a step stays whole": {
        "a call is open": "UPDATE calls SET result = NULL",
        "a result is in another step": "UPDATE parts SET step = 1 WHERE slot = 'result'",
        "is in another step than its call": "UPDATE parts SET slot = 'reply' WHERE slot = 'result'",
    },
    "the prompt only grows": {
        "an epoch lives that is not the newest": "UPDATE epochs SET through_step = NULL WHERE id = 1",
    },
    "what matters survives eviction": {
        "a pinned page is not resident": "DELETE FROM residency WHERE how = 'pinned'",
    },
    "nothing acknowledged is lost": {
        "has no parts": "INSERT INTO steps (kind, turn, role, at) VALUES ('user', 99, 'user', 0)",
        "a reply has no request": "DELETE FROM requests WHERE step = 2",
        "no size": "DELETE FROM sizes WHERE part = 1",
    },
    "nothing is overwritten": {
        "a superseded fact has no end": "UPDATE facts SET valid_until = NULL WHERE id = 1",
        "a fact outlives its given end": "UPDATE facts SET expires = valid_from + 1 WHERE id = 1",
        "a fact ends before it begins": "UPDATE facts SET valid_until = valid_from - 1 WHERE id = 1",
        "of another key": "UPDATE facts SET key = 'other' WHERE id = 1",
    },
    "everything can be explained": {
        "does not say why": "UPDATE residency SET until_step = 4 WHERE page = 's3' AND how = 'step'",
        "an interval ends before it begins": "UPDATE residency SET until_step = -1 WHERE page = 's1'",
        "twice in the same way": "INSERT INTO residency (page, how, from_step) VALUES ('f2', 'pinned', 9)",
        "cannot be rebuilt": "UPDATE epochs SET settings = '{}'",
    },
    "pager.db": {"refers to nothing": "PRAGMA foreign_keys = OFF; DELETE FROM steps WHERE id = 1"},
}
DAMAGE = [(law, words, sql) for law, cases in DAMAGE_OF.items() for words, sql in cases.items()]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """A little of everything, in two epochs."""
    talk = Talk(tmp_path, core={"human": BlockSpec()}, embedder=Words())
    talk.memory.core_append("human", "lives in Porto now")
    talk.memory.archive("lives in Porto", key="home")
    fact = talk.memory.archive("lives in Faro", key="home")
    talk.memory.page_in(fact.id, pin=True)
    talk.ask("the engine is red", thinking("hm"), "yes")
    talk.ask("look", call("weather", {"city": "Porto"}))
    talk.answer()
    talk.reply("sunny")
    talk.reopen(instructions="Be long.")
    talk.ask("and?", "yes")
    assert not talk.memory.check()
    return talk


def damage(talk: Talk, sql: str) -> None:
    talk.memory.close()
    with closing(sqlite3.connect(talk.directory / "pager.db")) as database:
        database.executescript(sql)
        database.commit()
    talk.memory = Memory.open(talk.directory, embedder=Words(), clock=talk.clock, model="m")


@pytest.mark.parametrize(("law", "words", "sql"), DAMAGE, ids=[words for _, words, _ in DAMAGE])
def test_damage_is_found_and_named_by_its_law(talk: Talk, law: str, words: str, sql: str) -> None:
    damage(talk, sql)
    found = [(problem.where, problem.text) for problem in talk.memory.check() if problem.where != "vectors"]
    assert [text for where, text in found if where == law and words in text], found
    assert [(problem.where, problem.text) for problem in talk.memory.check(fix=True) if not problem.fixed] == found


def test_sizes_of_core_blocks_are_counted_again_and_a_lowered_limit_is_no_damage(talk: Talk) -> None:
    damage(talk, "UPDATE blocks SET used_tokens = 7 WHERE value <> ''")
    assert [problem.text for problem in talk.memory.check()] == ["human says it holds 7 tokens and holds 5"]
    assert [problem.fixed for problem in talk.memory.check(fix=True)] == [True]
    talk.reopen(core={"human": BlockSpec(limit_tokens=1)})
    assert not talk.memory.check()


def test_every_audit_has_a_case_above() -> None:
    for law, wrong in AUDITS:
        assert [case for case, words, _ in DAMAGE if case == law and words in wrong], wrong


@pytest.mark.parametrize(
    ("where", "sql"),
    [
        ("words", "INSERT INTO said_words (said_words) VALUES ('delete-all')"),
        ("words", "INSERT INTO fact_words (fact_words) VALUES ('delete-all')"),
        ("words", "INSERT INTO said_words (rowid, text) VALUES (99999, 'nobody said this')"),
        ("words", "DELETE FROM said_words_data WHERE id > 10"),
        ("vectors", "DELETE FROM vectors WHERE fact = 2"),
        ("vectors", "UPDATE vectors SET vector = zeroblob(4)"),
    ],
)
def test_words_and_vectors_are_rebuilt(talk: Talk, where: str, sql: str) -> None:
    damage(talk, sql)
    rows = talk.memory.ledger()
    for _ in range(2):
        assert {problem.where for problem in talk.memory.check()} == {where}
    assert talk.memory.ledger() == rows, "checking changes nothing"
    assert all(problem.fixed for problem in talk.memory.check(fix=True))
    assert not talk.memory.check()
    assert talk.memory.search_recall("engine")[0].page_id == "s1"
    hit = talk.memory.search_archive("lives in Faro")[0]
    assert "words" in hit.parts
    assert (hit.cosine or 0) > 0.99


def test_a_damaged_file_is_named_and_nothing_else_is_checked(talk: Talk) -> None:
    database_of(talk.memory).run("PRAGMA wal_checkpoint(TRUNCATE)")
    talk.memory.close()
    path = talk.directory / "pager.db"
    raw = bytearray(path.read_bytes())
    page = raw.index(b"the engine is red") // PAGE_BYTES
    raw[page * PAGE_BYTES : page * PAGE_BYTES + 8] = b"\xff" * 8
    path.write_bytes(raw)
    with closing(Store(path, talk.clock, read_only=True)) as store:
        assert store.maintenance.damage()
        found = check.check(store, None, None, fix=False)
    assert {problem.where for problem in found} == {"pager.db"}


def test_a_purge_that_a_full_disk_cut_off_is_named_as_what_it_is(talk: Talk) -> None:
    assert talk.memory.check() == []
    talk.memory._store.settings.put("purging", "s1")
    [found] = talk.memory.check()
    assert (found.where, "has begun, but not ended; the next purge" in found.text) == ("purge", True)
