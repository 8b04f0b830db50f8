"""Agents in Postgres: the places that `Home` opens for an address, and the commands that wait there."""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path
from typing import Any

from pager.clock import Clock
from pager.errors import AgentLostError, InUseError, NewerFormatError, NoAgentError
from pager.log.cache import Cache, root
from pager.log.claim import Claim
from pager.log.commands import CommandRows, seal_commands
from pager.log.copy import Copy
from pager.log.home_rows import HomeRows
from pager.log.log import Log
from pager.log.postgres import Server
from pager.log.rows import Rows
from pager.log.states import Content
from pager.store import Store
from pager.store.files import AgentFiles
from pager.store.maintenance import copy_database
from pager.store.schema import VERSION
from pager.upkeep import inbox
from pager.upkeep.inbox import CommandFiles, Commands
from pager.upkeep.lock import PAUSES_SECONDS
from pager.upkeep.place import Directory, Opened, Place, Places, same_tenant


class Agents(Places):
    """The agents in the Postgres at an address."""

    def __init__(self, address: str) -> None:
        self._server = Server.at(address)
        self._rows = Rows(self._server)
        self._home = HomeRows(self._rows)
        self.address = self._server.public

    def names(self, begin: str, limit: int | None, tenant: str | None) -> list[str]:
        """Return the names of agents that are not helpers."""
        return self._rows.names(begin, limit, tenant)

    def place(self, name: str) -> Place:
        """Return the place of that name."""
        return PostgresPlace(self._rows, name)

    def aside(self, name: str) -> Directory:
        """Return a directory of this process."""
        return _Aside(Cache(), name)

    def install(self, aside: Directory, name: str) -> None:
        """Upload the databases of the agent and its helpers, with the commands that still wait."""
        self._rows.states.upload(_contents(aside.files, name))

    def wrap_keys(self) -> tuple[int, int]:
        """Wrap the key of each encrypted agent."""
        return self._rows.keys.wrap_again()

    def value(self, key: str) -> str | None:
        """Read a row."""
        return self._home.value(key)

    def change_value(self, key: str, change: Callable[[str | None], str]) -> str:
        """Replace a row."""
        return self._home.change_value(key, change)

    def set_due(self, name: str, now: datetime, at: datetime | None) -> None:
        """Note it in the agent's row."""
        self._home.set_due(name, now, at)

    def take_due(self, now: datetime, limit: int) -> list[str]:
        """Take rows that are due on Postgres' clock."""
        return self._home.take_due(limit)

    def begin_work(self, name: str, now: datetime) -> None:
        """Note it with the next renewal: if this process dies, the lease that it leaves says the rest."""
        self._server.at_work.add(name)

    def end_work(self, name: str, now: datetime, due: datetime | None, *, takes_messages: bool, visited: bool) -> None:
        """Note it, if it is not noted already."""
        self._server.at_work.discard(name)
        self._home.end_work(name, now, due, takes_messages=takes_messages, was_visited=visited)

    def advertise(self, url: str) -> None:
        """Name the address in every claim from now on."""
        self._server.advertised = url

    def failure(self) -> str | None:
        """Return what Postgres said to the last commit."""
        return self._server.failure


def _contents(files: AgentFiles, name: str) -> Iterator[Content]:
    commands = CommandFiles(files)
    yield Content(name, files.database, {command: commands.read(command) for command in commands.ids()})
    for helper in files.of_helpers():
        yield from _contents(helper, f"{name}/{helper.directory.name}")


class _Aside(Directory):
    """A directory that is not kept."""

    def __init__(self, cache: Cache, name: str) -> None:
        super().__init__(cache.path / name)
        self._cache = cache
        self.files.make_directory()

    def discard(self) -> None:
        """Delete the directory."""
        self._cache.close()


class PostgresPlace(Place):
    """One agent's rows."""

    def __init__(self, rows: Rows, name: str) -> None:
        self._rows = rows
        self._row_name = name
        self.name = f"{rows.server.public}/{name}"
        self.agent = name.rpartition("/")[2]
        self.works_for = name.partition("/")[0]

    def exists(self) -> bool:
        """Return True if anything was committed."""
        state = self._rows.state(self._row_name)
        return state is not None and state.seq > 0

    def is_taken(self) -> bool:
        """Return True if there is an agent, or one is being made."""
        state = self._rows.state(self._row_name)
        return state is not None and (state.seq > 0 or state.owner is not None)

    def identity(self) -> object:
        """Return the name: a reader follows whatever has it."""
        return self._row_name

    def version(self) -> object:
        """Return the number of the last commit."""
        state = self._rows.state(self._row_name)
        return None if state is None else (state.agent, state.seq)

    def open(self, clock: Clock) -> Opened:
        """Claim the agent, restore it, and log every commit from then on."""
        claim = self._claim(clock)
        cache: Cache | None = None
        log: Log | None = None
        try:
            cache = Cache()
            files = AgentFiles(cache.path)
            state = self._rows.state(self._row_name)
            states = self._rows.states
            restored = states.restore(claim.agent, files.database) if state and state.seq else states.begin(claim)
            log = Log(self._row_name, self._rows, claim, restored)
            store = Store(files.database, clock, log=log)
        except BaseException:
            self._give_back(claim, log, cache)
            raise
        release = lambda: self._give_back(claim, log, cache)  # noqa: E731
        return Opened(store, files.index, CommandRows(self._rows, claim.agent, restored.box, log), release)

    def _give_back(self, claim: Claim, log: Log | None, cache: Cache | None) -> None:
        self._rows.server.at_work.discard(self._row_name)
        try:
            log.close() if log else self._rows.release(claim)
        finally:
            if cache:
                cache.close()

    def _claim(self, clock: Clock, wait: Callable[[float], object] = time.sleep) -> Claim:
        """Claim the agent, which is made if there is none. Wait half a second for who has it only for a moment."""
        self._rows.create(self._row_name)
        owner = {
            "pid": os.getpid(), "host": socket.gethostname(), "command": _program(sys.argv),
            "since": clock.now().isoformat("T", "seconds"), "url": self._rows.server.advertised,
            "worker": self._rows.server.worker,
        }  # fmt: skip
        for pause in (*PAUSES_SECONDS, 0):
            if claim := self._rows.claim(self._row_name, owner):
                return claim
            state = self._rows.state(self._row_name)
            if state and state.format > VERSION:
                known = f"this selfpager knows formats up to {VERSION}"
                raise NewerFormatError(f"{self.name} has format {state.format}; {known}. Install a newer selfpager.")
            if state is None:  # it was removed, or given back empty, a moment ago
                self._rows.create(self._row_name)
            wait(pause)
        raise InUseError(self._in_use())

    def _in_use(self) -> str:
        state = self._rows.state(self._row_name)
        who, ends = "another process", ""
        if state and state.owner:
            owner = state.owner
            who = f"process {owner['pid']} on {owner['host']} ({owner['command']}, since {owner['since']})"
            ends = (
                f" If that one has died, its lease ends in {max(0.0, state.lease_seconds):.0f} seconds: try again then."
            )
        way = "close that one, send it a message, or open the agent for reading"
        return f"{self.name} is in use by {who}. Only one process can write to an agent: {way}.{ends}"

    def read(self, clock: Clock) -> Opened:
        """Restore a copy of what was last committed, which then follows its owner."""
        cache = Cache()
        copy: Copy | None = None
        try:
            files = AgentFiles(cache.path)
            copy = Copy(self._rows, self._row_name, files.database)
            store = Store(files.database, clock, read_only=True)
        except BaseException:
            self._drop(copy, cache)
            raise
        commands, release = CommandRows(self._rows, copy.agent), lambda: self._drop(copy, cache)
        return Opened(store, files.index, commands, release, copy.follow, copy.attend)

    def _drop(self, copy: Copy | None, cache: Cache) -> None:
        cache.close()
        if copy:
            copy.close()

    def copy_to(self, file: Path) -> None:
        """Restore a copy of what was last committed, and copy that."""
        state, pending = self._rows.state(self._row_name), inbox.pack(self.commands)
        if state is None:
            raise NoAgentError(f"there is no memory in {self.name}.")
        with closing(Cache()) as cache:
            database = AgentFiles(cache.path).database
            self._rows.states.restore(state.agent, database)
            copy_database(database, file, pending)

    def restore(self, at: datetime, aside: Directory) -> None:
        """Restore an earlier state, as far back as `keep_days` reaches."""
        state = self._rows.state(self._row_name)
        if state is None or not state.seq:
            raise NoAgentError(f"there is no memory in {self.name}.")
        self._rows.states.restore(state.agent, aside.files.database, at)

    def change_key(self, clock: Clock) -> int:
        """Seal all rows of the agent and its helpers anew, in one transaction. Their past is dropped.

        No command comes in meanwhile. Those that are sent afterwards are sealed with the new key: see `CommandRows`.
        """
        with ExitStack() as claimed:
            names = [self._row_name, *self._rows.names_below(self._row_name, deep=True)]
            claims = list[Claim]()
            for name in names:  # all of them, before anything is changed
                claims.append(PostgresPlace(self._rows, name)._claim(clock))
                claimed.callback(self._rows.release, claims[-1])
            cache = claimed.enter_context(closing(Cache()))
            files = [cache.path / str(claim.agent) for claim in claims]
            held = [self._rows.states.restore(claim.agent, file) for claim, file in zip(claims, files, strict=True)]
            boxes = [each.box for each in held]
            with self._rows.server.transaction() as transaction:
                self._rows.keys.replace(transaction, claims[0].agent)
                for claim, restored, file in zip(claims, held, files, strict=True):
                    self._rows.states.seal_anew(transaction, claim, restored, file)
                # From here on nobody sends a command, to any agent: it is the short part.
                transaction.rows("LOCK TABLE selfpager.commands IN SHARE ROW EXCLUSIVE MODE")
                for claim, restored, old in zip(claims, held, boxes, strict=True):
                    seal_commands(transaction, claim.agent, old, restored.box)
        self._rows.keys.forget_past()
        return len(claims)

    def owner(self) -> dict[str, Any] | None:
        """Return who claimed it, while the lease lasts."""
        state = self._rows.state(self._row_name)
        return None if state is None else state.owner

    def set_due(self, clock: Clock) -> None:
        """Note it in its row."""
        now = clock.now()
        HomeRows(self._rows).set_due(self._row_name, now, now)

    @property
    def commands(self) -> Commands:
        """Return the commands in its rows."""
        state = self._rows.state(self._row_name)
        if state is None:
            raise NoAgentError(f"there is no agent {self.name}.")
        return CommandRows(self._rows, state.agent)

    def helper(self, call_id: str) -> Place:
        """Return an agent whose name begins with that of this one."""
        return PostgresPlace(self._rows, f"{self._row_name}/{AgentFiles(Path()).helper(call_id).directory.name}")

    def helpers(self) -> list[Place]:
        """Return the helpers that have a memory."""
        return [PostgresPlace(self._rows, name) for name in self._rows.names_below(self._row_name)]

    def beside(self, name: str) -> Place:
        """Return another agent of the same tenant."""
        return PostgresPlace(self._rows, same_tenant(self._row_name.partition("/")[0], name))

    @property
    def directory(self) -> Path:
        """Return the directory of all copies of this user."""
        return root()

    def remove(self, clock: Clock) -> None:
        """Claim the agent, and delete its rows, those of its helpers, and its key."""
        claim = self._claim(clock)
        had_key = self._rows.keys.has(claim.agent)
        if not self._rows.remove(self._row_name, claim):
            raise AgentLostError(f"{self.name} was claimed by another process meanwhile; nothing was removed.")
        if had_key:
            self._rows.keys.forget_past()

    def discard(self) -> None:
        """Delete its rows, if nobody has it open."""
        if claim := self._rows.claim(self._row_name, {"pid": os.getpid(), "host": "", "command": "", "since": ""}):
            self._rows.remove(self._row_name, claim)


def _program(arguments: Sequence[str]) -> str:
    """Return which program this is, and which command of ours. Its other arguments may be a message, or a password."""
    words = (word for word in arguments[1:] if word.isalpha() and word.islower())
    program = Path(arguments[0]).name[:100] if arguments else ""
    return " ".join((program, next(words, ""))).strip() if program == "selfpager" else program
