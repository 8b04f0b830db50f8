"""The sources of what tools of another program answered, and of what its agent said after it had read that.

As in an agent of ours: pages of the web, files, commands and MCP servers are untrusted, what only wrote is not.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from agents.importing.messages import Record, as_object
from pager.safety.sources import read_source, union

WRITING = frozenset(
    {"Edit", "MultiEdit", "Write", "NotebookEdit", "TodoWrite", "write_file", "patch", "todo", "memory"}
)


class Reader:
    """Reads one session, from its beginning."""

    def __init__(self) -> None:
        self._calls: dict[str, str] = {}  # id -> the source of its result; empty: trusted
        self._read: tuple[str, ...] = ()

    def note_calls(self, calls: Iterable[tuple[Any, Any, Any]]) -> None:
        """Take note of calls: id, name and arguments of each."""
        for call_id, name, arguments in calls:
            if isinstance(call_id, str) and isinstance(name, str):
                self._calls[call_id] = source_of(name, arguments)

    def labelled(self, record: Record, results: Sequence[Any] = ()) -> Record:
        """Return a message with its untrusted sources: a result with that of its call, a reply with all before it."""
        if record["role"] == "tool":
            own = tuple(filter(None, (self._calls.get(str(each), "tool:unknown") for each in results)))
            self._read = union(self._read, own)
        else:
            own = self._read if record["role"] == "assistant" else ()
        return {**record, "source": list(own)} if own else record


def source_of(name: str, arguments: Any) -> str:
    """Return the source of what a tool answers; an empty text if it is trusted."""
    if name in WRITING:
        return ""
    given = as_object(arguments)
    if name.startswith("mcp__"):
        return _source("mcp", name.split("__")[1])
    for key, kind in (("url", "web"), ("file_path", "file"), ("path", "file")):
        if isinstance(value := given.get(key), str) and value.strip():
            return _source(kind, urlsplit(value).hostname or value if kind == "web" else value)
    return _source("web", "search") if "search" in name.lower() and "web" in name.lower() else _source("tool", name)


def _source(kind: str, name: str) -> str:
    return read_source(f"{kind}:{name}").origin
