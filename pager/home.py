"""The home of all agents, a directory or a Postgres: lists them, opens them, imports and removes them.

    >>> home = Home(directory)
    >>> with home.open("notes") as memory:
    ...     _ = memory.archive("prefers window seats")
    >>> home.names(), home.exists("notes")
    (['notes'], True)

Programs that give a directory of their own use `Memory.open(directory)` and need no home. A home in Postgres is an
address, `postgresql://user@host/database`; docs/fleet.md says what it keeps.
"""

import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from pager.arguments import require_path
from pager.clock import Clock, Moment, SystemClock, span_start
from pager.errors import InUseError, NoAgentError, RejectedError, StorageError
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.store import Store
from pager.upkeep import export as exports
from pager.upkeep import inbox
from pager.upkeep.place import NAME, Directories, Directory, Place, Places

MESSAGE = "message"
ADDRESSES = ("postgresql://", "postgres://")  # what a home in Postgres begins with
NOT_RUN = "This call came with an import and was not run."
CommandState = Literal["done", "pending", "refused"]
_MISTYPED = re.compile(r"[a-z][a-z0-9+.-]+:/|postgres(ql)?(:|//)", re.IGNORECASE)  # an address, and not one of those
SHOWN = 20  # names of agents in an error


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The state of a command that was sent to an agent. `text` says why it was refused."""

    command: str
    state: CommandState
    text: str = ""


class Home:
    """Where agents live. Every method that takes a name raises RejectedError for an impossible one."""

    def __init__(self, place: str | Path, *, clock: Clock | None = None) -> None:
        self._places = _places(place)
        self._clock = clock or SystemClock()

    @classmethod
    def locate(cls, place: "str | Path | Home | None" = None, environ: Mapping[str, str] | None = None) -> "Home":
        """Return the home at `place`, or that is given; else at $SELFPAGER_HOME, else in the user's data directory."""
        if isinstance(place, Home):
            return place
        chosen = place or (os.environ if environ is None else environ).get("SELFPAGER_HOME")
        if not chosen:
            from platformdirs import user_data_path

            chosen = user_data_path("selfpager")
        return cls(chosen)

    @property
    def address(self) -> str:
        """Return its directory or its address, without a password."""
        return self._places.address

    def names(self, *, begin: str = "", limit: int | None = None, tenant: str | None = None) -> list[str]:
        """Return the names of all agents, sorted; or a page of them, from `begin` on. With `tenant` only those of that
        one, by their names in the home; "" for those that have none."""
        return self._places.names(begin, limit, tenant)

    def exists(self, name: str) -> bool:
        """Return True if there is an agent of this name."""
        return self.place(name).exists()

    def place(self, name: str) -> Place:
        """Return where an agent of this name is, or would be."""
        check_name(name)
        return self._places.place(name)

    def existing(self, name: str) -> Place:
        """Return the place of an agent that exists. Raises NoAgentError with the names of those that do."""
        place = self.place(name)
        if place.exists():
            return place
        names = self.names(limit=SHOWN + 1)
        more = ", and more; `selfpager list` lists them" if len(names) > SHOWN else ""
        others = f"there are: {', '.join(names[:SHOWN])}{more}" if names else "no agent exists there yet"
        raise NoAgentError(f"there is no agent {name!r} in {self.address}; {others}.")

    def open(self, name: str, **options: Any) -> Memory:
        """Open an agent for writing; create it if it does not exist. Takes the options of `Memory.open`."""
        return Memory.open(self.place(name), clock=self._clock, **options)

    def read(self, name: str, **options: Any) -> MemoryReader:
        """Open an existing agent for reading. Takes the options of `MemoryReader.open`."""
        return MemoryReader.open(self.existing(name), clock=self._clock, **options)

    def remove(self, name: str) -> None:
        """Delete an agent with all that belongs to it. Raises InUseError while a process writes it."""
        self.existing(name).remove(self._clock)

    def restore(self, name: str, at: Moment, *, into: str) -> None:
        """Make another agent of an agent as it was at a moment, where the home keeps its past. A date is its beginning.

        Raises RejectedError for a moment that is in the future, or from which nothing is kept.
        """
        place, moment = self.existing(name), span_start(at, self._clock.zone)
        if moment > self._clock.now():
            raise RejectedError(f"{moment.isoformat(' ', 'seconds')} is in the future; give a time that has passed.")
        if self.place(into).is_taken():
            raise RejectedError(f"there is an agent {into!r} in {self.address} already; choose another name.")
        aside = self._places.aside(into)
        try:
            place.restore(moment, aside)
            with Memory.open(aside, embedder=None, clock=self._clock) as memory:
                if problems := memory.check():
                    raise StorageError(f"what was restored is damaged: {problems[0].text}. Nothing was kept of it.")
            self._places.install(aside, into)
        finally:
            aside.discard()

    def change_key(self, name: str) -> int:
        """Encrypt an agent and its helpers with a new key. Return how many memories these are."""
        return self.existing(name).change_key(self._clock)

    def wrap_keys(self) -> tuple[int, int]:
        """Wrap the keys of all agents with the newest master key. Return how many were, and how many there are."""
        return self._places.wrap_keys()

    def remove_if_unused(self, name: str) -> None:
        """Delete an agent in which nothing was said, stored, changed or left for later. Raises InUseError."""
        with self.read(name, embedder=None) as reader:
            events = reader.inspect.events()
            is_as_made = events.keys() <= {"core"} and events.get("core", 0) <= len(reader.core())
            untouched = is_as_made and not reader.inspect.steps(0, 1).total
        if untouched and not self.pending(name):
            self.remove(name)

    def import_file(self, file: str | Path, name: str) -> None:
        """Create an agent from an exported file. Nothing is left of it if the file is damaged."""
        file, place = require_path(file, "the file to import"), self.place(name)
        if not file.is_file():
            raise RejectedError(f"there is no file {file}.")
        if place.is_taken():
            raise RejectedError(f"there is an agent in {place.name} already; choose another name.")
        aside: Directory | None = None
        try:
            aside = self._places.aside(name)
            self._import_into(aside, file)
            self._places.install(aside, name)
        except StorageError as error:  # it names the copy, which is deleted below
            text = str(error)
            for copied in (aside.files.database, aside.files.directory) if aside else ():
                text = text.replace(str(copied), str(file))
            raise type(error)(text if str(file) in text else f"{file} cannot be imported: {text}") from error
        except OSError as error:
            way = "Check the rights and space there"
            raise StorageError(f"{file} could not be imported into {self.address}: {error.strerror}. {way}.") from None
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError, AttributeError) as error:
            why = f"it holds what no export holds ({type(error).__name__}: {error})"
            raise StorageError(f"{file} is damaged: {why}. Nothing was imported.") from error
        finally:
            if aside:
                aside.discard()

    def _import_into(self, aside: Directory, file: Path) -> None:
        files = aside.files
        exports.copy(file, files.database)
        exports.remove_checksum(files.database)
        helpers = exports.unpack_helpers(files)
        for each in (*map(Directory, (helper.directory for helper in reversed(helpers))), aside):
            self._disown(each, file)  # those below first: their agent's check reaches them

    def _disown(self, copy: Directory, file: Path) -> None:
        """Make a memory of a copy, which is data of anybody's: nothing that it says about how an agent works, or that
        somebody else began, is carried on. Raises StorageError if it is damaged."""
        with closing(Store(copy.files.database, self._clock)) as store, store.transaction():
            store.settings.disown()
            store.skills.disown()
            store.sleeps.disown()
            store.prompt.disown(store.conversation.last_step())
        with Memory.open(copy, embedder=None, clock=self._clock) as memory:
            if problems := memory.check():
                raise StorageError(f"{file} is damaged: {problems[0].text}. Nothing was imported.")
            memory.answer_interrupted()  # the effect of a call that had begun may be there
            memory.leave_turn(NOT_RUN)  # or the next start would go on
            memory.process_inbox()  # messages that were pending there are part of what was said
            memory.leave_turn(NOT_RUN)

    @staticmethod
    def is_export(file: str | Path) -> bool:
        """Return True for a file that `import_file` takes, also for a damaged one."""
        return exports.is_export(require_path(file, "the file to import"))

    @contextmanager
    def remove_if_failed(self, name: str) -> Generator[None]:
        """Delete the agent again if the block fails and there was no agent of this name before.

        Not if it fails with InUseError: then somebody else is making it.
        """
        place = self.place(name)
        existed = place.is_taken()
        try:
            yield
        except BaseException as error:
            if not existed and not isinstance(error, InUseError):
                place.discard()
            raise

    def owner(self, name: str) -> dict[str, Any] | None:
        """Return pid, command and start of the process that has the agent open for writing; None if there is none."""
        return self.existing(name).owner()

    def new_command(self, name: str) -> str:
        """Return an id with which a command can be sent again and again, and takes effect once."""
        return inbox.new_id(self.existing(name).commands, self._clock)

    def send(self, name: str, kind: str, arguments: Mapping[str, Any], command: str = "") -> CommandOutcome:
        """Send a command, which takes effect exactly once: a message when it is answered, an edit at once if it can. It
        gets an id of its own, if it has none of `new_command`."""
        command = inbox.send(self.existing(name).commands, kind, arguments, self._clock, command)
        if kind == MESSAGE:
            self.set_due(name, self._clock.now())
            return CommandOutcome(command, "pending")
        if not self.apply_pending(name):
            self.set_due(name, self._clock.now())
        return self.outcomes(name, [command])[0]

    def pending(self, name: str) -> list[dict[str, Any]]:
        """Return the commands that no process has taken yet, oldest first, with their ids."""
        return inbox.pending(self.existing(name).commands)

    def apply_pending(self, name: str) -> bool:
        """Apply pending edits, but no messages, unless a process has the agent open. Return whether that was so."""
        place = self.existing(name)
        if place.owner():
            return False
        # With the limits of its last run. Without an embedder: facts get their vectors when the agent runs.
        with self.read(name) as reader:
            limits = reader.limits
        try:
            with Memory.open(place, limits=limits, embedder=None, clock=self._clock) as memory:
                memory.process_inbox(messages=False)
        except InUseError:
            return False
        return True

    # for a server that works for the agents here

    def value(self, key: str) -> str | None:
        """Return a value that a program keeps for the whole home; None if there is none."""
        return self._places.value(key)

    def change_value(self, key: str, change: Callable[[str | None], str]) -> str:
        """Replace a value by what `change` makes of it, while no other process changes it. Return it."""
        return self._places.change_value(key, change)

    def set_due(self, name: str, at: datetime | None) -> None:
        """Note when an agent wants to be visited by whoever works for the agents here; None if never."""
        self._places.set_due(check_name(name), self._clock.now(), at)

    def take_due(self, limit: int = 100) -> list[str]:
        """Return agents that want to be visited now, also those whose owner has died at work."""
        return self._places.take_due(self._clock.now(), limit)

    def begin_work(self, name: str) -> None:
        """Note that an agent begins something that somebody else has to go on with if this process dies."""
        self._places.begin_work(name, self._clock.now())

    def end_work(self, name: str, due: datetime | None, *, takes_messages: bool, visited: bool) -> None:
        """Note when an agent wants to be visited next: at once if messages wait that it would take. It was `visited` if
        `take_due` had named it."""
        self._places.end_work(name, self._clock.now(), due, takes_messages=takes_messages, visited=visited)

    def advertise(self, url: str) -> None:
        """Let others know where this process takes requests for the agents that it has open."""
        self._places.advertise(url)

    def failure(self) -> str | None:
        """Return why nothing can be stored here, as far as this process has tried in the last half minute; else None.
        It names no place."""
        return self._places.failure()

    def outcomes(self, name: str, commands: Iterable[str]) -> list[CommandOutcome]:
        """Return the state of commands by their ids."""
        with self.read(name) as reader:
            stored = {command: reader.inspect.command(command) for command in commands}
        parts = {command: (outcome or "pending").partition(": ") for command, outcome in stored.items()}
        return [CommandOutcome(command, cast(CommandState, state), text) for command, (state, _, text) in parts.items()]


def check_name(name: str) -> str:
    """Return a name that an agent can have. Raises RejectedError for any other."""
    if not isinstance(name, str) or not NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        way = "use letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 64"
        raise RejectedError(f"{name!r} cannot be an agent's name: {way}.")
    return name


def _places(place: str | Path) -> Places:
    if isinstance(place, str) and place.startswith(ADDRESSES):
        from pager.log.place import Agents

        return Agents(place)
    if isinstance(place, str) and (found := _MISTYPED.match(place)):
        text = f"a home is a directory, or an address that begins with {ADDRESSES[0]}, and not with {found[0]!r}"
        raise RejectedError(f"{text}. Correct it; a directory of such a name can be given as ./NAME.")
    return Directories(require_path(place, "the home").expanduser())
