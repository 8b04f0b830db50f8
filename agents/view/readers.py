"""The agents of a home, kept open for reading while a page shows them. They may run, end, or be replaced."""

from collections import deque
from collections.abc import Mapping
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

from agents.config import embedders
from agents.explain.figures import figures
from agents.explain.json_form import to_json
from pager.errors import PagerError
from pager.home import MESSAGE, CommandOutcome, Home
from pager.reader import MemoryReader
from pager.types import Json

MOST_REFUSED = 5
MOST_OPEN = 64  # readers, of three files each
MOST_FIGURES = 1000  # agents whose figures are kept
MOST_RETIRED = 4  # readers that were replaced a moment ago


class OpenReader(NamedTuple):
    """A reader, the file that it reads, and its number: revisions are comparable within one opening only."""

    reader: MemoryReader
    file: object  # see Place.identity
    opening: int


class Readers:
    """The open readers of a home, and the commands sent from here. Every call may come from any thread."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._open: dict[tuple[str, bool], OpenReader] = {}
        self._retired: deque[OpenReader] = deque()
        self._openings = count(1)
        self._open_lock = Lock()
        self._edit_lock = Lock()
        self._figures: dict[str, tuple[object, Json]] = {}  # of each agent at a version of its place
        self._sent: dict[str, list[Json]] = {}  # commands from here that were not applied: id, kind, arguments

    def reader(self, name: str) -> MemoryReader:
        """Return the reader of an agent, as it is now. It is opened once, and again if its file is another one."""
        return self._opened(name).reader

    def searcher(self, name: str) -> MemoryReader:
        """Return a reader with the embedder of the agent, which searches as the agent does."""
        return self._opened(name, searches=True).reader

    def revision(self, name: str) -> str:
        """Return a text that differs after every commit."""
        opened = self._opened(name)
        return f"{opened.opening}.{opened.reader.revision()}"

    def _opened(self, name: str, *, searches: bool = False) -> OpenReader:
        place = self.home.existing(name)
        file = place.identity()
        with self._open_lock:
            opened = self._open.get((name, searches))
            if opened is None or opened.file != file:  # another agent of that name
                if opened is not None:
                    self._retire(opened)
                elif len(self._open) >= MOST_OPEN:
                    self._retire(self._open.pop(next(iter(self._open))))
                reader = self.home.read(name, **(embedders.for_command(place, None) if searches else {}))
                opened = self._open[name, searches] = OpenReader(reader, file, next(self._openings))
        opened.reader.follow()
        return opened

    def _retire(self, opened: OpenReader) -> None:
        """Close the reader, but not at once: another thread may be about to use it."""
        self._retired.append(opened)
        if len(self._retired) > MOST_RETIRED:
            self._retired.popleft().reader.close()

    def summary(self, name: str) -> Json:
        """Return an agent's figures; if it cannot be read, why."""
        try:
            place = self.home.existing(name)
            running, version = place.owner(), place.version()
            known = self._figures.get(name)
            if known is None or known[0] != version:
                with self.home.read(
                    name, embedder=None
                ) as reader:  # closed at once: there may be more than can be open
                    known = (version, to_json(figures(reader)))
                while len(self._figures) >= MOST_FIGURES:
                    self._figures.pop(next(iter(self._figures)), None)
                self._figures[name] = known
        except PagerError as error:
            return {"name": name, "trouble": str(error)}
        except OSError as error:  # it was deleted a moment ago
            return {"name": name, "trouble": error.strerror}
        return {"name": name, "running": running, "waiting": len(self.home.pending(name)), **known[1]}

    def pending(self, name: str, *, apply: bool) -> list[Json]:
        """Return the commands that no process has taken yet. With `apply`, edits are applied first if no process runs
        the agent; messages wait for a process that answers them."""
        commands = self.home.pending(name)
        with self._edit_lock:
            edits = apply and any(command.get("kind") != MESSAGE for command in commands)
            return self.home.pending(name) if edits and self.home.apply_pending(name) else commands

    def refused(self, name: str) -> list[Json]:
        """Return the newest commands that were sent from here and then refused, with all that was typed, and why."""
        with self._edit_lock:
            sent = self._sent.get(name)
            if not sent:
                return []
            rows = list(zip(sent, self.home.outcomes(name, [command["id"] for command in sent]), strict=True))
            refused = [{**command, "why": outcome.text} for command, outcome in rows if outcome.state == "refused"]
            self._sent[name] = [command for command, outcome in rows if outcome.state != "done"][-MOST_REFUSED:]
            return refused[-MOST_REFUSED:]

    def edit(self, name: str, kind: str, arguments: Mapping[str, Any]) -> CommandOutcome:
        """Send a command to the agent and return its outcome, which is pending while another process runs the agent."""
        with self._edit_lock:
            outcome = self.home.send(name, kind, arguments)
            if outcome.state == "pending":
                sent: Json = {"id": outcome.command, "kind": kind, "arguments": arguments}
                self._sent.setdefault(name, []).append(sent)
            return outcome

    def close(self) -> None:
        """Close all readers."""
        for opened in (*self._open.values(), *self._retired):
            opened.reader.close()
