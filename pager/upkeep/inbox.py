"""Commands that other processes send to the process that has an agent open: a message, an edit from a debug view.

A command is a file, written under another name, synced and renamed. The owner commits its id together with its effect,
then deletes the file. A file whose id is stored already had its effect, and is only deleted.

    >>> command = send_command(directory, "message", {"text": "stop after this step"}, clock)
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, cast

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
    "core_append": ({"block", "text"}, set()),
    "core_replace": ({"block", "old_text", "new_text"}, set()),
    "archive": ({"text"}, {"key", "tags", "valid_from", "valid_until"}),
    "forget": ({"page_id", "reason"}, set()),
    "forget_source": ({"source"}, {"since"}),
    "pin": ({"page_id"}, {"offset"}),
    "page_out": ({"page_id"}, set()),
    "sleep_apply": ({"sleep"}, {"edits"}),
    "sleep_refuse": ({"sleep"}, {"edits"}),
    "sleep_undo": ({"sleep"}, set()),
}
Apply = Callable[[str, dict[str, Any]], None]
_numbers = count()  # no id is used twice, even while the clock stands still


def send_command(directory: str | Path, kind: str, arguments: Mapping[str, Any], clock: Clock | None = None) -> str:
    """Leave a command for the owner of the agent in `directory`. Return its id."""
    _validate(kind, arguments)
    folder = AgentFiles(require_path(directory, "the agent's directory")).inbox
    text = dump(clean({"kind": kind, "arguments": dict(arguments)}))
    name = f"{to_micros((clock or SystemClock()).now()):020d}-{os.getpid()}-{next(_numbers):06d}"
    _write(folder, f"{name}.json", text)
    return name


def _write(folder: Path, name: str, text: str) -> None:
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700)
            foreign_files.sync_directory(folder.parent)
        foreign_files.refuse_others(folder, folder.stat())
        aside = (folder / name).with_suffix(".tmp")
        aside.unlink(missing_ok=True)  # of a process that was killed here
        with open(aside, "xb", opener=foreign_files.private) as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        aside.rename(folder / name)
        foreign_files.sync_directory(folder)
    except OSError as error:
        way = "Check the rights on it, and its free space"
        raise StorageError(f"the command cannot be written to {folder}: {error.strerror}. {way}.") from None


def pending_commands(directory: str | Path) -> list[dict[str, Any]]:
    """Return the commands that were not applied yet, oldest first, with their ids."""
    found: list[dict[str, Any]] = []
    for path, text in _read_pending(AgentFiles(Path(directory)).inbox):
        with suppress(ValueError, TypeError, RecursionError):  # no command: `Inbox.process` sets it aside
            found.append({**json.loads(text), "id": _printable(path.stem)})
    return found


def pack(folder: Path) -> dict[str, str]:
    """Return the pending commands as stored values for a copy of the database. `Inbox.unpack` makes files of them."""
    found = [(path.name, text) for path, text in _read_pending(folder)]
    return {PACKED_KEY: dump(found)} if found else {}


def _read_pending(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in _command_files(folder):
        with suppress(OSError, UnicodeDecodeError):  # applied meanwhile, or no command
            yield path, _read(path)


def _read(path: Path) -> str:
    """Return the text of a command's file, which has to be of this user: it takes effect as what a person said.

    A link could name any file of this user, so it is refused. So is what others could have moved here.
    """
    foreign_files.refuse_others(path.parent, path.parent.stat())
    return foreign_files.read_bytes(path, follow_link=False, own_only=True).decode()


def _command_files(folder: Path) -> list[Path]:
    """Return the files of commands. Called at every step, when nearly always there are none."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - three times as fast as Path.iterdir
    except OSError:
        return []
    return sorted(folder / name for name in names if name.endswith(".json"))


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
            shape = {"offset": "a whole number", **dict.fromkeys(("tags", "edits"), "a list of texts")}.get(
                name, "a text"
            )
            raise RejectedError(f"{name} of {kind} is {shape}, not {brief(value)}.")


def _fits(name: str, value: Any) -> bool:
    if name in ("tags", "edits"):
        return isinstance(value, list | tuple) and all(isinstance(tag, str) for tag in cast("Sequence[Any]", value))
    if name == "offset":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) or (value is None and name in ("key", "name", "since", "valid_from"))


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Inbox:
    """The owner's side of the inbox."""

    def __init__(self, directory: Path, store: Store, clock: Clock) -> None:
        self._folder = AgentFiles(directory).inbox
        self._store = store
        self._clock = clock

    def process(self, apply: Apply, takes_messages: Callable[[], bool]) -> int:
        """Apply each pending command exactly once; messages wait until they are taken. Return how many."""
        applied = 0
        for path in _command_files(self._folder):
            try:
                command = json.loads(_read(path))
                kind, arguments = command["kind"], command["arguments"]
                _validate(kind, arguments)
            except (OSError, ValueError, KeyError, TypeError, RecursionError, RejectedError) as error:
                self._set_aside(path, str(error))
                continue
            if kind != "message" or takes_messages():
                applied += self._process(path, kind, arguments, apply)
        return applied

    def unpack(self) -> None:
        """Make files of the commands that an imported copy holds. Those that it knows as applied are only deleted."""
        packed = self._store.settings.get(PACKED_KEY)
        if packed is None:
            return
        try:
            for name, text in json.loads(packed):
                if not re.fullmatch(r"[^./\0][^/\0]*\.json", name):
                    raise ValueError(f"{brief(name, 80)} is no name of a command's file")
                _write(self._folder, name, text)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            why = f"holds pending commands that cannot be read ({error}), so it is damaged"
            raise StorageError(f"{self._store.path} {why}. Restore a backup, or export again.") from error
        with self._store.transaction():
            self._store.settings.put(PACKED_KEY, None)

    def _process(self, path: Path, kind: str, arguments: dict[str, Any], apply: Apply) -> bool:
        """Return True if the command had its effect now. Its file is deleted after the commit, maybe the caller's."""
        name, outcome = _printable(path.stem), "done"
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
        self._store.after_commit(lambda: path.unlink(missing_ok=True))
        return is_new

    def _set_aside(self, path: Path, reason: str) -> None:
        if not os.path.lexists(path):
            return
        folder = path.parent / REJECTED
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            path.rename(folder / path.name)
        except OSError:
            return  # it does no harm where it is; the next step tries again
        text = f"a file in the inbox is no command and was set aside: {reason}"
        self._store.ledger.write("error", reason=text, file=_printable(path.name))
