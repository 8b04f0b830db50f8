"""Commands that other processes send to the process that has an agent open: a message, an edit from a debug view.

In a directory a command is a file, written under another name, synced and renamed; elsewhere `Commands` says what it
is. The owner commits its id together with its effect, then deletes it. One whose id is stored already had its effect,
and is only deleted.

    >>> command = send_command(directory, "message", {"text": "stop after this step"}, clock)
"""

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Protocol, cast

from pager.arguments import require_path
from pager.blocks import clean, dump
from pager.clock import Clock, SystemClock, to_micros
from pager.errors import RejectedError, StorageError, brief
from pager.safety import foreign_files
from pager.store import Store
from pager.store.files import AgentFiles

REJECTED = "rejected"  # the folder for files that are no commands
PACKED_KEY = "inbox"  # where an exported database holds the commands that were pending
ARGUMENTS: dict[str, tuple[set[str], set[str]]] = {  # kind -> (required, optional)
    "message": ({"text"}, {"name"}),
    "core_append": ({"block", "text"}, {"source", "via"}),
    "core_replace": ({"block", "old_text", "new_text"}, {"source", "via"}),
    "archive": ({"text"}, {"key", "tags", "valid_from", "valid_until", "source", "via"}),
    "forget": ({"page_id", "reason"}, {"source", "via"}),
    "forget_source": ({"source"}, {"since"}),
    "pin": ({"page_id"}, {"offset"}),
    "page_out": ({"page_id"}, set()),
    "sleep_apply": ({"sleep"}, {"edits"}),
    "sleep_refuse": ({"sleep"}, {"edits"}),
    "sleep_undo": ({"sleep"}, set()),
}
LISTS = ("tags", "edits", "via")
Apply = Callable[[str, dict[str, Any]], None]
_numbers = count()  # no id is used twice, even while the clock stands still


class Commands(Protocol):
    """The pending commands of one agent, by their ids."""

    def ids(self) -> list[str]:
        """Return the ids of pending commands, oldest first. Called at every step, when nearly always there are none."""
        ...

    def read(self, command: str) -> str:
        """Return the text of a command. Raises OSError or ValueError for what is no command."""
        ...

    def new_id(self, sent: str) -> str:
        """Return the id of a new command, which nobody else uses. `sent` is unique among those of this machine."""
        ...

    def write(self, command: str, text: str) -> None:
        """Store a command."""
        ...

    def drop(self, command: str) -> None:
        """Delete a command, if it is there."""
        ...

    def set_aside(self, command: str) -> str | None:
        """Move away what is no command. Return its name; None if that cannot be done, or was done."""
        ...

    def erase(self, erase: Callable[[str], str | None]) -> set[str]:
        """Put every command through `erase`, which returns None if nothing is left. Return the names of the changed."""
        ...


def send_command(directory: str | Path, kind: str, arguments: Mapping[str, Any], clock: Clock | None = None) -> str:
    """Leave a command for the owner of the agent in `directory`. Return its id."""
    return send(CommandFiles(AgentFiles(require_path(directory, "the agent's directory"))), kind, arguments, clock)


def send(
    commands: Commands, kind: str, arguments: Mapping[str, Any], clock: Clock | None = None, command: str = ""
) -> str:
    """Leave a command for the owner of an agent. Return its id: a new one, or `command`, which `new_id` has made."""
    _validate(kind, arguments)
    text = dump(clean({"kind": kind, "arguments": dict(arguments)}))
    command = command or new_id(commands, clock)
    commands.write(command, text)
    return command


def new_id(commands: Commands, clock: Clock | None = None) -> str:
    """Return the id of a command that is sent now."""
    sent = f"{to_micros((clock or SystemClock()).now()):020d}-{os.getpid()}-{next(_numbers):06d}"
    return commands.new_id(sent)


def pending_commands(directory: str | Path) -> list[dict[str, Any]]:
    """Return the commands that were not applied yet, oldest first, with their ids."""
    return pending(CommandFiles(AgentFiles(Path(directory))))


def pending(commands: Commands) -> list[dict[str, Any]]:
    """Return the commands that were not applied yet, oldest first, with their ids."""
    found: list[dict[str, Any]] = []
    for command, text in _read_pending(commands):
        with suppress(ValueError, TypeError, RecursionError):  # no command: `Inbox.process` sets it aside
            found.append({**json.loads(text), "id": _printable(command)})
    return found


def pending_edits(commands: Commands) -> list[str]:
    """Return the ids of the commands that wait and are no messages."""
    return [command["id"] for command in pending(commands) if command.get("kind") != "message"]


def pack(commands: Commands) -> dict[str, str]:
    """Return the pending commands as stored values for a copy of the database. `Inbox.unpack` stores them again."""
    found = [(f"{command}.json", text) for command, text in _read_pending(commands)]
    return {PACKED_KEY: dump(found)} if found else {}


def _read_pending(commands: Commands) -> Iterator[tuple[str, str]]:
    for command in commands.ids():
        with suppress(OSError, ValueError):  # applied meanwhile, or no command
            yield command, commands.read(command)


class CommandFiles:
    """Commands as files, in a folder of the agent's directory."""

    def __init__(self, files: AgentFiles) -> None:
        self._folder = files.inbox
        self._lock = files.lock

    def ids(self) -> list[str]:
        """Return the names of the files of commands."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - three times as fast as Path.iterdir
        except OSError:
            return []
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    def read(self, command: str) -> str:
        """Return the text of a file, which has to be of this user: it takes effect as what a person said.

        A link could name any file of this user, so it is refused. So is what others could have moved here.
        """
        foreign_files.refuse_others(self._folder, self._folder.stat())
        return foreign_files.read_bytes(self._path(command), follow_link=False, own_only=True).decode()

    def new_id(self, sent: str) -> str:
        """Return the name of its file."""
        return sent

    def write(self, command: str, text: str) -> None:
        """Write a command under another name, and rename it."""
        folder, path = self._folder, self._path(command)
        try:
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)  # another process may make it just now
                foreign_files.sync_directory(folder.parent)
            foreign_files.refuse_others(folder, folder.stat())
            aside = path.with_suffix(".tmp")
            aside.unlink(missing_ok=True)  # of a process that was killed here
            with open(aside, "xb", opener=foreign_files.private) as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            aside.rename(path)
            foreign_files.sync_directory(folder)
        except OSError as error:
            way = "Check the rights on it, and its free space"
            raise StorageError(f"the command cannot be written to {folder}: {error.strerror}. {way}.") from None

    def drop(self, command: str) -> None:
        """Delete the file of a command."""
        self._path(command).unlink(missing_ok=True)

    def set_aside(self, command: str) -> str | None:
        """Move a file into a folder of its own."""
        path = self._path(command)
        if not os.path.lexists(path):
            return None
        folder = self._folder / REJECTED
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            path.rename(folder / path.name)
        except OSError:
            return None  # it does no harm where it is; the next step tries again
        return path.name

    def erase(self, erase: Callable[[str], str | None]) -> set[str]:
        """Erase in commands, and delete other files that hold the text, or a piece of it because they are half written
        since before this process has the agent open."""
        found, since = set[str](), self._lock.stat().st_mtime
        for file in sorted(self._folder.rglob("*")):
            with suppress(FileNotFoundError):  # its writer has just renamed it
                if file.is_symlink() or not file.is_file():
                    continue  # what is behind a link is not in the home
                if file.suffix == ".tmp" and file.stat().st_mtime < since:
                    file.unlink()
                elif self._erase_in(file, erase):
                    found.add(file.name)
        return found

    def _erase_in(self, file: Path, erase: Callable[[str], str | None]) -> bool:
        try:
            raw = foreign_files.read_bytes(file).decode("utf-8", "replace")
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            file.unlink()  # no command is so large, and it may hold the text
            return True
        cleaned = erase(raw)
        if cleaned == raw:
            return False
        if cleaned is None or file.suffix != ".json" or file.parent != self._folder:
            file.unlink()
            return True
        aside = file.with_suffix(".tmp")
        with open(aside, "wb", opener=foreign_files.private) as opened:
            opened.write(cleaned.encode())
        aside.replace(file)
        return True

    def _path(self, command: str) -> Path:
        return self._folder / f"{command}.json"


def _validate(kind: Any, arguments: Any) -> None:
    if not isinstance(kind, str) or kind not in ARGUMENTS:
        raise RejectedError(f"{kind!r} is no command; there are {', '.join(sorted(ARGUMENTS))}.")
    required, optional = ARGUMENTS[kind]
    names = set(cast("Mapping[str, Any]", arguments)) if isinstance(arguments, Mapping) else set[str]()
    if not required <= names <= required | optional:
        more = ", ".join(sorted(optional)) or "nothing else"
        raise RejectedError(f"{kind} takes {', '.join(sorted(required))}; may have {more}.")
    for name, value in cast("Mapping[str, Any]", arguments).items():
        if not _fits(name, value):
            shape = {"offset": "a whole number", **dict.fromkeys(LISTS, "a list of texts")}.get(name, "a text")
            raise RejectedError(f"{name} of {kind} is {shape}, not {brief(value)}.")


def _fits(name: str, value: Any) -> bool:
    if name in LISTS:
        return isinstance(value, list | tuple) and all(isinstance(tag, str) for tag in cast("Sequence[Any]", value))
    if name == "offset":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) or (value is None and name in ("key", "name", "since", "valid_from"))


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Inbox:
    """The owner's side of the inbox."""

    def __init__(self, commands: Commands, store: Store, clock: Clock) -> None:
        self._commands = commands
        self._store = store
        self._clock = clock

    def process(self, apply: Apply, takes_messages: Callable[[], bool]) -> int:
        """Apply each pending command exactly once; messages wait until they are taken. Return how many."""
        applied = 0
        for name in self._commands.ids():
            try:
                command = json.loads(self._commands.read(name))
                kind, arguments = command["kind"], command["arguments"]
                _validate(kind, arguments)
            except (OSError, ValueError, KeyError, TypeError, RecursionError, RejectedError) as error:
                self._set_aside(name, str(error))
                continue
            if kind != "message" or takes_messages():
                applied += self._process(name, kind, arguments, apply)
        return applied

    def has_message(self) -> bool:
        """Return True if a message is pending."""
        return any(command.get("kind") == "message" for command in pending(self._commands))

    def unpack(self) -> None:
        """Store the commands that an imported copy holds. Those that it knows as applied are only deleted."""
        packed = self._store.settings.get(PACKED_KEY)
        if packed is None:
            return
        try:
            for name, text in json.loads(packed):
                if not re.fullmatch(r"[^./\0][^/\0]*\.json", name):
                    raise ValueError(f"{brief(name, 80)} is no name of a command's file")
                self._commands.write(name.removesuffix(".json"), text)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            why = f"holds pending commands that cannot be read ({error}), so it is damaged"
            raise StorageError(f"{self._store.path} {why}. Restore a backup, or export again.") from error
        with self._store.transaction():
            self._store.settings.put(PACKED_KEY, None)

    def _process(self, command: str, kind: str, arguments: dict[str, Any], apply: Apply) -> bool:
        """Return True if the command had its effect now. It is deleted after the commit, maybe the caller's."""
        name, outcome = _printable(command), "done"
        is_new = self._store.settings.command(name) is None
        if is_new:
            with self._store.transaction():
                try:
                    with self._store.transaction():
                        apply(kind, arguments)
                except (RejectedError, OverflowError, ValueError, TypeError, AttributeError) as error:
                    outcome = f"refused: {error}"  # also unforeseen errors: one command never blocks those behind it
                self._store.settings.save_command(name, to_micros(self._clock.now()), kind, outcome)
                self._store.ledger.write("command", reason=outcome, actor="person", kind=kind, command=name)
        self._store.after_commit(lambda: self._commands.drop(command))
        return is_new

    def _set_aside(self, command: str, reason: str) -> None:
        file = self._commands.set_aside(command)
        if file is not None:
            text = f"a file in the inbox is no command and was set aside: {reason}"
            self._store.ledger.write("error", reason=text, file=_printable(file))
