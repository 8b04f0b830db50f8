"""The files of one agent, all in its directory. Nothing else builds these paths.

pager.db     the truth (SQLite)
chroma/      the vector index, which can be rebuilt from it
lock         names the process that writes
inbox/       commands that other processes have left for that process
helpers/     the agents that worked for this one: a directory like this for each call
"""

import hashlib
import re
import stat
from contextlib import suppress
from pathlib import Path

from pager.safety import foreign_files

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class AgentFiles:
    """The paths of one agent's files, whether they exist or not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "pager.db"
        self.write_ahead_log = directory / "pager.db-wal"
        self.index = directory / "chroma"
        self.lock = directory / "lock"
        self.inbox = directory / "inbox"
        self.helpers = directory / "helpers"

    def remove_database(self) -> None:
        """Delete a database that could not be made, so that no agent is listed that cannot be read."""
        with suppress(OSError):
            for path in self.directory.glob(f"{self.database.name}*"):
                path.unlink()

    @property
    def owner(self) -> Path:
        """Return the directory of the agent that this one works for, and those above it; else its own."""
        above = self.directory.parent.parent
        is_helper = self.directory.parent.name == "helpers" and (above / "pager.db").is_file()
        return AgentFiles(above).owner if is_helper else self.directory

    def helper(self, call_id: str) -> "AgentFiles":
        """Return where the helper that answers a call has its files. The id of a call comes from a server."""
        name = call_id if _NAME.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:40]
        return AgentFiles(self.helpers / name)

    def of_helpers(self) -> "list[AgentFiles]":
        """Return the files of all helpers that have any. What is behind a link is not of this agent."""
        found = [path.parent for path in sorted(self.helpers.glob("*/pager.db")) if path.is_file()]
        return [AgentFiles(each) for each in found if not (self.helpers.is_symlink() or each.is_symlink())]

    def make_directory(self) -> None:
        """Create the directory and its missing parents, readable by their owner only. Raises OSError."""
        missing = [each for each in (self.directory, *self.directory.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
            foreign_files.sync_directory(each.parent)
        if not self.directory.is_dir():
            raise NotADirectoryError(20, "it is a file", str(self.directory))

    def make_private(self) -> None:
        """Take the rights of others on these files away, whoever gave them.

        So with the directory if others may write into it, and with that leave commands or put another file in place of
        one. One that is shared by design (/tmp, whose files only their owners can move) stays as it is.
        """
        with suppress(OSError):  # it is somebody else's
            mode = self.directory.stat().st_mode
            if mode & 0o022 and not mode & stat.S_ISVTX:
                self.directory.chmod(stat.S_IMODE(mode) & 0o700)
        shared = self.database.with_name("pager.db-shm")
        for each in (self.database, self.write_ahead_log, shared, self.lock, self.index, self.inbox):
            with suppress(OSError):  # it is not there, or is somebody else's
                mode = each.lstat().st_mode
                if mode & 0o077 and not stat.S_ISLNK(mode):
                    each.chmod(stat.S_IMODE(mode) & 0o700)
