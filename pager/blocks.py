"""Content blocks of the Messages API, as plain dicts: what text they hold, and how they are made smaller.

Pure. A block that this file does not know is carried as it came and counted by its JSON.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from pager import markup
from pager.types import Json

THINKING = frozenset({"thinking", "redacted_thinking"})
_NOT_READ = frozenset({"type", "id", "tool_use_id", "media_type"})  # strings that a model does not see as text
_SEALED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})  # only the provider can read it
_SEALED_CHARS_PER_TOKEN = 4
_SURROGATES = re.compile("[\ud800-\udfff]")


# JSON as it is stored: compact, and the same bytes for the same value in the same order.
dump: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def map_strings(value: Any, change: Callable[[str], str], *, keys: bool = False, skip: Collection[str] = ()) -> Any:
    """Return `value` with every string inside it put through `change`; with `keys` the keys of objects, too. Strings
    below a key in `skip` stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {
            change(key) if keys else key: item
            if key in skip and isinstance(item, str)
            else map_strings(item, change, keys=keys, skip=skip)
            for key, item in items
        }
    if isinstance(value, (list, tuple)):
        return [map_strings(item, change, keys=keys, skip=skip) for item in cast("Sequence[Any]", value)]
    return value


def clean(value: Any) -> Any:
    """Return `value` without lone surrogates, which no encoding can carry, in every string it holds."""
    return map_strings(value, lambda text: text if text.isascii() else _SURROGATES.sub("\ufffd", text), keys=True)


def as_blocks(content: str | Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return a message's content as a list of clean blocks, without `cache_control`, which is ours to set."""
    if isinstance(content, str):
        return [text_block(_SURROGATES.sub("\ufffd", content))]
    return [{k: v for k, v in cast(Json, clean(block)).items() if k != "cache_control"} for block in content]


def is_memory_tool(tool: Json) -> bool:
    """Return True for the provider's memory tool, of which a request has only the type."""
    return str(tool.get("type", "")).startswith("memory_")


def is_providers_result(block: Json) -> bool:
    """Return True for the result of a tool that the provider ran on its own servers, which stands in a reply."""
    return str(block.get("type")).endswith("_tool_result")


def text_block(text: str) -> Json:
    """Return a text as a content block."""
    return {"type": "text", "text": text}


def is_blank(block: Json) -> bool:
    """Return True for a text block without any text."""
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def result_content(block: Json) -> list[Json]:
    """Return the content of a tool_result, always as a list."""
    content = block.get("content")
    if isinstance(content, str):
        return [text_block(content)] if content else []
    return cast("list[Json]", content or [])


def strings(value: Any, skip: Collection[str] = ()) -> Iterator[str]:
    """Yield every string inside `value`, in order, but for what is below a key in `skip`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            if key not in skip:
                yield from strings(item, skip)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from strings(item, skip)


def _unsealed(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {key: _unsealed(item) for key, item in items if key not in _SEALED}
    return [_unsealed(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def sealed_tokens(block: Json) -> int:
    """Return about how many tokens the provider makes of what only it can read in a result of its own tools."""
    if not is_providers_result(block):
        return 0
    chars = sum(map(len, strings(block))) - sum(map(len, strings(block, _SEALED)))
    return chars // _SEALED_CHARS_PER_TOKEN


def text_of(block: Json) -> str:
    """Return what a person would read in a block: the text of a page, and what is indexed for search."""
    kind = block.get("type")
    if kind == "text":
        return str(block["text"])
    if kind == "tool_result":
        return "\n".join(filter(None, map(text_of, result_content(block))))
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return f"{block.get('name', '')} {json.dumps(block.get('input', {}), ensure_ascii=False)}"
    if kind in THINKING:
        return str(block.get("thinking", ""))
    if kind == "document":
        source = cast(Json, block.get("source") or {})
        body = str(source.get("data", "")) if source.get("type") == "text" else ""
        body = body or "\n".join(filter(None, map(text_of, _inside(block))))
        return "\n".join(filter(None, (str(block.get("title") or ""), str(block.get("context") or ""), body)))
    if kind == "image":
        return ""
    return "\n".join(strings(block, _NOT_READ | _SEALED))


def countable(block: Json) -> str:
    """Return the characters of a block that a tokenizer will see, all but media. Field names count, as JSON."""
    kind = block.get("type")
    if kind == "text":
        return str(block["text"])
    if kind == "tool_result":
        return "\n".join(map(countable, result_content(block)))
    if kind == "thinking":
        return f"{block.get('thinking', '')}{block.get('signature', '')}"
    if kind == "tool_use":
        return f"{block.get('name', '')} {dump(block.get('input', {}))}"
    if kind == "document" and (is_media(block) or _inside(block)):
        about = "".join(str(block.get(name) or "") for name in ("title", "context"))
        return about + "\n".join(map(countable, _inside(block)))
    return "" if is_media(block) else dump(_unsealed(block) if is_providers_result(block) else block)


def _inside(block: Json) -> list[Json]:
    source = cast(Json, block.get("source") or {})
    return as_blocks(source.get("content") or []) if source.get("type") == "content" else []


def is_media(block: Json) -> bool:
    """Return True for an image, or a document that is not plain text."""
    if block.get("type") == "image":
        return True
    source = cast(Json, block.get("source") or {})
    return block.get("type") == "document" and source.get("type") in ("base64", "url", "file")


def media_in(block: Json) -> Iterator[Json]:
    """Yield the images and documents of a block."""
    if is_media(block):
        yield block
    elif block.get("type") == "tool_result":
        for inner in result_content(block):
            yield from media_in(inner)
    elif block.get("type") == "document":
        for inner in _inside(block):
            yield from media_in(inner)


def without_media(block: Json, text: str) -> Json:
    """Return a block with `text` in the place of each image and document in it."""
    if is_media(block):
        return text_block(text)
    if block.get("type") == "tool_result":
        return {**block, "content": [without_media(inner, text) for inner in result_content(block)]}
    if inside := _inside(block) if block.get("type") == "document" else []:
        return {**block, "source": {**block["source"], "content": [without_media(inner, text) for inner in inside]}}
    return block


def disarmed(content: Sequence[Json]) -> list[Json]:
    """Return blocks that stand behind each other with our own markup made harmless in every string."""
    texts: list[str] = []
    map_strings(content, lambda text: texts.append(text) or text, skip=_NOT_READ)
    changed = iter(markup.disarm_all(texts))
    return map_strings(content, lambda _: next(changed), skip=_NOT_READ)


def shortened(block: Json, shorten: Callable[[str], str]) -> Json:
    """Return `block` with its text put through `shorten`, string by string for a tool's input."""
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": shorten(block["text"])}
    if kind == "tool_result":
        return {**block, "content": [text_block(shorten(text_of(block)))]}
    if kind == "tool_use":
        return {**block, "input": map_strings(block.get("input", {}), shorten)}
    return text_block(shorten(text_of(block)))
