"""Take a call that a model writes as text for what it is: `model.tools_in_text`.

Small models answer with `{"name": "search", "arguments": {"query": "seat"}}`, bare or in a fence, where a server does
not read their calls. A reply that is nothing but such an object, with the name of a tool that was offered, becomes that
call. Of several objects in a row it is the first: a model that goes on without waiting invents the results. Braces may
be doubled, as the template of Qwen2.5-Coder shows them. Text that begins like a call is held back until it is whole,
and is yielded then if it is none. The time that this takes grows with the length of the text, not faster.
"""

import json
import re
from collections.abc import Collection, Generator
from contextlib import closing
from typing import Any, Literal, cast

from agents.events import Text, Thinking
from agents.models.model import FinishedReply, Json, Model

MOST_OPENING_CHARS = 100  # of what may stand before the brace
_OPENING = re.compile(r"(?:`{1,3}|```[a-zA-Z_]{0,20}\s{0,20})?")  # all of it, or the part of it that has come
_FENCED = re.compile(r"(?:```[a-zA-Z_]{0,20})?\s{0,20}(?=\{)")
STOPS = frozenset({"end_turn", "stop_sequence", "max_tokens"})
ARGUMENTS = ("arguments", "parameters", "input")  # names under which models give them
BESIDE = frozenset({"type", "id"})
_DECODER = json.JSONDecoder(parse_constant=int)  # int refuses NaN and Infinity, which are no JSON


class CallsInText:
    """`Model` over another one. With "auto" it stops to look for calls in text after the first real one."""

    def __init__(self, model: Model, mode: Literal["auto", "on"]) -> None:
        self.name = model.name
        self.count_tokens, self.max_input_tokens, self.close = model.count_tokens, model.max_input_tokens, model.close
        self.problem, self.unreachable = model.problem, model.unreachable
        self._model = model
        self._mode = mode
        self._called = False  # a real call was made

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        """Send a request, yield the reply as it comes and return it whole."""
        names = {str(tool.get("name")) for tool in params.get("tools") or () if "input_schema" in tool}
        choice: Json = params.get("tool_choice") or {}
        if not names or choice.get("type") == "none" or (self._called and self._mode == "auto"):
            return (yield from self._model.stream(params))
        held: list[str] = []
        begun: bool | None = None  # whether the text begins like a call; None: that cannot be said yet
        with closing(self._model.stream(params)) as pieces:
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    reply: FinishedReply = end.value
                    break
                if begun is False or not isinstance(piece, Text):
                    yield piece
                    continue
                held.append(piece.text)
                if begun is None:
                    held = ["".join(held)]
                    begun = _begins_like_call(held[0])
                    if begun is False:
                        yield Text(held.pop())
        content = cast("list[Json]", reply.message["content"])
        self._called = self._called or any(block["type"] == "tool_use" for block in content)
        if call := _read_reply(reply.message, names):
            others = [block for block in content if block["type"] != "text"]
            return FinishedReply({**reply.message, "content": [*others, call], "stop_reason": "tool_use"})
        if held:
            yield Text("".join(held))
        return reply


def _begins_like_call(text: str) -> bool | None:
    """Return True if an object has begun, False if something else has, None if that cannot be said yet."""
    start = text[:MOST_OPENING_CHARS].lstrip()
    if _FENCED.match(start):
        return True
    return None if _OPENING.fullmatch(start) and len(text) < MOST_OPENING_CHARS else False


def _read_reply(message: Json, names: Collection[str]) -> Json | None:
    """Return the call that a reply is; None if it is anything else."""
    blocks: list[Json] = [block for block in message["content"] if block["type"] != "thinking"]
    if message["stop_reason"] not in STOPS or any(block["type"] != "text" for block in blocks):
        return None
    text = "".join(block["text"] for block in blocks).strip()
    opening = _FENCED.match(text)
    if not opening:
        return None
    doubled = text.startswith("{{", opening.end())
    try:
        given, end = _DECODER.raw_decode(text, opening.end() + doubled)
    except (ValueError, RecursionError):
        return None
    rest = text[end:].removeprefix("}" if doubled else "").lstrip()
    if opening[0].startswith("`"):
        rest = rest.removeprefix("```").lstrip()
    return _as_call(given, names) if not rest or _FENCED.match(rest) else None


def _as_call(given: Any, names: Collection[str]) -> Json | None:
    if not isinstance(given, dict):
        return None
    found = cast(Json, given)
    under = [name for name in ARGUMENTS if isinstance(found.get(name), dict)]
    if len(under) != 1 or not {"name", *under} <= found.keys() <= {"name", *under, *BESIDE}:
        return None
    if not isinstance(found["name"], str) or found["name"] not in names:
        return None
    return {"type": "tool_use", "id": None, "name": found["name"], "input": found[under[0]]}
