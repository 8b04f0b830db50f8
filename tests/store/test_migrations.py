"""Database files of other versions: an older one is brought up, a newer or a foreign one is refused and left alone."""

import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pager import Memory, MemoryReader, NewerFormatError, StorageError
from pager.store import database
from pager.store.database import Database, text_digest
from pager.store.schema import APPLICATION_ID, MIGRATIONS, VERSION
from tests.crash.children import Life, run, say
from tests.crash.commit_points import CommitPoints
from tests.crash.load import write_pairs
from tests.support import HandClock, Words

MOODS = "ALTER TABLE facts ADD COLUMN mood TEXT; UPDATE facts SET mood = 'of ' || text"
COUNTS = "CREATE TABLE counts (n INTEGER); INSERT INTO counts SELECT count(mood) FROM facts"
BROKEN = "ALTER TABLE facts ADD COLUMN other TEXT; INSERT INTO nowhere VALUES (1)"


def open_memory(directory: Path) -> Memory:
    return Memory.open(directory, embedder=None, clock=HandClock())


def write_something(directory: Path) -> None:
    with open_memory(directory) as memory:
        memory.archive("prefers window seats", key="seat")
        memory.archive("prefers aisles", key="seat")
        memory.append_user("hello")
        memory.request()
        memory.append_assistant("hi")


def assert_all_there(memory: Memory) -> None:
    assert [fact.text for fact in memory.history.fact_versions("seat")] == ["prefers window seats", "prefers aisles"]
    assert memory.page_text("s1") == "hello"
    assert memory.check() == []
    memory.append_user("and now?")
    memory.request()
    memory.append_assistant("all is well")


def with_migrations(monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    monkeypatch.setattr(database, "MIGRATIONS", (*MIGRATIONS, *more))
    monkeypatch.setattr(database, "VERSION", VERSION + len(more))


def ask(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(directory / "pager.db")) as db:
        return db.execute(sql).fetchall()


def change(directory: Path, *statements: str) -> None:
    directory.mkdir(exist_ok=True)
    with closing(sqlite3.connect(directory / "pager.db")) as db, db:
        for statement in statements:
            db.execute(statement)


def files(directory: Path) -> dict[str, bytes]:
    """All but the lock, which names who tried, and the empty log that SQLite makes for a reader."""
    found = {path.name: path.read_bytes() for path in directory.iterdir()}
    return {name: content for name, content in found.items() if name not in ("lock", "pager.db-shm") and content}


@pytest.mark.parametrize("owner", [0, APPLICATION_ID])
def test_a_file_without_a_table_becomes_a_memory(tmp_path: Path, owner: int) -> None:
    change(tmp_path, "PRAGMA user_version = 7", "PRAGMA user_version = 0", f"PRAGMA application_id = {owner}")
    assert (tmp_path / "pager.db").stat().st_size > 0
    write_something(tmp_path)
    assert ask(tmp_path, "PRAGMA user_version") == [(VERSION,)]
    assert ask(tmp_path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    with open_memory(tmp_path) as memory:
        assert_all_there(memory)


def test_an_older_file_is_brought_up_and_keeps_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_something(tmp_path)
    with_migrations(monkeypatch, MOODS, COUNTS)
    with open_memory(tmp_path) as memory:
        assert_all_there(memory)
    assert ask(tmp_path, "SELECT mood FROM facts") == [("of prefers window seats",), ("of prefers aisles",)]
    assert ask(tmp_path, "SELECT n FROM counts") == [(2,)], "each once, in their order"
    assert ask(tmp_path, "PRAGMA user_version") == [(VERSION + 2,)]
    with open_memory(tmp_path) as memory:
        memory.archive("no migration runs twice")
    assert ask(tmp_path, "SELECT n FROM counts") == [(2,)]
    write_something(tmp_path / "new")
    assert ask(tmp_path / "new", "SELECT n FROM counts") == [(0,)]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_something(tmp_path)
    with_migrations(monkeypatch, MOODS, BROKEN)
    for _ in range(2):
        with pytest.raises(StorageError, match="nowhere"):
            open_memory(tmp_path)
        assert ask(tmp_path, "PRAGMA user_version") == [(VERSION,)], "all of them are done, or none"
        assert ask(tmp_path, "SELECT count(*) FROM pragma_table_info('facts') WHERE name = 'other'") == [(0,)]
    with_migrations(monkeypatch, MOODS, COUNTS)
    with open_memory(tmp_path) as memory:
        assert_all_there(memory)


def test_a_file_of_format_1_keeps_its_vectors_and_knows_a_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = [(fact, bytes([fact]) * 4 * Words().dimension) for fact in (1, 3)]  # the second came without
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", MIGRATIONS[:1])
        patch.setattr(database, "VERSION", 1)
        Database(tmp_path / "pager.db").close()
    for fact, text in ((1, "a seat"), (2, "a bed"), (3, "a hat")):
        values = f"{fact}, '{text}', 0, 0, 0, 'person', 0, {int(fact == 2)}"
        change(tmp_path, f"INSERT INTO facts (id, text, valid_from, stated, at, actor, step, purged) VALUES ({values})")
    with closing(sqlite3.connect(tmp_path / "pager.db")) as db, db:
        db.executemany("INSERT INTO vectors VALUES (?, ?)", vectors)
        db.execute("INSERT INTO meta VALUES ('embedder', ?)", (Words().fingerprint,))
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        assert memory.archive("a seat").id == "f1"
        assert memory.archive("a bed").id == "f4"  # what was purged is not known
        sources = [[str(source) for source in memory.fact(f"f{fact}").sources] for fact in (1, 2, 3)]
        assert sources == [["unknown", "program"], [], ["unknown"]]
        memory.archive("a hat")
    assert ask(tmp_path, "PRAGMA user_version") == [(VERSION,)]
    assert ask(tmp_path, "SELECT row, fact, vector FROM vectors LIMIT 2") == [(1, *vectors[0]), (2, *vectors[1])]
    assert ask(tmp_path, "SELECT row, fact FROM vectors WHERE row > 2") == [(3, 4)]
    digests = [(1, text_digest("a seat"), 1), (2, None, 1), (3, text_digest("a hat"), 1)]
    assert ask(tmp_path, "SELECT id, digest, trusted FROM facts WHERE id < 4") == digests
    assert ask(tmp_path, "PRAGMA foreign_key_check") == []


def test_a_reader_does_not_bring_it_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_something(tmp_path)
    before = files(tmp_path)
    with_migrations(monkeypatch, MOODS)
    with pytest.raises(StorageError, match=f"older format {VERSION}; open it once for writing"):
        MemoryReader.open(tmp_path)
    assert files(tmp_path) == before


def migrate_and_die(directory: Path, deadly: int, when: str) -> None:
    """Open with one migration more, and die before or after that commit."""
    database.MIGRATIONS = (*MIGRATIONS, MOODS)
    database.VERSION = len(database.MIGRATIONS)
    points = CommitPoints(deadly, after=when == "after")
    open_memory(directory).close()
    say(points.count)


@pytest.mark.slow
def test_killed_in_a_migration_it_is_done_or_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_something(tmp_path / "whole")
    ((count,),) = run(migrate_and_die, tmp_path / "whole", 0, "before").said
    versions = []
    for number, when in product(range(1, count + 1), ("before", "after")):
        directory = tmp_path / f"{number}-{when}"
        write_something(directory)
        assert run(migrate_and_die, directory, number, when).signal == 9
        (version,) = ask(directory, "PRAGMA user_version")[0]
        moods = ask(directory, "SELECT count(*) FROM pragma_table_info('facts') WHERE name = 'mood'")
        assert moods == [(version - VERSION,)]
        versions.append(version - VERSION)
    assert set(versions) == {0, 1}
    assert versions == sorted(versions)
    with_migrations(monkeypatch, MOODS)
    for directory in tmp_path.iterdir():
        with open_memory(directory) as memory:
            assert_all_there(memory)


def test_a_newer_file_is_refused_and_untouched(tmp_path: Path) -> None:
    write_something(tmp_path)
    change(tmp_path, f"PRAGMA user_version = {VERSION + 1}")
    before = files(tmp_path)
    for _ in range(2):  # the lock is free again each time
        with pytest.raises(NewerFormatError, match=f"format {VERSION + 1}.*up to {VERSION}.*newer selfpager"):
            open_memory(tmp_path)
        with pytest.raises(NewerFormatError):
            MemoryReader.open(tmp_path)
        assert files(tmp_path) == before
    change(tmp_path, f"PRAGMA user_version = {VERSION}")
    with open_memory(tmp_path) as memory:
        assert_all_there(memory)


@pytest.mark.slow
def test_what_a_killed_newer_owner_left_in_its_log_stays(tmp_path: Path) -> None:
    life = Life(write_pairs, tmp_path, 5)
    life.until("page")
    life.kill()
    log = (tmp_path / "pager.db-wal").stat().st_size
    assert log > 0
    with closing(sqlite3.connect(tmp_path / "pager.db", isolation_level=None)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        with pytest.raises(NewerFormatError):
            open_memory(tmp_path)
        assert db.execute("SELECT count(*) FROM facts").fetchall() == [(10,)]
    with pytest.raises(NewerFormatError):
        open_memory(tmp_path)
    assert ask(tmp_path, "SELECT count(*) FROM facts") == [(10,)]


@pytest.mark.parametrize("version", [0, VERSION, 99])
@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("owner", [0, 0x0F055112])
def test_another_programs_database_is_refused_and_untouched(
    tmp_path: Path, version: int, journal: str, owner: int
) -> None:  # fmt: skip
    change(
        tmp_path, f"PRAGMA journal_mode = {journal}", "CREATE TABLE facts (text TEXT)",
        "INSERT INTO facts VALUES ('not ours')", f"PRAGMA user_version = {version}", f"PRAGMA application_id = {owner}",
    )  # fmt: skip
    before = files(tmp_path)
    for act in (open_memory, MemoryReader.open):
        with pytest.raises(StorageError, match="another program") as refused:
            act(tmp_path)
        assert not isinstance(refused.value, NewerFormatError), "no newer selfpager would help"
        assert files(tmp_path) == before
    assert ask(tmp_path, "SELECT text FROM facts") == [("not ours",)]


def test_a_file_that_is_no_database_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "pager.db").write_text("dear diary\n" * 1_000)
    before = files(tmp_path)
    for act in (open_memory, MemoryReader.open):
        with pytest.raises(StorageError, match="not a database"):
            act(tmp_path)
        assert files(tmp_path) == before
