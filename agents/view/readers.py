"""The agents of a home, kept open for reading while somebody looks at them. They may run, end, or be made anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from pager.home import MESSAGE, CommandOutcome, Home
from pager.reader import MemoryReader

MOST_REFUSED = 5


@dataclass(slots=True)
class Kept:
    """A reading, which file it reads, and how many were opened before it: revisions count within one opening."""

    reading: MemoryReader
    file: tuple[int, int]
    opening: int


@dataclass(slots=True)
class Left:
    """A command that was left from here for the agent's process, and why that refused it."""

    id: str
    kind: str
    arguments: Mapping[str, Any]
    why: str = ""


class Readers:
    """Every call may come from any thread."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._kept: dict[str, Kept] = {}
        self._openings = 0
        self._opening = Lock()
        self._editing = Lock()
        self._left: dict[str, dict[str, Left]] = {}  # commands from here that may wait yet, by their id
        self._refused: dict[str, list[Left]] = {}

    def names(self) -> list[str]:
        return self.home.names()

    def reading(self, name: str) -> MemoryReader:
        return self._keep(name).reading

    def revision(self, name: str) -> str:
        """Another text when something was committed since."""
        kept = self._keep(name)
        return f"{kept.opening}.{kept.reading.revision()}"

    def _keep(self, name: str) -> Kept:
        told = self.home.existing(name).database.stat()
        file = (told.st_dev, told.st_ino)
        with self._opening:
            kept = self._kept.get(name)
            if kept is None or kept.file != file:  # an import under the name of one that was deleted is another file
                if kept is not None:
                    kept.reading.close()
                self._openings += 1
                kept = self._kept[name] = Kept(self.home.read(name), file, self._openings)
            return kept

    # who runs it, and what waits for it

    def runner(self, name: str) -> dict[str, Any] | None:
        """The process that holds the agent now."""
        return self.home.owner(name)

    def waiting(self, name: str, *, settle: bool) -> list[dict[str, Any]]:
        """Commands that nobody has taken yet. With `settle` what was left for a process that has ended meanwhile, from
        here or by whomever, is carried out now: all but messages, which wait for who will answer them."""
        known = self.home.pending(name)
        with self._editing:
            self._follow(name, known)
            edited = settle and any(command.get("kind") != MESSAGE for command in known)
            if edited and self.home.apply_pending(name):
                known = self.home.pending(name)
                self._follow(name, known)
        return known

    def refused(self, name: str) -> list[Left]:
        """What was left from here and then refused, with all that was typed: the newest of it."""
        return self._refused.get(name, [])

    def _follow(self, name: str, known: list[dict[str, Any]]) -> None:
        """What no longer waits has had its effect, or was refused."""
        waits = {command["id"] for command in known}
        left = self._left.get(name, {})
        self._left[name] = {number: command for number, command in left.items() if number in waits}
        gone = [command for number, command in left.items() if number not in waits]
        if gone:
            told = zip(gone, self.home.outcomes(name, [command.id for command in gone]), strict=True)
            refused = [replace(command, why=what.text) for command, what in told if what.state == "refused"]
            self._refused[name] = [*self._refused.get(name, []), *refused][-MOST_REFUSED:]

    def edit(self, name: str, kind: str, arguments: Mapping[str, Any]) -> CommandOutcome:
        with self._editing:
            outcome = self.home.send(name, kind, arguments)
            if outcome.state == "pending":
                self._left.setdefault(name, {})[outcome.command] = Left(outcome.command, kind, arguments)
            return outcome

    def close(self) -> None:
        for kept in self._kept.values():
            kept.reading.close()
