"""Import conversations from a file:

- one JSON value that `agents.importing.formats` reads;
- JSON lines of role and text: `{"role": "user", "text": "...", "at": "2026-05-03T14:30Z", "name": "Dana"}`;
- JSON lines of messages of another program, or of conversations (a training file).

A conversation is recognised by its text, in whatever file it stands. One that was imported before, or its beginning,
is left alone. Of one that has grown only the new end is imported, into the same session. One that was changed, or that
goes on differently, is another conversation. If the messages have times, what it shares with the first is not imported
again.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agents.importing.formats import Conversation, conversations_in, is_conversation, is_record
from agents.importing.messages import Record, is_message, records_of_message
from agents.importing.notes import read_text
from pager.errors import RejectedError
from pager.memory import Memory

IMPORTED = "history:"  # the key of a stored value: this, and the digest of a conversation up to one of its messages
BEGINNING = ""  # its value where the imported conversation went on; at its end it is the session


def import_conversations(memory: Memory, path: Path) -> int:
    """Record the new messages of a file, all or none. Return how many. Raises RejectedError with their place."""
    with memory.transaction():
        return sum(import_conversation(memory, path.name, conversation) for conversation in _read(path))


def _read(path: Path) -> Iterator[Conversation]:
    text = read_text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield from _read_lines(text, path, error)
    else:
        yield from conversations_in(value, str(path))


def _read_lines(text: str, path: Path, whole_error: Exception) -> Iterator[Conversation]:
    """Yield a conversation for each line that holds one, and one for all lines that hold messages."""
    single: list[tuple[str, Record]] = []
    is_first = True
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            if is_first:
                known = "an exported agent, conversations as JSON or JSON lines, or Markdown (.md, or a folder)"
                raise RejectedError(f"{path} is not JSON: {whole_error}. Give {known}.") from None
            raise RejectedError(f"{where}: this line is not JSON: {error}.") from None
        is_first = False
        if is_message(value):
            single += [(where, record) for record in records_of_message(value, where)]
        elif is_conversation(value):
            yield from (Conversation(str(number), found.records) for found in conversations_in(value, where))
        elif is_record(value):
            single.append((where, dict(value)))
        else:
            raise RejectedError(f"{where}: a message is an object with role and text, not {line[:60]!r}.")
    if single:
        yield Conversation("", iter(single))


def import_conversation(memory: Memory, origin: str, conversation: Conversation) -> int:
    """Record the new messages of a conversation, in a transaction of the caller. Return how many."""
    records = list(conversation.records)
    running, digests = hashlib.sha256(), list[str]()  # of each record the digest of the conversation up to it
    for _, record in records:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        running.update(text.encode("utf-8", "surrogatepass") + b"\n")
        digests.append(running.hexdigest())
    start, session = 0, ""  # how many records are there, and their session if it ended with them
    if digests and memory.load_value(f"{IMPORTED}{digests[-1]}") is not None:
        return 0
    for count in range(len(digests) - 1, 0, -1):
        known = memory.load_value(f"{IMPORTED}{digests[count - 1]}")
        if known or (known is not None and "at" in records[count - 1][1]):  # a time: it is the same, and went on twice
            start, session = count, known
            break
    session = session or ":".join(filter(None, (origin, conversation.name)))
    for where, record in records[start:]:
        try:
            memory.record_many([{"session": session, **record}], embed=False)
        except RejectedError as error:
            raise RejectedError(f"{where}: {str(error).removeprefix('message 0: ')}") from None
    if start < len(records):
        for digest in digests[max(0, start - 1) : -1]:
            memory.save_value(f"{IMPORTED}{digest}", BEGINNING)
        memory.save_value(f"{IMPORTED}{digests[-1]}", session)
    return len(records) - start
