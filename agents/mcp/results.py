"""What a tool of an MCP server answers, as content of the Messages API. Pure.

Of what that API does not take (sound, other files) the kind and the address are told. A result that has structured
content only is told as JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agents.tools.functions import Json, Output, ToolCallError

if TYPE_CHECKING:
    from mcp import types

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def output(name: str, result: types.CallToolResult) -> Output:
    """The answer of the tool `name`; if it is an error, `ToolCallError` says what the tool said."""
    blocks = [_block(content) for content in result.content]
    if not blocks and result.structured_content is not None:
        blocks = [_text(json.dumps(result.structured_content, ensure_ascii=False))]
    if result.is_error:
        raise ToolCallError("\n".join(block["text"] for block in blocks if "text" in block) or f"{name} failed.")
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks) or "done"
    return blocks


def _block(content: types.ContentBlock) -> Json:
    if content.type == "text":
        return _text(content.text)
    if content.type == "image" and content.mime_type in IMAGES:
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": content.mime_type, "data": content.data},
        }
    if content.type == "resource" and hasattr(content.resource, "text"):
        return _text(str(getattr(content.resource, "text", "")))
    of_it = getattr(content, "resource", content)
    about = [getattr(content, "name", ""), getattr(of_it, "mime_type", ""), getattr(of_it, "uri", "")]
    return _text(f"({' '.join([content.type, *(str(each) for each in about if each)])})")


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
