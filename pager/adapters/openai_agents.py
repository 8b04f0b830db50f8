"""The OpenAI Agents SDK's `Session` over a `Memory`: items are messages from elsewhere, the newest of them the window.

    from pager.adapters.openai_agents import PagerSession

    session = PagerSession("dana", memory, limit_tokens=50_000)
    config = RunConfig(call_model_input_filter=session.recall)
    result = await Runner.run(agent, "Which seat do I like?", session=session, run_config=config)

`get_items` returns the newest whole turns within `limit_tokens`. What has left that window, and every fact of the
memory, comes back with `recall`: before each call of the model it puts in front of the last message what helps with it.
What is popped or cleared is listed and found no more; only `purge` destroys it.

The SDK's own package is called `agents`, as selfpager's is: install `selfpager-memory` beside it, not `selfpager`.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from pager import Memory, Record, count_tokens
from pager.adapters import in_thread
from pager.adapters.said import text_said

NAME = "openai-agents"
READ = 200  # records read at once
ITEM_TOKENS = 8  # what the wire form of an item costs beside its text
Json = dict[str, Any]


class PagerSession:
    """One conversation of the OpenAI Agents SDK in a memory that somebody else opens and closes."""

    def __init__(
        self, session_id: str, memory: Memory, *, limit_tokens: int | None = None, session_settings: Any = None
    ) -> None:
        """Make a session. `limit_tokens` of history are returned, by default half of the memory's window."""
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._limit_tokens = memory.limits.usable_tokens // 2 if limit_tokens is None else limit_tokens
        self._session = f"{NAME}/{quote(session_id, safe='')}"

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest whole turns that fit; with `limit`, here or in the settings, just so many items."""
        limit = getattr(self.session_settings, "limit", None) if limit is None else limit
        read = self._window if limit is None or limit < 0 else partial(self._newest, limit)
        return [record.data for record in await in_thread(read)]

    async def add_items(self, items: list[Any]) -> None:
        """Store items behind the others, all or none."""
        await in_thread(self._memory.record_many, [self._message(item) for item in items])

    async def pop_item(self) -> Any:
        """Take the newest item out of the conversation. Return it; None if there is none."""
        return await in_thread(self._pop)

    async def clear_session(self) -> None:
        """Take all items out of the conversation."""
        await in_thread(self._forget, None)

    async def recall(self, data: Any) -> Any:
        """Put what the memory has for the last message in front of it: the SDK's `call_model_input_filter`."""
        items = list(data.model_data.input)
        last = next((place for place in reversed(range(len(items))) if items[place].get("role") == "user"), None)
        if last is None:
            return data.model_data
        found = await in_thread(self._recalled, text_said(items[last]))
        items[last:last] = [{"role": "user", "content": found}] if found else []
        return replace(data.model_data, input=items)

    def _recalled(self, text: str) -> str:
        resident = [record.id for record in self._window()]
        return self._memory.prefetch(text, without=resident, actor=NAME)

    def _newest(self, limit: int) -> Sequence[Record]:
        return self._memory.inspect.records(self._session, limit=limit) if limit else []

    def _window(self) -> Sequence[Record]:
        """Return the newest turns that fit, at least one, whole: no call is parted from its result."""
        found, turns, used, before = list[Record](), 0, 0, None
        while rows := self._memory.inspect.records(self._session, limit=READ, before=before):
            for record in reversed(rows):
                used += count_tokens(json.dumps(record.data, ensure_ascii=False)) + ITEM_TOKENS
                if used > self._limit_tokens and turns:
                    return found[:turns][::-1]
                found.append(record)
                turns = len(found) if record.role == "user" else turns
            before = rows[0].id
        return found[::-1]

    def _message(self, item: Any) -> Json:
        role = str(item.get("role") or item.get("type") or "item")
        return {"role": role, "text": text_said(item), "session": self._session, "data": dict(item)}

    def _pop(self) -> Any:
        with self._memory.transaction():
            return next((record.data for record in self._forget(1)), None)

    def _forget(self, limit: int | None) -> Sequence[Record]:
        with self._memory.transaction():
            records = self._memory.inspect.records(self._session, limit=limit)
            self._memory.forget_records([record.id for record in records], "taken back", actor=NAME)
        return records
