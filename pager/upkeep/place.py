"""The place of one agent's memory, whether there is one or not: a directory, or rows in Postgres (`pager.log.place`).

The facades open what a place gives them. Nothing above them asks for a directory.
"""

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pager.clock import Clock
from pager.errors import NoAgentError, RejectedError, StorageError
from pager.safety import foreign_files
from pager.store import Store
from pager.store.files import AgentFiles
from pager.store.maintenance import copy_database
from pager.types import OF_TENANT
from pager.upkeep import home_files, inbox
from pager.upkeep.inbox import CommandFiles, Commands
from pager.upkeep.lock import AgentLock, current_owner

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # of an agent, as it is called in its home


class Opened(NamedTuple):
    """The open database of an agent, and what goes with it."""

    store: Store
    vectors: Path  # the directory of the vector index
    commands: Commands
    release: Callable[[], None]  # to be called when the store was closed
    follow: Callable[[], bool] = lambda: False  # brings a reader's copy up to date; True if it is another one now
    attend: Callable[[Callable[[], object]], None] = lambda _: None  # calls this when others wait for a copy to follow


class Place(ABC):
    """One agent's place."""

    name: str  # for people: what errors and lists call it
    agent: str  # the name of the agent
    works_for: str  # the name of the agent that a helper works for; of one that is none, its own

    @abstractmethod
    def exists(self) -> bool:
        """Return True if there is a memory."""

    @abstractmethod
    def is_taken(self) -> bool:
        """Return True if anything is there, such as what is left of a memory."""

    @abstractmethod
    def identity(self) -> object:
        """Return a value that is another one after an open reader has to be opened again to see what is there. May
        raise OSError if there is nothing."""

    @abstractmethod
    def version(self) -> object:
        """Return a value that is another one after a commit, without opening it. Raises OSError if there is none."""

    @abstractmethod
    def open(self, clock: Clock) -> Opened:
        """Open it for writing, and create it if it is missing. Raises InUseError with the process that has it open."""

    @abstractmethod
    def read(self, clock: Clock) -> Opened:
        """Open it for reading. Raises NoAgentError if there is none."""

    @abstractmethod
    def restore(self, at: datetime, aside: "Directory") -> None:
        """Write its pager.db, as it was at a moment, into an empty directory. Raises RejectedError if none is kept."""

    @abstractmethod
    def change_key(self, clock: Clock) -> int:
        """Encrypt it, with its helpers, with a new key. Return how many memories these are. Nobody may have it open."""

    @abstractmethod
    def copy_to(self, file: Path) -> None:
        """Copy the database, of whatever format, with the pending commands into a new file. Raises StorageError."""

    @abstractmethod
    def owner(self) -> dict[str, Any] | None:
        """Return pid, command and start of the process that has it open for writing; None if there is none."""

    @abstractmethod
    def set_due(self, clock: Clock) -> None:
        """Note that it wants to be visited now, by whoever works for the agents of its home: a command waits."""

    @property
    @abstractmethod
    def commands(self) -> Commands:
        """Return the commands that wait for the process that has it open."""

    @abstractmethod
    def helper(self, call_id: str) -> "Place":
        """Return the place of the helper that answers a call. The id of a call comes from a server."""

    @abstractmethod
    def helpers(self) -> "list[Place]":
        """Return the places of all helpers that have a memory."""

    @abstractmethod
    def beside(self, name: str) -> "Place":
        """Return the place of another agent of the same home and, where agents belong to tenants, of the same one."""

    @property
    @abstractmethod
    def directory(self) -> Path:
        """Return the directory that tools of the agent must not touch: its memory, or the copies of it, are there."""

    @abstractmethod
    def remove(self, clock: Clock) -> None:
        """Delete it with all that belongs to it. Raises InUseError while a process writes it."""

    @abstractmethod
    def discard(self) -> None:
        """Delete what is there, without asking if it is in use: it was just made, and is not wanted."""


class Directory(Place):
    """A directory of its own."""

    def __init__(self, path: Path) -> None:
        self.files = AgentFiles(path)
        self.name = str(path)
        self.agent = path.name
        self.works_for = self.files.owner.name

    def exists(self) -> bool:
        """Return True if there is a memory."""
        return self.files.database.is_file()

    def is_taken(self) -> bool:
        """Return True if there is a directory."""
        return self.files.directory.exists()

    def identity(self) -> object:
        """Return the number of the file: a reader sees what is committed to it."""
        status = self.files.database.stat()
        return status.st_dev, status.st_ino

    def version(self) -> object:
        """Return what changes in the database and its log with each commit."""
        files = [self.files.database.stat()]
        with suppress(FileNotFoundError):
            files.append(self.files.write_ahead_log.stat())
        # Readers make an empty log, which says nothing.
        return [(each.st_dev, each.st_ino, each.st_mtime_ns, each.st_size) for each in files if each.st_size]

    def open(self, clock: Clock) -> Opened:
        """Take the lock, and open the database."""
        files = self.files
        try:
            files.make_directory()
        except OSError as error:
            why = f"({error.strerror}). Choose a directory that you may write to"
            raise StorageError(f"{files.directory} cannot be created {why}.") from None
        lock = AgentLock(files.lock)
        is_new = not files.database.exists()
        try:
            if (lock.had_owner or files.index.exists()) and not files.database.exists():
                raise StorageError(
                    f"{files.directory} had a pager.db and has none: the memory itself is gone. Restore a backup of "
                    "the directory, or remove it to begin anew."
                )
            files.make_private()
            store = Store(files.database, clock)
            lock.write_owner(clock)
        except BaseException:
            if is_new:
                files.remove_database()
            lock.release()
            raise
        return Opened(store, files.index, self.commands, lock.release)

    def read(self, clock: Clock) -> Opened:
        """Open the database, while another process may be writing it."""
        try:
            exists = self.exists()
        except OSError as error:
            why = f"cannot be read ({error.strerror}). Give another directory"
            raise StorageError(f"{self.files.directory} {why}.") from None
        if not exists:
            raise NoAgentError(f"there is no memory in {self.files.directory}; Memory.open makes one.")
        return Opened(Store(self.files.database, clock, read_only=True), self.files.index, self.commands, lambda: None)

    def restore(self, at: datetime, aside: "Directory") -> None:
        """Refuse: a directory has no past."""
        way = "restore a backup of the directory, or import what `selfpager export` wrote"
        raise RejectedError(
            f"{self.name} is a directory, which keeps no earlier states; {way}. A home in Postgres keeps them."
        )

    def change_key(self, clock: Clock) -> int:
        """Refuse: files are encrypted by the disk that they are on. `serve` shows this text, so it names no path."""
        way = "put the home on an encrypted disk, or move the agent into a home in Postgres"
        raise RejectedError(f"this agent is a directory, which selfpager does not encrypt; {way}.")

    def copy_to(self, file: Path) -> None:
        """Copy what is committed, while another process may be writing it."""
        pending = inbox.pack(self.commands)  # before the copy, as in an export
        copy_database(self.files.database, file, pending)

    def owner(self) -> dict[str, Any] | None:
        """Return who holds the lock."""
        return current_owner(self.files.lock)

    def set_due(self, clock: Clock) -> None:
        """Note it in the home, the directory around this one."""
        home_files.set_due(self.files.directory.parent, self.agent, clock.now())

    @property
    def commands(self) -> Commands:
        """Return the files in the inbox."""
        return CommandFiles(self.files)

    def helper(self, call_id: str) -> Place:
        """Return a directory within this one."""
        return Directory(self.files.helper(call_id).directory)

    def helpers(self) -> list[Place]:
        """Return the directories of the helpers that have a memory."""
        return [Directory(each.directory) for each in self.files.of_helpers()]

    def beside(self, name: str) -> Place:
        """Return the directory of that name beside this one, or beside the one that this helper works for."""
        own = self.files.owner
        return Directory(own.parent / same_tenant(own.name, name))

    @property
    def directory(self) -> Path:
        """Return the directory of the agent that this one works for, and those above it; else its own."""
        return self.files.owner

    def remove(self, clock: Clock) -> None:
        """Delete the directory, once nobody else has it open."""
        opened = self.open(clock)
        opened.store.close()
        opened.release()
        self.discard()

    def discard(self) -> None:
        """Delete the directory."""
        shutil.rmtree(self.files.directory, ignore_errors=True)


def same_tenant(own: str, name: str) -> str:
    """Return the name in the home of another agent of the tenant to which an agent belongs, if it has one."""
    tenant, between, _ = own.partition(OF_TENANT)
    found = f"{tenant}{between}{name}" if between else name
    if not NAME.fullmatch(found):  # no command would reach it
        raise RejectedError(f"{name!r} is too long for an agent of {tenant}: {found!r} has more than 64 characters.")
    return found


def tenant_of(name: str) -> str:
    """Return the tenant to which an agent belongs; "" if to none."""
    tenant, between, _ = name.partition(OF_TENANT)
    return tenant if between else ""


def without_tenant(name: str) -> str:
    """Return what an agent is called among those of its tenant."""
    return name.rpartition(OF_TENANT)[2]


class Places(ABC):
    """A home: the places of agents by their names, which are valid ones."""

    address: str  # for people, without a password

    @abstractmethod
    def names(self, begin: str, limit: int | None, tenant: str | None) -> list[str]:
        """Return names of agents, sorted: from `begin` on, at most `limit`, those of a tenant ("" for none) or all."""

    @abstractmethod
    def place(self, name: str) -> Place:
        """Return where an agent of this name is, or would be."""

    @abstractmethod
    def aside(self, name: str) -> Directory:
        """Return an empty directory in which an agent is made, before `install` puts it into its place."""

    @abstractmethod
    def install(self, aside: Directory, name: str) -> None:
        """Put an agent that was made aside, and is closed, into its place. Raises OSError, StorageError."""

    @abstractmethod
    def wrap_keys(self) -> tuple[int, int]:
        """Wrap the keys of all agents with the newest master key. Return how many were, and how many there are."""

    # beside the agents

    @abstractmethod
    def value(self, key: str) -> str | None:
        """Return a value that a program keeps for the whole home; None if there is none."""

    @abstractmethod
    def change_value(self, key: str, change: Callable[[str | None], str]) -> str:
        """Replace a value by what `change` makes of it, while no other process changes it. Return it."""

    @abstractmethod
    def set_due(self, name: str, now: datetime, at: datetime | None) -> None:
        """Note when an agent wants to be visited by whoever works for the agents here; None if never."""

    @abstractmethod
    def take_due(self, now: datetime, limit: int) -> list[str]:
        """Return agents that want to be visited now, also those whose owner has died at work."""

    @abstractmethod
    def begin_work(self, name: str, now: datetime) -> None:
        """Note that an agent begins something that somebody else has to go on with if this process dies."""

    @abstractmethod
    def end_work(self, name: str, now: datetime, due: datetime | None, *, takes_messages: bool, visited: bool) -> None:
        """Note when an agent wants to be visited next: at once if messages wait that it would take."""

    @abstractmethod
    def advertise(self, url: str) -> None:
        """Let others know where this process takes requests for the agents that it has open."""

    @abstractmethod
    def failure(self) -> str | None:
        """Return why this process could not commit a moment ago, in a few words; None if it could."""


class Directories(Places):
    """A directory with a directory for each agent."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = str(path)

    def names(self, begin: str, limit: int | None, tenant: str | None) -> list[str]:
        """Return the names of the directories with a memory."""
        found = sorted(path.parent.name for path in self._path.glob("*/pager.db") if path.is_file())
        named = [name for name in found if name >= begin and NAME.fullmatch(name)]
        return [name for name in named if tenant is None or tenant_of(name) == tenant][:limit]

    def place(self, name: str) -> Place:
        """Return the directory of that name."""
        return Directory(self._path / name)

    def aside(self, name: str) -> Directory:
        """Return a directory beside it."""
        made = Directory(self._path / f".{name}.import")
        made.discard()
        made.files.make_directory()
        return made

    def install(self, aside: Directory, name: str) -> None:
        """Rename the directory."""
        aside.files.directory.rename(self._path / name)
        foreign_files.sync_directory(self._path)

    def wrap_keys(self) -> tuple[int, int]:
        """Refuse: directories have no keys."""
        raise RejectedError(f"{self.address} is a directory, whose agents selfpager does not encrypt.")

    def value(self, key: str) -> str | None:
        """Read a file."""
        return home_files.read_value(self._path, key)

    def change_value(self, key: str, change: Callable[[str | None], str]) -> str:
        """Replace a file."""
        return home_files.change_value(self._path, key, change)

    def set_due(self, name: str, now: datetime, at: datetime | None) -> None:
        """Write a file, or delete it."""
        home_files.set_due(self._path, name, at)

    def take_due(self, now: datetime, limit: int) -> list[str]:
        """Return those whose files say so, who has waited longest first. The files stay until the work has ended."""
        waiting = sorted((at, name) for name, at in home_files.due(self._path).items() if at <= now)
        return [name for _, name in waiting[:limit]]

    def begin_work(self, name: str, now: datetime) -> None:
        """Want a visit at once, until the work has ended."""
        self.set_due(name, now, now)

    def end_work(self, name: str, now: datetime, due: datetime | None, *, takes_messages: bool, visited: bool) -> None:
        """Look for messages after the file was written: one that comes now writes it again."""
        self.set_due(name, now, due)
        if takes_messages and self.place(name).commands.ids():
            self.set_due(name, now, now)

    def advertise(self, url: str) -> None:
        """Do nothing: one process has the directory."""

    def failure(self) -> None:
        """Return None: the next one is tried anew."""
