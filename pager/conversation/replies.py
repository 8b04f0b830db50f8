"""Decide what a model's reply becomes in the prompt, once, when it is committed. Pure.

A reply is stored exactly as it came. What the prompt carries of it must make the next request valid:

- Blank text is left out, and with it that message's thinking, which was bound to it.
- Thinking without a signature is left out: it belongs to a server that does not take it back.
- A reply without content is dropped.
- A call that was cut off is answered with an error and never run.
- A refusal is dropped together with its request.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from pager.blocks import THINKING, as_blocks, clean, is_blank, text_block
from pager.conversation.content import check_reply
from pager.errors import RejectedError, brief
from pager.markup import NO_TEXT
from pager.safety.sources import read_source
from pager.types import Json, Usage

WINDOW_END = "model_context_window_exceeded"
CUT_STOPS = frozenset({"max_tokens", WINDOW_END})
CUT_CALL = "This call was cut off at the output limit and was not run. Make it again, shorter or in pieces."
CUT_REPLIES_END_TURN = 3
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished reply: its blocks as received, why it stopped, and its usage."""

    blocks: list[Json]
    stop_reason: str
    usage: Usage | None
    model: str
    sources: frozenset[str] = frozenset()  # the untrusted ones of results that the provider's own tools brought


@dataclass(frozen=True, slots=True)
class Carried:
    """The part of a reply that the prompt carries. `forms` matches the reply's blocks; None leaves a block out."""

    forms: list[Json | None]
    call_ids: dict[int, str]  # index of the block -> the id under which the call is answered
    cut_call: str | None
    drop: str  # not empty: the reply is dropped from the prompt, for this reason
    drop_request: bool
    ends_turn: bool
    paused: bool


def read(reply: str | Mapping[str, Any] | Any, usage: Mapping[str, Any] | Usage | None = None) -> Reply:
    """Read a reply from text, from a response as a dict, or from the SDK's message object."""
    if isinstance(reply, str):
        reply = {"content": [{"type": "text", "text": reply}] if reply else [], "stop_reason": "end_turn"}
    elif not isinstance(reply, Mapping):
        if not hasattr(reply, "to_dict"):
            kind = type(reply).__name__
            raise RejectedError(f"a reply is text, a response as a dict or the SDK's message, not {kind}.")
        reply = reply.to_dict(warnings=False)  # what is wrong in it is refused below
    raw = cast("Mapping[str, Any]", reply)
    stop = raw.get("stop_reason")
    if stop is None:
        why = "its stream broke off before the end. Nothing of it was stored; ask the model again"
        raise RejectedError(f"the reply has no stop_reason: {why}.")
    if raw.get("role", "assistant") != "assistant":
        raise RejectedError(f"the reply's role is {raw['role']!r}, not 'assistant'.")
    if not isinstance(stop, str):
        raise RejectedError(f"the stop_reason of the reply is {brief(stop)}; it has to be a text.")
    content: Any = raw.get("content") or []
    sources: frozenset[str] = frozenset()
    if not isinstance(content, str) and not _is_plain_text(content):
        check_reply(content)
        sources = _sources(content)
    measured = usage if isinstance(usage, Usage) else Usage.read(usage or raw.get("usage"))
    return Reply(
        as_blocks(content) if content else [], str(clean(stop)), measured, str(raw.get("model") or ""), sources
    )


def _sources(content: list[Json]) -> frozenset[str]:
    """Return the sources of results that the provider put into the reply: the web, MCP servers, other tools of its."""
    servers = {block.get("id"): block.get("server_name") for block in content if block["type"] == "mcp_tool_use"}
    found: set[str] = set()
    for block in content:
        kind, is_result, _ = block["type"].partition("_tool_result")
        if kind == "mcp" and is_result:
            found.add(f"mcp:{servers.get(block.get('tool_use_id')) or ''}")
        elif is_result:
            inner = block.get("content")
            pages = cast("list[Any]", inner) if isinstance(inner, list) else [inner]
            urls = [cast(Json, page).get("url") for page in pages if isinstance(page, Mapping)]
            hosts = {_host(url) for url in urls if isinstance(url, str)}
            found |= {f"web:{host}" for host in hosts} or {f"tool:{kind}"}
    return frozenset(read_source(name).origin for name in found)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # no address at all
        return ""


def _is_plain_text(content: Any) -> bool:
    if not isinstance(content, list):
        return False
    plain = {"type": "text"}
    return all(
        type(block) is dict and len(block) == 2 and type(block.get("text")) is str and plain.items() <= block.items()
        for block in cast("list[dict[str, Any]]", content)
    )


def carry(reply: Reply, *, is_used: Callable[[str], bool], next_step: int, cuts_before: int) -> Carried:
    """Decide what the prompt carries. `is_used` tells if a call id was used before in this agent's life."""
    forms: list[Json | None] = [None if _is_unsigned(block) else block for block in reply.blocks]
    if any(is_blank(block) for block in reply.blocks):
        forms = [None if is_blank(block) or block.get("type") in THINKING else block for block in reply.blocks]
    call_ids, cut = _call_ids(reply, forms, is_used, next_step)
    refused = reply.stop_reason == "refusal"
    if all(form is None or form.get("type") in THINKING for form in forms):
        # The API refuses a message of nothing but thinking, so two words stand in its place.
        thought = any(block.get("type") in THINKING for block in reply.blocks)
        forms = [text_block(NO_TEXT) if thought and not index else None for index in range(len(forms))]
    empty = all(form is None for form in forms)
    paused = reply.stop_reason == "pause_turn" and not empty
    odd_pause = paused and (forms != list(reply.blocks) or _cannot_end_request(reply.blocks[-1]))
    too_often = cuts_before + 1 >= CUT_REPLIES_END_TURN
    # A reply that the window's end cut off is asked for again, with more room.
    again = reply.stop_reason == WINDOW_END and not (call_ids or empty or too_often)
    drop = "refusal" if refused else "empty reply" if empty else "cut at the end of the window" if again else ""
    if odd_pause:  # it would have to go back as it came, and the API would refuse it: the model answers anew
        paused, drop, again = False, "a pause that cannot be sent back", not too_often
    if drop:
        call_ids, cut = {}, None
    ends = not again and (bool(drop) or (cut is not None and too_often) or (not call_ids and not paused))
    return Carried(forms, call_ids, cut, drop, refused, ends, paused)


def _is_unsigned(block: Json) -> bool:
    return block.get("type") == "thinking" and "signature" not in block


def _cannot_end_request(block: Json) -> bool:
    text = str(block.get("text", ""))
    return block.get("type") in THINKING or text != text.rstrip()


def _call_ids(
    reply: Reply, forms: list[Json | None], is_used: Callable[[str], bool], next_step: int
) -> tuple[dict[int, str], str | None]:
    """Return the ids under which calls are answered, and the one that was cut. Servers may repeat or omit ids."""
    ids: dict[int, str] = {}
    for index, block in enumerate(reply.blocks):
        if block.get("type") != "tool_use":
            continue
        wanted = str(block.get("id") or "call")
        unique = wanted if _CALL_ID.fullmatch(wanted) else re.sub(r"[^a-zA-Z0-9_-]", "_", wanted)[:64] or "call"
        if is_used(unique) or unique in ids.values():
            unique = f"{unique[:64]}_s{next_step}_{index}"
        ids[index] = unique
        if unique != block.get("id"):
            forms[index] = {**block, "id": unique}
    last = len(reply.blocks) - 1
    return ids, ids.get(last) if reply.stop_reason in CUT_STOPS else None
