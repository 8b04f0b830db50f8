"""The Claude Agent SDK's `SessionStore` over a `Memory`: transcripts are messages from elsewhere.

    from pager.adapters.claude_agent import PagerSessionStore

    options = ClaudeAgentOptions(session_store=PagerSessionStore(memory))

Every entry of a transcript is stored as it is, and comes back as it is. What a person or the model said in it is found
by every search of this memory. A deleted session is listed and found no more; only `purge` destroys it.
"""

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from pager import Memory
from pager.adapters import in_thread, require
from pager.adapters.said import moment_said, text_said

NAME = "claude-agent"
SPEAKERS = ("user", "assistant")
Json = dict[str, Any]


class PagerSessionStore:
    """Sessions of the Claude Agent SDK in a memory that somebody else opens and closes."""

    def __init__(self, memory: Memory) -> None:
        """Make a store."""
        self._memory = memory
        self._uuids: dict[str, tuple[int, set[str]]] = {}  # of a session: how many entries it has, and their ids

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Store entries behind those of the session; one with a known `uuid` is stored already."""
        await in_thread(self._append, key, entries)

    async def load(self, key: Any) -> list[Any] | None:
        """Return all entries of a session; None if it has none."""
        return await in_thread(self._load, _session(key)) or None

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the sessions of a project, each with the time at which it was written last."""
        summaries = await self.list_session_summaries(project_key)
        return [{"session_id": each["session_id"], "mtime": each["mtime"]} for each in summaries]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """Return the summaries of a project's sessions, as the SDK folds them."""
        return await in_thread(self._summaries, f"{NAME}/{quote(project_key, safe='')}/")

    async def delete(self, key: Any) -> None:
        """Take a session out of every list and search, with the transcripts of its subagents."""
        await in_thread(self._delete, key)

    async def list_subkeys(self, key: Any) -> list[str]:
        """Return the subpaths of a session."""
        prefix = f"{_session(key, main=True)}/"
        found = await in_thread(self._memory.inspect.sessions, prefix)
        return [each.name.removeprefix(prefix) for each in found]

    def _append(self, key: Any, entries: Iterable[Any]) -> None:
        session = _session(key)
        with self._memory.transaction():
            known = self._known(session)
            fresh: list[Any] = []
            for entry in entries:
                if "uuid" not in entry or entry["uuid"] not in known:
                    fresh.append(entry)
                    known |= {entry["uuid"]} if "uuid" in entry else set()
            if not fresh:
                return
            self._memory.record_many([_message(entry, session) for entry in fresh])
            if key.get("subpath") is None:
                self._fold(session, key, fresh)
        count = self._uuids.get(session, (0, known))[0] + len(fresh)
        self._uuids[session] = (count, known)

    def _known(self, session: str) -> set[str]:
        """Return the ids of a session's entries: those of the last time, if nobody else has written since."""
        count = next((each.count for each in self._memory.inspect.sessions(session) if each.name == session), 0)
        if count != self._uuids.get(session, (-1, None))[0]:
            self._uuids[session] = (count, {entry["uuid"] for entry in self._load(session) if "uuid" in entry})
        return set(self._uuids[session][1])

    def _fold(self, session: str, key: Any, entries: list[Any]) -> None:
        stored = self._memory.load_value(session)
        before: Json | None = json.loads(stored) if stored else None
        folded: Json = require("claude_agent_sdk", "claude-agent-sdk").fold_session_summary(before, key, entries)
        now = int(self._memory.now().timestamp() * 1000)
        folded["mtime"] = max(now, before["mtime"] + 1 if before else 0)  # later than every time before
        self._memory.save_value(session, json.dumps(folded))

    def _load(self, session: str) -> list[Json]:
        return [record.data for record in self._memory.inspect.records(session) if record.data is not None]

    def _summaries(self, prefix: str) -> list[Any]:
        with self._memory.read_snapshot():
            mains = [each.name for each in self._memory.inspect.sessions(prefix) if "/" not in each.name[len(prefix) :]]
            return [json.loads(stored) for name in mains if (stored := self._memory.load_value(name))]

    def _delete(self, key: Any) -> None:
        session = _session(key)
        with self._memory.transaction():
            below = [] if "subpath" in key else [each.name for each in self._memory.inspect.sessions(f"{session}/")]
            ids = [record.id for name in (session, *below) for record in self._memory.inspect.records(name)]
            self._memory.forget_records(ids, "the session was deleted", actor=NAME)
            self._memory.save_value(session, None)


def _session(key: Any, *, main: bool = False) -> str:
    name = "/".join((NAME, quote(key["project_key"], safe=""), quote(key["session_id"], safe="")))
    return name if main or key.get("subpath") is None else f"{name}/{key['subpath']}"


def _message(entry: Any, session: str) -> Json:
    """Return an entry as a record, with the text that is found if somebody said it."""
    said = entry["type"] in SPEAKERS and not (entry.get("isMeta") or entry.get("isCompactSummary"))
    text = text_said(entry.get("message")) if said else ""
    at = moment_said(entry.get("timestamp"))
    return {"role": entry["type"], "text": text, "session": session, "at": at, "data": dict(entry)}
