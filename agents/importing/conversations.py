"""Conversations as others keep them, out of one JSON value. Pure.

A conversation is one of
- messages in the format of OpenAI or Anthropic: a list, or an object that holds them as `messages` (a request's body, a
  line of a training file), with Anthropic's `system`;
- a request or a response of the Responses API: `input` and `output` items, with `instructions`; or a chat completion,
  whose first choice was shown;
- one of the export of ChatGPT (`mapping`: the branch that is shown) or of claude.ai (`chat_messages`).

Several are a list of them. A turn without a time is given that of the one before it, if that has one.

    >>> [found] = conversations([{"role": "user", "content": "Hello"}], "talk.json")
    >>> list(found.turns)
    [('talk.json: message 0', {'role': 'user', 'text': 'Hello'})]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from agents.importing.messages import Turn, is_message, items, members, moment, of_message, text_of, turn
from pager.errors import RejectedError

HOLDERS = ("messages", "mapping", "chat_messages", "input", "output", "choices")
BEGINNINGS = ("create_time", "created_at", "created")
FORMS = "messages of OpenAI or Anthropic, the Responses API, or an export of ChatGPT or claude.ai"


class Conversation(NamedTuple):
    """`name` tells it from others of its file; each turn comes with where it stands."""

    name: str
    turns: Iterator[tuple[str, Turn]]


def is_conversation(value: Any) -> bool:
    """Whether this is one conversation in an object of its own."""
    if not isinstance(value, Mapping):
        return False
    held = cast("Mapping[str, Any]", value)
    return any(isinstance(held.get(name), list | dict) for name in HOLDERS) or isinstance(held.get("input"), str)


def is_turn(value: Any) -> bool:
    return isinstance(value, Mapping) and {"role", "text"} <= cast("Mapping[str, Any]", value).keys()


def conversations(value: Any, where: str) -> Iterator[Conversation]:
    """All conversations of a value, in order; what cannot be read is `RejectedError`, with its number."""
    if is_conversation(value):
        yield Conversation("", _timed(_turns(value, where), value, where))
        return
    entries = cast("list[Any]", value if isinstance(value, list) else [value])
    if entries and all(is_conversation(each) for each in entries):
        for number, each in enumerate(entries):
            at = f"{where}: conversation {number}"
            yield Conversation(str(each.get("id") or each.get("uuid") or number), _timed(_turns(each, at), each, at))
        return
    if not entries or not (is_message(entries[0]) or is_turn(entries[0])):
        raise RejectedError(f"{where} holds no conversation that is known: {FORMS}. It begins with {value!r:.100}.")
    yield Conversation("", _timed(_of_messages(entries, where), {}, where))


def _timed(turns: Iterator[tuple[str, Turn]], whole: Any, where: str) -> Iterator[tuple[str, Turn]]:
    held = cast("Mapping[str, Any]", whole)
    begun = next((held[name] for name in BEGINNINGS if held.get(name)), None)
    last = moment(begun, where) if begun is not None else None
    for place, each in turns:
        last = each.get("at", last)
        yield place, each if last is None else {**each, "at": last}


def _turns(whole: Mapping[str, Any], where: str) -> Iterator[tuple[str, Turn]]:
    if isinstance(whole.get("mapping"), Mapping):
        yield from _of_chatgpt(whole, where)
        return
    for name in ("system", "instructions"):
        if whole.get(name) and isinstance(whole[name], str | list):
            yield from ((f"{where}: {name}", each) for each in turn({"role": "system"}, text_of(whole[name], where)))
    if isinstance(whole.get("chat_messages"), list):
        yield from _of_claude(whole["chat_messages"], where)
        return
    if isinstance(whole.get("input"), str):
        yield f"{where}: input", {"role": "user", "text": whole["input"]}
    for name in ("messages", "input", "output"):
        if isinstance(whole.get(name), list):
            yield from _of_messages(whole[name], where)
    if items(whole.get("choices")):
        yield from _of_messages([members(whole["choices"][0]).get("message")], where)


def _of_messages(messages: list[Any], where: str) -> Iterator[tuple[str, Turn]]:
    for number, message in enumerate(messages):
        place = f"{where}: message {number}"
        if is_turn(message):
            yield place, dict(message)
        elif is_message(message):
            yield from ((place, each) for each in of_message(message, place))
        else:
            raise RejectedError(f"{place} is {message!r:.100}; it has to be an object with role and content.")


def _of_claude(messages: list[Any], where: str) -> Iterator[tuple[str, Turn]]:
    """claude.ai: a sender instead of a role; the text of what was attached beside the message."""
    for number, each in enumerate(messages):
        place = f"{where}: message {number}"
        message = members(each)
        if not message.get("sender"):
            raise RejectedError(f"{place} is {each!r:.100}; it has to be an object with sender and text.")
        attached: list[Any] = [
            {
                "type": "document",
                "title": members(file).get("file_name"),
                "text": members(file).get("extracted_content"),
            }
            for name in ("attachments", "files")
            for file in items(message.get(name))
        ]
        content = [*(items(message.get("content")) or [message.get("text")]), *attached]
        known = {"role": message["sender"], "created_at": message.get("created_at"), "content": content}
        yield from ((place, found) for found in of_message(known, place))


def _of_chatgpt(whole: Mapping[str, Any], where: str) -> Iterator[tuple[str, Turn]]:
    """ChatGPT: a tree of messages, of which the branch to `current_node` is what its person sees."""
    nodes = members(whole["mapping"])
    for name in _branch(nodes, whole.get("current_node")):
        place = f"{where}: message {name}"
        message = members(members(nodes[name]).get("message"))
        author = members(message.get("author"))
        if not author or members(message.get("metadata")).get("is_visually_hidden_from_conversation"):
            continue
        held = members(message.get("content"))
        content = held["parts"] if isinstance(held.get("parts"), list) else [held] if held else []
        attached = [
            {"type": "document", "title": members(file).get("name")}
            for file in items(members(message.get("metadata")).get("attachments"))
        ]
        to = message.get("recipient")
        called = [f"{to}:"] if isinstance(to, str) and to != "all" else []
        said = [*called, *items(content), *attached]
        known = {"role": author.get("role"), "content": said, "create_time": message.get("create_time")}
        yield from ((place, each) for each in of_message(known, place))


def _branch(nodes: Mapping[str, Any], last: Any) -> list[str]:
    """From the root to `last`; without it to the newest of all leaves."""
    name = str(last)
    if name not in nodes:
        name = next((each for each in reversed([*nodes]) if not members(nodes[each]).get("children")), "")
    names: list[str] = []
    while name in nodes and name not in names:
        names.append(name)
        name = str(members(nodes[name]).get("parent"))
    return names[::-1]
