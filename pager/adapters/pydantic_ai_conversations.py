"""PydanticAI's `ConversationStore` over a `Memory`: entries are messages from elsewhere, each stored once.

    from pager.adapters.pydantic_ai_conversations import PagerConversationStore

    store = PagerConversationStore(memory)
    conversation = await store.load("dana") or Conversation(conversation_id="dana")
    await store.save(await agent.run("which seat do I like?", conversation=conversation))

What a person or the model said is found by every search of this memory. A deleted conversation is listed and found no
more, nor are entries that no fork shares; only `purge` destroys them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from pager import Memory
from pager.adapters import in_thread, require

theirs: Any = require("pydantic_ai.conversation_store", "pydantic-ai-slim>=2.68")
wire: Any = require("pydantic_ai.messages", "pydantic-ai-slim>=2.68").ModelMessagesTypeAdapter
NAME = "pydantic-ai"
ENTRY = f"{NAME}:entry:"  # and its id -> its page, and the entry before it
ROLES = {"request": "user", "response": "assistant"}
SAID = ("user-prompt", "text")  # kinds of parts that a person or the model said


class PagerConversationStore(theirs.ConversationStore):
    """Conversations of PydanticAI in a memory that somebody else opens and closes."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._form: Any = require("pydantic", "pydantic").TypeAdapter(theirs.ConversationRecord)

    async def read_record(self, conversation_id: str) -> Any:
        """Return the record of a conversation; None if there is none."""
        return await in_thread(self._record, _session(conversation_id))

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[Any]:
        """Return the records, those of a scope if one is given, newest first."""
        found = [each for each in await in_thread(self._records) if scope is None or each.scope == scope]
        return sorted(found, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(self, record: Any, *, new_entries: Any = (), expected_revision: str | None) -> None:
        """Store a record and its new entries, all or none, if nobody has stored another one since."""
        await in_thread(self._write, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Take a conversation out, with the entries that no other one reaches."""
        await in_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> Any:
        """Return an entry. Raises LookupError if there is none."""
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[Any]:
        """Return the entries up to a head in their order, or the last of them."""
        return await in_thread(lambda: list(islice(self._entries(head_id), limit))[::-1])

    def _record(self, session: str) -> Any:
        stored = self._memory.load_value(session)
        return self._form.validate_json(stored) if stored else None

    def _records(self) -> list[Any]:
        with self._memory.read_snapshot():
            found = [self._record(each.name) for each in self._memory.inspect.sessions(_session(""))]
        return [record for record in found if record is not None]

    def _checked(self, conversation_id: str, revision: str | None) -> Any:
        stored = self._record(_session(conversation_id))
        if (stored and stored.revision) == revision:
            return stored
        raise theirs.ConversationConflict(conversation_id)

    def _write(self, record: Any, entries: list[Any], revision: str | None) -> None:
        session = _session(record.conversation_id)
        with self._memory.transaction():
            if self._checked(record.conversation_id, revision) is None:
                self._memory.record("conversation", "", session=session, data={})  # so that it is listed
            new = {None, *(entry.id for entry in entries)}
            if record.head_id not in new and not self._memory.load_value(ENTRY + record.head_id):
                raise theirs.ConversationConflict(record.conversation_id)
            pages = self._memory.record_many([_message(entry, session) for entry in entries])
            for entry, page in zip(entries, pages, strict=True):
                self._memory.save_value(ENTRY + entry.id, f"{page} {entry.parent_id or ''}")
            self._memory.save_value(session, self._form.dump_json(record).decode())

    def _delete(self, conversation_id: str, revision: str) -> None:
        with self._memory.transaction():
            record = self._checked(conversation_id, revision)
            self._memory.save_value(_session(conversation_id), None)
            rest, gone = self._records(), self._reached([record])
            if record.forked_from or any(each.forked_from for each in rest):
                gone = {entry: gone[entry] for entry in gone.keys() - self._reached(rest).keys()}
            marks = [each.id for each in self._memory.inspect.records(_session(conversation_id)) if not each.data]
            self._memory.forget_records([*marks, *gone.values()], "the conversation was deleted", actor=NAME)
            for entry in gone:
                self._memory.save_value(ENTRY + entry, None)

    def _reached(self, records: Iterable[Any]) -> dict[str, str]:
        tips = [tip for record in records for tip in (record.head_id, *record.branches)]
        return {entry: page for tip in tips for entry, page, _ in self._back_from(tip)}

    def _entries(self, entry_id: str | None) -> Iterator[Any]:
        for entry, page, parent in self._back_from(entry_id):
            if not self._memory.inspect.step(page).purged:
                [message] = wire.validate_python(self._memory.history.blocks_of(page)[0]["data"]["messages"])
                yield theirs.ConversationEntry(id=entry, parent_id=parent or None, message=message)

    def _back_from(self, entry_id: str | None) -> Iterator[tuple[str, str, str]]:
        while entry_id:
            if (stored := self._memory.load_value(ENTRY + entry_id)) is None:
                raise LookupError(f"there is no entry {entry_id!r} in this memory.")
            page, _, parent = stored.partition(" ")
            yield entry_id, page, parent
            entry_id = parent


def _session(conversation_id: str) -> str:
    return f"{NAME}/{quote(conversation_id, safe='')}"


def _message(entry: Any, session: str) -> dict[str, Any]:
    [message] = stored = wire.dump_python([entry.message], mode="json")
    said = [part["content"] for part in message["parts"] if part["part_kind"] in SAID]
    listed = [each for content in said for each in ([content] if isinstance(content, str) else content)]
    texts = [each if isinstance(each, str) else each.get("content") for each in listed]
    text, role = "\n".join(each for each in texts if isinstance(each, str)), ROLES[message["kind"]]
    return {"role": role, "text": text, "session": session, "at": entry.message.timestamp, "data": {"messages": stored}}
