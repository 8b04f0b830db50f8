"""Replies that a script gives in a model's place.

>>> Reply(text="Let me look.", calls=[call("fetch_order", number=17)]).stop_reason
'tool_use'
"""

from collections.abc import Sequence
from typing import cast

from pager.types import Json

STOP_REASONS = (
    *("end_turn", "tool_use", "max_tokens", "stop_sequence"),
    *("pause_turn", "refusal", "model_context_window_exceeded"),
)
RAW_JSON = "raw_json"


def call(tool: str, /, **arguments: object) -> Json:
    """Return a call of a tool. It gets its id when the reply is sent."""
    return {"type": "tool_use", "name": tool, "input": arguments}


def broken_call(tool: str, raw_json: str) -> Json:
    """Return a call whose arguments are streamed as this text, which need not be JSON."""
    return {"type": "tool_use", "name": tool, "input": {}, RAW_JSON: raw_json}


def thinking(text: str = "") -> Json:
    """Return a block of thinking with a signature."""
    return {"type": "thinking", "thinking": text, "signature": "c2NyaXB0ZWQ="}


class Reply:
    """One reply of the model: other content blocks (a string is a text block), `text`, then `calls`. `usage` overrides
    the counted usage."""

    def __init__(
        self, *blocks: str | Json, text: str = "", calls: Sequence[Json] = (), stop_reason: str = "",
        stop_sequence: str | None = None, usage: Json | None = None,
    ) -> None:  # fmt: skip
        every = [*blocks, *([text] if text else []), *calls]
        for each in every:
            if not isinstance(each, str) and not (isinstance(each, dict) and "type" in each):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ValueError(f"{each!r} is no block of a reply; give texts and calls, such as call('tool', x=1).")
        self.blocks = tuple({"type": "text", "text": each} if isinstance(each, str) else each for each in every)
        has_calls = any(block["type"] == "tool_use" for block in self.blocks)
        self.stop_reason = stop_reason or ("tool_use" if has_calls else "end_turn")
        if self.stop_reason not in STOP_REASONS:
            raise ValueError(f"there is no stop reason {stop_reason!r}; use one of {', '.join(STOP_REASONS)}.")
        self.stop_sequence = stop_sequence
        self.usage = usage


def as_reply(answer: object) -> Reply:
    """Return a reply from what a script's function returned: a `Reply`, a text, or one call. Raise TypeError if not."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str):
        return Reply(answer)
    if isinstance(answer, dict) and "type" in answer:
        return Reply(cast(Json, answer))
    raise TypeError(f"{answer!r} is not a reply; return Reply(text=..., calls=[call(...)]), a text, or one call.")
