"""Frames of SQLite's write-ahead log: those that were committed, each once, in whatever pieces they are read."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pager.log.pages import chunk_of, pack_changes, unpack, unpack_changes
from pager.log.wal import Changes, WalReader

PAGE_BYTES = 2048


class Written:
    """A database that nobody checkpoints, and a copy that is made of what is read from its log."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "it.db"
        self.path.unlink(missing_ok=True)
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA wal_autocheckpoint = 0")
        self.db.execute("PRAGMA cache_size = 3")  # a transaction writes frames before it is committed
        self.db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x BLOB)")
        self.log = WalReader(self.path.with_name("it.db-wal"))
        self.pages: dict[int, bytes] = {}
        self.size = 0

    def follow(self) -> bool:
        changes = self.log.read()
        if changes is None:
            return False
        old = {page: self.old(page, changes) for page in changes.pages if page in self.pages and page <= self.size}
        packed = pack_changes(changes.pages, changes.size_pages, old)
        pages, self.size = unpack_changes(unpack(packed), lambda page, size_bytes: self.pages[page][:size_bytes])
        self.pages |= pages
        self.log.passed(changes)
        return True

    def old(self, page: int, changes: Changes) -> bytes:
        """The content before these changes, as the log of an agent finds it."""
        if found := self.log.before(page, changes):
            return found
        with self.path.open("rb") as file:
            file.seek((page - 1) * PAGE_BYTES)
            return file.read(PAGE_BYTES)

    def copy(self) -> bytes:
        return b"".join(self.pages[page] for page in range(1, self.size + 1))

    def file(self) -> bytes:
        assert self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
        return self.path.read_bytes()

    def close(self) -> None:
        self.log.close()
        self.db.close()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    with closing(Written(tmp_path)) as written:
        yield written


ACTS = st.lists(
    st.sampled_from(["insert", "much", "undo", "delete", "read", "checkpoint", "vacuum", "truncate"]), max_size=25
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(acts=ACTS)
def test_what_is_read_makes_the_same_file_whatever_is_done(tmp_path: Path, acts: list[str]) -> None:
    with closing(Written(tmp_path)) as written:
        db = written.db
        for number, act in enumerate(acts):
            if act == "insert":
                db.execute("INSERT INTO t (x) VALUES (?)", (bytes([number]) * 500,))
            elif act in ("much", "undo"):
                db.execute("BEGIN")
                db.executemany("INSERT INTO t (x) VALUES (?)", [(bytes([number, k]) * 900,) for k in range(30)])
                db.execute("UPDATE t SET x = x || 'y'")
                db.execute("COMMIT" if act == "much" else "ROLLBACK")
            elif act == "delete":
                db.execute("DELETE FROM t WHERE id % 2 = 0")
            elif act == "read":
                written.follow()
            else:  # what has not been read must not be copied into the file: then SQLite would write over it
                if act == "vacuum":
                    db.execute("VACUUM")
                written.follow()
                db.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if act == 'truncate' else 'PASSIVE'})")
        written.follow()
        assert not written.follow()
        assert written.copy() == written.file()


def test_what_is_not_committed_is_not_read(written: Written) -> None:
    assert written.follow()
    written.db.execute("BEGIN")
    written.db.executemany("INSERT INTO t (x) VALUES (?)", [(bytes(900),)] * 200)
    assert not written.follow()
    written.db.execute("COMMIT")
    assert written.follow()


@pytest.mark.parametrize("place", [0, 3, 20, 24, 1000])
def test_a_frame_with_another_byte_ends_the_log(written: Written, place: int) -> None:
    written.db.execute("INSERT INTO t (x) VALUES ('one')")
    assert written.follow()
    before = written.log.read()
    assert before is None
    path = written.path.with_name("it.db-wal")
    end = path.stat().st_size
    written.db.execute("INSERT INTO t (x) VALUES ('two')")
    with path.open("r+b") as file:
        file.seek(end + place)
        byte = file.read(1)
        file.seek(end + place)
        file.write(bytes([byte[0] ^ 1]))
    assert written.log.read() is None


def test_a_page_is_in_the_chunk_where_its_bytes_are() -> None:
    assert [chunk_of(page, PAGE_BYTES) for page in (1, 64, 65, 129)] == [0, 0, 1, 2]
