"""What a model's reply becomes in the prompt, decided once, when it is committed. Pure.

A reply is kept exactly as it came. What the prompt carries of it must make the next request valid: blank text goes
(and then that message's thinking, which was bound to it), a reply without content leaves, a call that was cut off is
answered and never run, a refusal leaves together with its request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pager.arguments import text_or_none
from pager.blocks import THINKING, as_blocks, clean, is_blank, text_block
from pager.conversation.content import check_reply
from pager.errors import RejectedError
from pager.markup import NO_TEXT
from pager.types import Json, Usage

WINDOW_END = "model_context_window_exceeded"
CUT_STOPS = frozenset({"max_tokens", WINDOW_END})
CUT_CALL = "This call was cut off at the output limit and was not run. Make it again, shorter or in pieces."
CUT_REPLIES_END_TURN = 3
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished reply: its blocks as received, why it stopped, and what it cost."""

    blocks: list[Json]
    stop_reason: str
    usage: Usage | None
    model: str


@dataclass(frozen=True, slots=True)
class Carried:
    """The fate of a reply. `forms` matches the reply's blocks; None leaves a block out of the prompt."""

    forms: list[Json | None]
    call_ids: dict[int, str]  # index of the block -> the id under which the call is answered
    cut_call: str | None
    drop: str  # not empty: the reply leaves the prompt, for this reason
    drop_request: bool
    ends_turn: bool
    paused: bool


def read(reply: str | Mapping[str, Any] | Any, usage: Mapping[str, Any] | Usage | None = None) -> Reply:
    """A reply from text, from a response as a dict, or from the SDK's message object."""
    if isinstance(reply, str):
        reply = {"content": [{"type": "text", "text": reply}] if reply else [], "stop_reason": "end_turn"}
    elif not isinstance(reply, Mapping):
        if not hasattr(reply, "to_dict"):
            raise RejectedError(
                f"a reply is text, a response as a dict or the SDK's message, not {type(reply).__name__}."
            )
        reply = reply.to_dict()
    raw = cast("Mapping[str, Any]", reply)
    stop = raw.get("stop_reason")
    if stop is None:
        raise RejectedError(
            "the reply has no stop_reason: its stream broke off before the end. Nothing of it was kept; ask the "
            "model again."
        )
    if raw.get("role", "assistant") != "assistant":
        raise RejectedError(f"the reply's role is {raw['role']!r}, not 'assistant'.")
    text_or_none(stop, "the stop_reason of the reply")
    content = cast("str | Sequence[Mapping[str, Any]]", raw.get("content") or [])
    if not isinstance(content, str):
        check_reply(content)
    measured = usage if isinstance(usage, Usage) else Usage.read(usage or raw.get("usage"))
    return Reply(as_blocks(content) if content else [], str(clean(stop)), measured, str(raw.get("model") or ""))


def carry(reply: Reply, *, taken: Callable[[str], bool], step_hint: int, cuts_before: int) -> Carried:
    """Decide what the prompt carries. `taken` says whether a call id was used before in this agent's life."""
    forms: list[Json | None] = list(reply.blocks)
    if any(is_blank(block) for block in reply.blocks):
        forms = [None if is_blank(block) or block.get("type") in THINKING else block for block in reply.blocks]
    call_ids, cut = _calls(reply, forms, taken, step_hint)
    refused = reply.stop_reason == "refusal"
    if all(form is None or form.get("type") in THINKING for form in forms):
        # Nothing but thinking: as a message of its own it is refused, so its place is kept by two words.
        thought = any(block.get("type") in THINKING for block in reply.blocks)
        forms = [text_block(NO_TEXT) if thought and not index else None for index in range(len(forms))]
    empty = all(form is None for form in forms)
    paused = reply.stop_reason == "pause_turn" and not empty
    odd_pause = paused and (forms != list(reply.blocks) or _ends_loosely(reply.blocks[-1]))
    paused = paused and not odd_pause
    too_often = cuts_before + 1 >= CUT_REPLIES_END_TURN
    # What the window's end cut off is asked for again, with more room.
    again = reply.stop_reason == WINDOW_END and not (call_ids or empty or too_often)
    drop = "refusal" if refused else "empty reply" if empty else "cut at the end of the window" if again else ""
    if odd_pause:  # it has to go back as it came, and that would be refused: the model answers anew
        drop, again = "a pause that cannot be sent back", not too_often
    if drop:
        call_ids, cut = {}, None
    ends = not again and (bool(drop) or (cut is not None and too_often) or (not call_ids and not paused))
    return Carried(forms, call_ids, cut, drop, refused, ends, paused)


def _ends_loosely(block: Json) -> bool:
    """Whether a message that ends with this block cannot end a request."""
    text = block.get("text")
    return block.get("type") in THINKING or (isinstance(text, str) and text != text.rstrip())


def _calls(
    reply: Reply, forms: list[Json | None], taken: Callable[[str], bool], step_hint: int
) -> tuple[dict[int, str], str | None]:
    """Ids under which calls are answered (made unique, as some servers repeat theirs), and the one that was cut."""
    ids: dict[int, str] = {}
    for index, block in enumerate(reply.blocks):
        if block.get("type") != "tool_use":
            continue
        wanted = str(block.get("id") or "call")  # some servers send none, or a number
        unique = wanted if _CALL_ID.fullmatch(wanted) else re.sub(r"[^a-zA-Z0-9_-]", "_", wanted)[:64] or "call"
        if taken(unique) or unique in ids.values():
            unique = f"{unique[:64]}_s{step_hint}_{index}"
        ids[index] = unique
        if unique != block.get("id"):
            forms[index] = {**block, "id": unique}
    last = len(reply.blocks) - 1
    cut = ids.get(last) if reply.stop_reason in CUT_STOPS else None
    return ids, cut
