"""The agents of a home, kept open for reading while somebody looks at them. They may run, end, or be made anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from agents import edits, homes
from agents.edits import REFUSED, Outcome
from pager import inbox
from pager.clock import Clock
from pager.lock import held_by
from pager.memory import Memory
from pager.opening import DATABASE, LOCK
from pager.reading import Reading

MOST_REFUSED = 5


@dataclass(slots=True)
class Kept:
    """A reading, which file it reads, and how many were opened before it: revisions count within one opening."""

    reading: Reading
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

    def __init__(self, home: Path, clock: Clock) -> None:
        self.home = home
        self._clock = clock
        self._kept: dict[str, Kept] = {}
        self._openings = 0
        self._opening = Lock()
        self._editing = Lock()
        self._left: dict[str, dict[str, Left]] = {}  # commands from here that may wait yet, by their id
        self._refused: dict[str, list[Left]] = {}

    def names(self) -> list[str]:
        return homes.agents_in(self.home)

    def reading(self, name: str) -> Reading:
        return self._keep(name).reading

    def revision(self, name: str) -> str:
        """Another text when something was committed since."""
        kept = self._keep(name)
        return f"{kept.opening}.{kept.reading.revision()}"

    def _keep(self, name: str) -> Kept:
        directory = homes.existing(name, self.home, {})
        told = (directory / DATABASE).stat()
        file = (told.st_dev, told.st_ino)
        with self._opening:
            kept = self._kept.get(name)
            if kept is None or kept.file != file:  # an import under the name of one that was deleted is another file
                if kept is not None:
                    kept.reading.close()
                self._openings += 1
                kept = self._kept[name] = Kept(Memory.read(directory, clock=self._clock), file, self._openings)
            return kept

    # who runs it, and what waits for it

    def runner(self, name: str) -> dict[str, Any] | None:
        """The process that holds the agent now."""
        return held_by(homes.existing(name, self.home, {}) / LOCK)

    def waiting(self, name: str, *, settle: bool) -> list[dict[str, Any]]:
        """Commands that nobody has taken yet. With `settle` what was left for a process that has ended meanwhile, from
        here or by whomever, is carried out now: all but messages, which wait for who will answer them."""
        directory = homes.existing(name, self.home, {})
        known = inbox.waiting(directory)
        with self._editing:
            self._follow(name, directory, known)
            edited = settle and any(command.get("kind") != edits.MESSAGE for command in known)
            if edited and edits.settle(directory, self._clock):
                known = inbox.waiting(directory)
                self._follow(name, directory, known)
        return known

    def refused(self, name: str) -> list[Left]:
        """What was left from here and then refused, with all that was typed: the newest of it."""
        return self._refused.get(name, [])

    def _follow(self, name: str, directory: Path, known: list[dict[str, Any]]) -> None:
        """What no longer waits has had its effect, or was refused."""
        waits = {command["id"] for command in known}
        left = self._left.get(name, {})
        self._left[name] = {number: command for number, command in left.items() if number in waits}
        gone = [command for number, command in left.items() if number not in waits]
        if gone:
            told = zip(gone, edits.outcomes(directory, [command.id for command in gone]), strict=True)
            refused = [replace(command, why=what.text) for command, what in told if what.state == REFUSED]
            self._refused[name] = [*self._refused.get(name, []), *refused][-MOST_REFUSED:]

    def edit(self, name: str, kind: str, arguments: Mapping[str, Any]) -> Outcome:
        directory = homes.existing(name, self.home, {})
        with self._editing:
            outcome = edits.edit(directory, kind, arguments, self._clock)
            if outcome.state == edits.PENDING:
                self._left.setdefault(name, {})[outcome.command] = Left(outcome.command, kind, arguments)
            return outcome

    def close(self) -> None:
        for kept in self._kept.values():
            kept.reading.close()
