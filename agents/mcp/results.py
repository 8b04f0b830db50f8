"""Convert the result of an MCP tool to content of the Messages API. Pure.

Content that the API does not take (sound, other files) is replaced by its kind and address. A result with structured
content only becomes JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agents.tools.functions import Json, Output, ToolCallError

if TYPE_CHECKING:
    from mcp import types

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def output(name: str, result: types.CallToolResult) -> Output:
    """Return the result of the tool `name`. Raises ToolCallError with the tool's own text if it is an error."""
    blocks = [_block(content) for content in result.content]
    if not blocks and result.structured_content is not None:
        blocks = [_text(json.dumps(result.structured_content, ensure_ascii=False))]
    if result.is_error:
        raise ToolCallError("\n".join(block["text"] for block in blocks if "text" in block) or f"{name} failed.")
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks) or "done"
    return blocks


def clean(value: Any) -> Any:
    """Return a JSON value without lone surrogates, which no connection can carry."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _block(content: types.ContentBlock) -> Json:
    if content.type == "text":
        return _text(content.text)
    if content.type == "image" and content.mime_type in IMAGES:
        source = {"type": "base64", "media_type": content.mime_type, "data": content.data}
        return {"type": "image", "source": source}
    if content.type == "resource" and hasattr(content.resource, "text"):
        return _text(str(getattr(content.resource, "text", "")))
    inner = getattr(content, "resource", content)
    words = [content.type, getattr(content, "name", ""), getattr(inner, "mime_type", ""), getattr(inner, "uri", "")]
    return _text(f"({' '.join(str(word) for word in words if word)})")


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
