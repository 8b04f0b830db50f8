"""What the model says: replies that a test scripts, the odd ones included.

    Reply("Hello.")
    Reply(thinking("which tool?"), call("archive", {"text": "likes windows"}))
    Reply.empty(), Reply.cut_call("archive", {"text": "like"}), Reply.pause("hats"), Reply.same_ids(...)

Signatures and ids are given when the stand-in says it. What is longer than the request allows is cut, as a model is.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from agents.models import replies

Block = dict[str, Any]


def thinking(text: str = "", *, tokens: int | None = None) -> Block:
    """`tokens` when more was thought than is shown; with an empty text that is the usual case."""
    return {"type": "thinking", "thinking": text, "tokens": tokens}


def redacted_thinking(*, tokens: int = 50) -> Block:
    return {"type": "redacted_thinking", "tokens": tokens}


def call(name: str, arguments: dict[str, Any] | None = None, *, call_id: str | None = None) -> Block:
    """A call of one of our tools. Without an id it gets one that no other call has."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}


def server_call(name: str, arguments: dict[str, Any] | None = None, *, call_id: str | None = None) -> Block:
    return {**call(name, arguments, call_id=call_id), "type": "server_tool_use"}


def search_result(call_id: str | None = None, **pages: str) -> Block:
    """The answer of the web search: to the last server call of the same reply, or to the one that is named. `pages`
    are texts that only the provider reads, by their hosts (with _ for the dot)."""
    found = [
        {"type": "web_search_result", "url": f"https://{(host := name.replace('_', '.'))}/", "title": host,
         "encrypted_content": sealed(f"https://{host}/", text), "page_age": None}
        for name, text in pages.items()
    ]  # fmt: skip
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": found}


def sealed(url: str, text: str) -> str:
    """A text that only this provider reads, with what shows that it stands unchanged at its address."""
    proof = blake2b(f"{url} {text}".encode(), digest_size=16).digest()
    return base64.b64encode(proof + text.encode()).decode()


def unsealed(url: str, content: str) -> str | None:
    """The text that was sealed, or None if anything of it was changed."""
    try:
        text = base64.b64decode(content, validate=True)[16:].decode()
    except ValueError:
        return None
    return text if sealed(url, text) == content else None


class Reply(replies.Reply):
    """Blocks in order (a string is a text block) and why the model stopped, with names for the odd ones."""

    @classmethod
    def empty(cls) -> Reply:
        """No content at all, and the turn is over: what models say to text behind tool results."""
        return cls()

    @classmethod
    def blank(cls, text: str = "\n\n") -> Reply:
        """A text block that may not be sent back."""
        return cls(text)

    @classmethod
    def only_thinking(cls, text: str = "", *, stop_reason: str = "end_turn") -> Reply:
        return cls(thinking(text, tokens=80), stop_reason=stop_reason)

    @classmethod
    def cut_text(cls, text: str) -> Reply:
        return cls(text, stop_reason="max_tokens")

    @classmethod
    def cut_call(cls, name: str, arguments: dict[str, Any] | None = None, *before: Block | str) -> Reply:
        """Out of tokens in the middle of a call: the arguments are what had been written."""
        return cls(*before, call(name, arguments), stop_reason="max_tokens")

    @classmethod
    def refusal(cls, *blocks: Block | str) -> Reply:
        """A refusal: empty, or with the words that were said until then."""
        return cls(*blocks, stop_reason="refusal")

    @classmethod
    def pause(cls, query: str = "news", *before: Block | str) -> Reply:
        """A long turn with a server tool is interrupted: the next request ends with this reply."""
        return cls(*before, server_call("web_search", {"query": query}), stop_reason="pause_turn")

    @classmethod
    def window_exceeded(cls, *blocks: Block | str) -> Reply:
        return cls(*blocks, stop_reason="model_context_window_exceeded")

    @classmethod
    def stopped_by(cls, sequence: str, *blocks: Block | str) -> Reply:
        return cls(*blocks, stop_reason="stop_sequence", stop_sequence=sequence)

    @classmethod
    def same_ids(cls, *calls: Block, call_id: str = "call_0") -> Reply:
        """Calls that all have one id, as some servers of local models send them. `Standin(duplicate_ids=True)`."""
        return cls(*({**each, "id": call_id} for each in calls))


def cut(blocks: tuple[Block, ...], room: int, size: Callable[[Block], int]) -> tuple[list[Block], bool]:
    """Return what of `blocks` fits into `room` tokens, and whether that is less than all."""
    kept: list[Block] = []
    for block in blocks:
        needed = size(block)
        if needed > room:
            return [*kept, *_shorten(block, room, size)], True
        kept.append(block)
        room -= needed
    return kept, False


def _shorten(block: Block, room: int, size: Callable[[Block], int]) -> list[Block]:
    kind = block["type"]
    if kind == "tool_use":
        partial = {**block, "input": {}}
        return [partial] if size(partial) <= room else []
    if kind == "redacted_thinking" or (kind == "thinking" and block.get("tokens") is not None):
        return [{**block, "tokens": room}] if room > 0 else []
    if kind not in ("text", "thinking"):
        return []
    text = block[kind]
    length = bisect_right(range(len(text) + 1), room, key=lambda end: size({**block, kind: text[:end]})) - 1
    return [{**block, kind: text[:length]}] if length > 0 else []
