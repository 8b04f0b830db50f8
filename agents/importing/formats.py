"""Find the conversations in a JSON value. Pure.

A conversation is one of
- messages of OpenAI or Anthropic, or with role and text: a list, or an object with `messages` and Anthropic's `system`;
- a request or response of the Responses API: `input` and `output` items, with `instructions`;
- one of an export of ChatGPT (`mapping`, of which the branch on display counts) or of claude.ai (`chat_messages`).

Several are a list of them. A message without a time gets the time of the one before it.

    >>> [conversation] = conversations_in([{"role": "user", "content": "Hello"}], "talk.json")
    >>> list(conversation.records)
    [('talk.json: message 0', {'role': 'user', 'text': 'Hello'})]
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agents.importing.messages import Record, as_list, as_object, is_message, iso_time, records_of_message, text_of
from pager.errors import RejectedError, brief

HOLDERS = ("messages", "mapping", "chat_messages", "input", "output")
START_TIMES = ("create_time", "created_at")
FORMATS = "messages of OpenAI or Anthropic, the Responses API, or an export of ChatGPT or claude.ai"


class Conversation(NamedTuple):
    """`name` distinguishes it from others of its file. Each record comes with its place, for errors."""

    name: str
    records: Iterator[tuple[str, Record]]


def is_conversation(value: Any) -> bool:
    """Return True for a conversation that is an object."""
    whole = as_object(value)
    return any(isinstance(whole.get(name), list | dict) for name in HOLDERS) or isinstance(whole.get("input"), str)


def is_record(value: Any) -> bool:
    """Return True for an object with role and text."""
    return as_object(value).keys() >= {"role", "text"}


def conversations_in(value: Any, where: str) -> Iterator[Conversation]:
    """Yield all conversations of a value in order. Raises RejectedError with the number of what cannot be read."""
    entries = as_list(value) or [value]
    if all(map(is_conversation, entries)):
        for number, entry in enumerate(entries):
            name, place = "", where
            if entries is value:
                name, place = str(entry.get("id") or entry.get("uuid") or number), f"{where}: conversation {number}"
            yield Conversation(name, _records(_messages(entry, place), entry, place))
        return
    if not (is_message(entries[0]) or is_record(entries[0])):
        raise RejectedError(f"{where} holds no known conversation ({FORMATS}). It begins with {brief(value)}.")
    yield Conversation("", _records(_numbered(entries, where), {}, where))


def _records(messages: Iterator[tuple[str, Any]], whole: Mapping[str, Any], where: str) -> Iterator[tuple[str, Record]]:
    start = next((whole[name] for name in START_TIMES if whole.get(name)), None)
    last = iso_time(start, where) if start is not None else None
    for place, message in messages:
        if not is_record(message) and not is_message(message):
            raise RejectedError(f"{place} is {brief(message)}; it has to be an object with role and content.")
        for record in [dict(message)] if is_record(message) else records_of_message(message, place):
            last = record.get("at", last)
            yield place, record if last is None else {**record, "at": last}


def _numbered(messages: Any, where: str) -> Iterator[tuple[str, Any]]:
    return ((f"{where}: message {number}", message) for number, message in enumerate(as_list(messages)))


def _messages(whole: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(whole.get("mapping"), Mapping):
        yield from _messages_of_chatgpt(whole, where)
        return
    for name in ("system", "instructions"):
        if isinstance(whole.get(name), str | list) and (text := text_of(whole[name], where)).strip():
            yield f"{where}: {name}", {"role": "system", "text": text}
    if isinstance(whole.get("chat_messages"), list):
        for place, entry in _numbered(whole["chat_messages"], where):  # claude.ai: a sender instead of a role
            message = as_object(entry)
            if not message.get("sender"):
                raise RejectedError(f"{place} is {brief(entry)}; it has to be an object with sender and text.")
            files = [*as_list(message.get("attachments")), *as_list(message.get("files"))]
            attached = [
                {"type": "document", "title": file.get("file_name"), "text": file.get("extracted_content")}
                for file in map(as_object, files)
            ]
            content = [*(as_list(message.get("content")) or [message.get("text")]), *attached]
            yield place, {"role": message["sender"], "created_at": message.get("created_at"), "content": content}
        return
    if isinstance(whole.get("input"), str):
        yield f"{where}: input", {"role": "user", "text": whole["input"]}
    for name in ("messages", "input", "output"):
        yield from _numbered(whole.get(name), where)


def _messages_of_chatgpt(whole: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """Read an export of ChatGPT: a tree of messages, of which the branch to `current_node` is on display."""
    nodes = as_object(whole["mapping"])
    name = str(whole.get("current_node"))
    if name not in nodes:  # then the newest leaf
        name = next((each for each in reversed([*nodes]) if not as_object(nodes[each]).get("children")), "")
    branch: dict[str, None] = {}  # an ordered set
    while name in nodes and name not in branch:
        branch[name] = None
        name = str(as_object(nodes[name]).get("parent"))
    for name in reversed(branch):
        message = as_object(as_object(nodes[name]).get("message"))
        author, metadata = as_object(message.get("author")), as_object(message.get("metadata"))
        if not author or metadata.get("is_visually_hidden_from_conversation"):
            continue
        content = as_object(message.get("content"))
        parts = content["parts"] if isinstance(content.get("parts"), list) else [content] if content else []
        recipient = message.get("recipient")
        called = [f"{recipient}:"] if isinstance(recipient, str) and recipient != "all" else []
        files = map(as_object, as_list(metadata.get("attachments")))
        said = [*called, *parts, *({"type": "document", "title": file.get("name")} for file in files)]
        common = {"role": author.get("role"), "create_time": message.get("create_time")}
        yield f"{where}: message {name}", {**common, "content": said}
