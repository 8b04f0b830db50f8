"""What is worth knowing about one message, one tool or one system block, found out once.

A conversation is sent again and again with one message more. So each message is looked at by its bytes: what was
seen before is known before, whoever sends it. A message whose shape the API refuses raises `Rejected` here.
"""

from __future__ import annotations

import json
import marshal
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from tests.standin import shapes
from tests.standin.errors import Rejected
from tests.standin.media import check_media
from tests.standin.reply import unsealed
from tests.standin.tokenizer import NOTHING, Counts, count_block, count_json, count_text

_THINKING = frozenset({"thinking", "redacted_thinking"})


def digest(*parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=16).digest()


def frozen(value: Any) -> bytes:
    """Return a JSON value as bytes: the same for the same value with its keys in the same order, and cheap."""
    try:
        return marshal.dumps(value, 0)
    except ValueError:
        raise TypeError(f"the request is not plain JSON: {value!r:.200}") from None


remembered = lru_cache(maxsize=5_000)  # by the bytes of what is looked at


@dataclass(frozen=True, slots=True)
class BlockFacts:
    kind: str
    content: bytes  # digest of what it says, without its mark
    counts: Counts
    mark: str | None  # the ttl of its cache mark
    signature: str | None = None  # of thinking
    thought: bytes = b""  # digest of the text that the signature is for


@dataclass(frozen=True, slots=True)
class MessageFacts:
    role: str
    blocks: tuple[BlockFacts, ...]
    calls: tuple[tuple[int, str], ...]  # (place, id) of each tool_use
    results: tuple[tuple[int, str], ...]  # (place, tool_use_id) of each tool_result
    leading_results: int  # how many of them stand before anything else
    server: tuple[tuple[int, str, str], ...]  # (place, type of block, id) of server tools' calls and results
    loose_end: bool  # its last block is a text that ends in white space
    copy: dict[str, Any]  # the message as it was, whatever its owner does with it


def canonical(block: dict[str, Any]) -> dict[str, Any]:
    """A block as the API understands it: no mark, no nulls, fields in order. What is inside an `input` stays
    in the order in which it came: that is what the model reads."""
    kept = {name: block[name] for name in sorted(block) if name != "cache_control" and block[name] is not None}
    inner = kept.get("content")
    if kept.get("type") == "tool_result" and isinstance(inner, str):
        kept["content"] = [{"text": inner, "type": "text"}] if inner else []
    elif isinstance(inner, list):
        kept["content"] = [canonical(each) if isinstance(each, dict) else each for each in inner]
    return kept


def to_bytes(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        raise Rejected("The request body is not valid JSON: it is not valid UTF-8") from None
    except ValueError:
        raise Rejected("The request body is not valid JSON: NaN and Infinity are no numbers") from None


def _mark(block: dict[str, Any]) -> str | None:
    control = block.get("cache_control")
    return control.get("ttl", "5m") if control else None


@remembered
def tool_facts(raw: bytes) -> BlockFacts:
    tool = canonical(marked := marshal.loads(raw))
    kind = "memory tool" if str(tool.get("type")).startswith("memory_") else "tool"
    return BlockFacts(kind, digest(to_bytes(tool)), count_json(tool), _mark(marked))


def system_facts(system: str | list[Any]) -> tuple[BlockFacts, ...]:
    if isinstance(system, str):
        system = [{"type": "text", "text": system}] if system else []
    return tuple(_system_block(frozen(block), index) for index, block in enumerate(system))


@remembered
def _system_block(raw: bytes, index: int) -> BlockFacts:
    block = marshal.loads(raw)
    shapes.IN_SYSTEM(f"system.{index}", block)
    check_text(f"system.{index}", "system", block)
    return block_facts(block)


def check_text(at: str, outer: str, block: dict[str, Any]) -> None:
    if not block["text"] and block.get("cache_control"):
        raise Rejected(f"{at}.text: cache_control cannot be set for empty text blocks")
    if not block["text"]:
        raise Rejected(f"{outer}: text content blocks must be non-empty")
    if not block["text"].strip():
        raise Rejected(f"{outer}: text content blocks must contain non-whitespace text")


@remembered
def message_facts(raw: bytes, index: int) -> MessageFacts:
    message, at = marshal.loads(raw), f"messages.{index}"
    shapes.MESSAGE(at, message)
    to_bytes(message)
    role, content = message["role"], message["content"]
    if role not in {"user", "assistant"}:
        raise Rejected(f"{at}.role: Input should be 'user' or 'assistant'")
    if not content and role == "user":
        raise Rejected(f"{at}: user messages must have non-empty content")
    if not content:
        raise Rejected(
            f"{at}: all messages must have non-empty content except for the optional final assistant message"
        )
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for place, block in enumerate(content):
        _check_block(f"{at}.content.{place}", role, block)
    kinds = [block["type"] for block in content]
    leading = next((place for place, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))
    return MessageFacts(
        role=role,
        blocks=tuple(block_facts(block) for block in content),
        calls=tuple((place, each["id"]) for place, each in enumerate(content) if each["type"] == "tool_use"),
        results=tuple(
            (place, each["tool_use_id"]) for place, each in enumerate(content) if each["type"] == "tool_result"
        ),
        leading_results=leading,
        server=tuple(_server_parts(content)),
        loose_end=kinds[-1] == "text" and content[-1]["text"] != content[-1]["text"].rstrip(),
        copy=message,
    )


def _server_parts(content: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    parts: list[tuple[int, str, str]] = []
    for place, block in enumerate(content):
        if block["type"] == "server_tool_use":
            parts.append((place, block["name"], block["id"]))
        elif block["type"] in shapes.SERVER_RESULTS:
            parts.append((place, block["type"], block["tool_use_id"]))
    return parts


def _check_block(at: str, role: str, block: Any) -> None:
    shapes.IN_MESSAGE(at, block)
    kind = block["type"]
    if role != "assistant" and kind in shapes.ONLY_ASSISTANT:
        raise Rejected(f"{at}: `{kind}` blocks can only be in `assistant` messages")
    if role != "user" and kind in shapes.ONLY_USER:
        raise Rejected(f"{at}: `{kind}` blocks can only be in `user` messages")
    check_media(at, block)
    if kind == "text":
        check_text(at, "messages", block)
    elif kind == "web_search_tool_result" and isinstance(block["content"], list):
        for place, each in enumerate(block["content"]):
            shapes.SEARCHED(f"{at}.content.{place}", each)
            if unsealed(each["url"], each["encrypted_content"]) is None:
                raise Rejected(f"{at}.content.{place}: Invalid `encrypted_content` in `search_result` block")
    elif kind == "tool_result":
        _check_result(f"{at}.tool_result", block)


def _check_result(at: str, block: dict[str, Any]) -> None:
    inner = block.get("content") or []
    if block.get("is_error") and not inner:
        raise Rejected(f"{at}: content cannot be empty if `is_error` is true")
    if isinstance(inner, str):
        if not inner.strip():
            raise Rejected("messages: text content blocks must contain non-whitespace text")
        return
    for place, each in enumerate(inner):
        if each.get("cache_control"):
            raise Rejected(f"{at}.content.{place}.cache_control: a mark belongs on the tool_result itself")
        if each["type"] == "text":
            check_text(f"{at}.content.{place}", "messages", each)


def block_facts(block: dict[str, Any]) -> BlockFacts:
    kind = block["type"]
    content = digest(to_bytes(canonical(block)))
    if kind in _THINKING:
        signature = block["signature" if kind == "thinking" else "data"]
        return BlockFacts(kind, content, NOTHING, None, signature, thought_digest(block))
    return BlockFacts(kind, content, count_block(block), _mark(block))


def thought_digest(block: dict[str, Any]) -> bytes:
    return digest(block["type"].encode(), block.get("thinking", "").encode())


def size_of(block: dict[str, Any]) -> Counts:
    """Count a block of a reply before it has a signature."""
    return count_text(block.get("thinking", "")) if block["type"] in _THINKING else count_block(block)
