"""Commands that others leave for the process that holds the agent: a message, an edit from a debug view.

A command is a file, written aside and renamed in. The owner commits its id together with its effect, then deletes the
file; an id that is known already has had its effect, and only the file goes.

    >>> command = send_command(directory, "message", {"text": "stop after this step"}, clock)
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, cast

from pager.arguments import path_of
from pager.blocks import clean, dump
from pager.clock import Clock, to_micros
from pager.errors import RejectedError, StorageError
from pager.store import Store

FOLDER = "inbox"
REJECTED = "rejected"
PACKED = "inbox"
ARGUMENTS: dict[str, tuple[set[str], set[str]]] = {  # kind -> (needed, optional)
    "message": ({"text"}, {"name"}),
    "core_append": ({"block", "text"}, set()),
    "core_replace": ({"block", "old_text", "new_text"}, set()),
    "archive": ({"text"}, {"key", "tags", "valid_from"}),
    "forget": ({"page_id", "reason"}, set()),
    "pin": ({"page_id"}, {"offset"}),
    "page_out": ({"page_id"}, set()),
}
Apply = Callable[[str, dict[str, Any]], None]
_numbers = count()  # an id is never given twice, also while the clock stands still: the owner knows it for good


def send_command(directory: str | Path, kind: str, arguments: Mapping[str, Any], clock: Clock) -> str:
    """Leave a command for the owner of the agent in `directory`; its id."""
    _validate(kind, arguments)
    folder = path_of(directory, "the agent's directory") / FOLDER
    text = dump(clean({"kind": kind, "arguments": dict(arguments)}))
    at = to_micros(clock.now())
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{at:020d}-{os.getpid()}-{next(_numbers):06d}"
        aside = folder / f"{name}.tmp"
        with aside.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(folder / f"{name}.json")
        return name
    except OSError as error:
        raise StorageError(
            f"the command could not be left in {folder}: {error.strerror}. Check its rights and space."
        ) from None


def pending_commands(directory: str | Path) -> list[dict[str, Any]]:
    """Commands that have not been taken yet, oldest first, with their ids."""
    found: list[dict[str, Any]] = []
    for path in _files(Path(directory) / FOLDER):
        try:
            found.append({**json.loads(path.read_text(encoding="utf-8")), "id": _printable(path.stem)})
        except (OSError, ValueError, TypeError, RecursionError):
            continue  # taken meanwhile, or not ours: `Inbox.take` sets it aside
    return found


def packed(directory: Path) -> dict[str, str]:
    """What waits, as single values of a copy of the database; `Inbox.unpack` makes files of them again."""
    found: list[tuple[str, str]] = []
    for path in _files(directory / FOLDER):
        try:
            found.append((path.name, path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError):
            continue  # taken meanwhile, or no command
    return {PACKED: dump(found)} if found else {}


def _files(folder: Path) -> list[Path]:
    """What lies there. Asked at every step, and nearly always there is nothing."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - the other way takes three times as long
    except OSError:
        return []
    return sorted(folder / name for name in names if name.endswith(".json"))


def _validate(kind: Any, arguments: Any) -> None:
    if not isinstance(kind, str) or kind not in ARGUMENTS:
        raise RejectedError(f"{kind!r} is no command; there are {', '.join(sorted(ARGUMENTS))}.")
    needed, optional = ARGUMENTS[kind]
    given = set(cast("Mapping[str, Any]", arguments)) if isinstance(arguments, Mapping) else set[str]()
    if not needed <= given <= needed | optional:
        raise RejectedError(
            f"{kind} takes {', '.join(sorted(needed))}; may have {', '.join(sorted(optional)) or 'nothing else'}."
        )
    for name, value in cast("Mapping[str, Any]", arguments).items():
        if not _fits(name, value):
            shape = {"tags": "a list of texts", "offset": "a whole number"}.get(name, "a text")
            raise RejectedError(f"{name} of {kind} is {shape}, not {value!r:.100}.")


def _fits(name: str, value: Any) -> bool:
    if name == "tags":
        return isinstance(value, list | tuple) and all(isinstance(tag, str) for tag in cast("Sequence[Any]", value))
    if name == "offset":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) or (value is None and name in ("key", "name", "valid_from"))


def _printable(name: str) -> str:
    """A file's name, also when its bytes are no text."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Inbox:
    """The owner's side. `apply` carries one command out; `may_speak` says whether a message may come now."""

    def __init__(self, directory: Path, store: Store, clock: Clock) -> None:
        self._folder = directory / FOLDER
        self._store = store
        self._clock = clock

    def take(self, apply: Apply, *, may_speak: bool) -> int:
        """Carry out what waits, each exactly once; how many took effect now."""
        taken = 0
        for path in _files(self._folder):
            try:
                command = json.loads(path.read_text(encoding="utf-8"))
                kind, arguments = command["kind"], command["arguments"]
                _validate(kind, arguments)
            except (OSError, ValueError, KeyError, TypeError, RecursionError, RejectedError) as error:
                self._set_aside(path, str(error))
                continue
            if kind == "message" and not may_speak:
                continue
            taken += self._take(path, kind, arguments, apply)
        return taken

    def unpack(self) -> None:
        """Of an imported copy: what waited for its owner waits again; what was taken meanwhile has its effect once."""
        held = self._store.settings.get(PACKED)
        if held is None:
            return
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for name, text in json.loads(held):
                with (self._folder / Path(name).name).open("w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(
                f"{self._folder} cannot be written ({error.strerror}). Check its rights and space."
            ) from None
        with self._store.transaction():
            self._store.settings.put(PACKED, None)

    def _take(self, path: Path, kind: str, arguments: dict[str, Any], apply: Apply) -> bool:
        """The file goes when its effect is committed, which in a caller's transaction is later."""
        name = _printable(path.stem)
        fresh = self._store.settings.command(name) is None
        if fresh:
            with self._store.transaction():
                outcome = self._outcome(kind, arguments, apply)
                self._store.settings.save_command(name, to_micros(self._clock.now()), kind, outcome)
                self._store.ledger.write("command", reason=outcome, actor="person", kind=kind, command=name)
        self._store.after_commit(lambda: path.unlink(missing_ok=True))
        return fresh

    def _outcome(self, kind: str, arguments: dict[str, Any], apply: Apply) -> str:
        try:
            with self._store.transaction():
                apply(kind, arguments)
        except (RejectedError, OverflowError, ValueError, TypeError, AttributeError) as error:
            return f"refused: {error}"  # also what nobody has thought of: one command never blocks those behind it
        return "done"

    def _set_aside(self, path: Path, why: str) -> None:
        if not path.exists():
            return
        aside = path.parent / REJECTED
        try:
            aside.mkdir(mode=0o700, exist_ok=True)
            path.rename(aside / path.name)
        except OSError:
            return  # it stays and harms nobody; the next step tries again
        self._store.ledger.write(
            "error", reason=f"a file in the inbox is no command and was set aside: {why}", file=_printable(path.name)
        )
