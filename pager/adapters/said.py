"""Shared by the adapters that store conversations: what of a message of another program was said, and when."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, cast

SPOKEN = ("text", "input_text", "output_text")  # kinds of content that are a text


def text_said(message: Any) -> str:
    """Return what was said in a message with `content`: a text, or a list of blocks."""
    content = cast("Mapping[str, Any]", message).get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return content
    listed = cast("list[Any]", content) if isinstance(content, list) else []
    blocks = [cast("Mapping[str, Any]", block) for block in listed if isinstance(block, Mapping)]
    return "\n".join(str(block.get("text") or "") for block in blocks if block.get("type") in SPOKEN)


def moment_said(stamp: Any) -> datetime | None:
    """Return the moment of an ISO 8601 text with a time zone; None for anything else."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) else None
        return moment if moment and moment.tzinfo else None
    return None
