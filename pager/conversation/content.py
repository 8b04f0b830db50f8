"""Check messages before anything is written: a block that the Messages API refuses would stand in every request."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from pager.arguments import optional_text
from pager.blocks import text_block
from pager.errors import RejectedError, brief
from pager.tokens import media

USER_TYPES = ("text", "image", "document", "search_result", "container_upload")
RESULT_TYPES = ("text", "image", "document", "search_result", "tool_reference")
NEVER_IN_REPLIES = frozenset({"tool_result", "image"})
DEEPEST = 100
_LONGEST_NUMBER_BITS = 1024
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ELSEWHERE = {"url": (("url",), ()), "file": (("file_id",), ())}
# block -> type of its source -> the texts it needs, and the media types that the API takes
_SOURCES: Mapping[str, Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "image": {"base64": (("media_type", "data"), ("image/jpeg", "image/png", "image/gif", "image/webp")), **_ELSEWHERE},
    "document": {
        "base64": (("media_type", "data"), ("application/pdf",)),
        "text": (("media_type", "data"), ("text/plain",)),
        "content": ((), ()),
        **_ELSEWHERE,
    },
}
# block -> the texts it needs, and its other keys
_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "text": (("text",), ("citations",)),
    "image": ((), ("source",)),
    "document": ((), ("source", "title", "citations", "context")),
    "search_result": (("source", "title"), ("citations", "content")),
    "container_upload": (("file_id",), ()),
    "tool_reference": (("tool_name",), ()),
}
_ASK_AGAIN = "The model's reply is malformed and nothing of it was kept; ask the model again"


class _UnusableFileError(RejectedError):
    """A block is well formed, but no model can read the file in it."""


def check_tools(tools: Any) -> None:
    """Refuse definitions that the Messages API never accepts."""
    if not isinstance(tools, list | tuple):
        raise RejectedError(f"tools is {brief(tools)}; give a list of tool definitions.")
    check_json(tools, "tools")
    names: set[str] = set()
    for index, tool in enumerate(cast("Sequence[Any]", tools)):
        name = cast("Mapping[str, Any]", tool).get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            raise RejectedError(
                f"tool {index} is {brief(cast(object, tool))}; give a dict with a name of a-z, A-Z, 0-9, _ and -."
            )
        if name in names:
            raise RejectedError(f"two tools are called {name!r}; give each a name of its own.")
        names.add(name)


def check_user(content: Any) -> None:
    """Refuse blocks that the Messages API never accepts as a user message."""
    _check_blocks(content, USER_TYPES, "the message")


def checked_result(content: Any) -> list[Any]:
    """Return the blocks of a tool_result, with a text in the place of each file that no model can read: its tool has
    run, and the rest is wanted. Refuse other blocks that the Messages API never accepts inside a tool_result."""
    checked: list[Any] = []
    for index, block in enumerate(_blocks(content, "the result")):
        try:
            _check_block(block, RESULT_TYPES, f"block {index} of the result")
        except _UnusableFileError as error:
            checked.append(text_block(f"({error})"))
        else:
            checked.append(block)
    return checked


def check_reply(content: Any) -> None:
    """Refuse a reply that could not be sent back. Types that are not known here are kept: servers get new tools."""
    try:
        for index, block in enumerate(_blocks(content, "the reply")):
            where = f"block {index} of the reply"
            kind = _kind(block, where)
            if kind in NEVER_IN_REPLIES:
                raise RejectedError(f"{where} is of the type {kind!r}, which only a user message may hold.")
            if kind == "tool_use":
                _check_call(block, where)
            if kind in ("text", "thinking"):
                _need_text(block, kind, kind, where)
            check_json(block, where)
    except RejectedError as error:
        raise RejectedError(f"{_ASK_AGAIN}: {error}") from None


def _check_call(block: Mapping[str, Any], where: str) -> None:
    name, given = block.get("name"), block.get("input")
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        allowed = "a name is 1 to 128 of a-z, A-Z, 0-9, _ and -"
        raise RejectedError(f"{where} calls a tool by the name {brief(name, 150)}; {allowed}.")
    if not isinstance(given, Mapping):
        raise RejectedError(f"{where} calls {name} with the input {brief(given)}; an input is a JSON object.")


def check_json(value: Any, where: str, depth: int = 0) -> None:
    """Refuse what JSON cannot represent."""
    if depth > DEEPEST:
        raise RejectedError(f"{where} is nested deeper than {DEEPEST} levels; make it flatter.")
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            if not isinstance(key, str):
                raise RejectedError(f"{where} has the key {brief(key)}; keys are texts.")
            check_json(item, where, depth + 1)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            check_json(item, where, depth + 1)
    elif isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER_BITS:
        raise RejectedError(f"{where} holds a number of {value.bit_length()} bits; give it as a text.")
    elif not (value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))):
        plain = "give texts, numbers, lists and objects"
        raise RejectedError(f"{where} holds {brief(value)}, which JSON cannot represent; {plain}.")


def _check_blocks(content: Any, types: Collection[str], what: str) -> None:
    for index, block in enumerate(_blocks(content, what)):
        _check_block(block, types, f"block {index} of {what}")


def _check_block(block: Any, types: Collection[str], where: str) -> None:
    kind = _kind(block, where)
    if kind not in types:
        way = " Tool results are given with append_result." if kind == "tool_result" else ""
        raise RejectedError(f"{where} is of the type {brief(kind)}; it may be {', '.join(types)}.{way}")
    texts, others = _KEYS[kind]
    _refuse_unknown(block, ("type", *texts, *others), where)
    for name in texts:
        _need_text(block, name, kind, where)
    if kind in _SOURCES:
        _check_source(block, kind, where)
    if kind == "document":
        for name in ("title", "context"):
            optional_text(block.get(name), f"{name} of {where}")
    _check_citations(block, kind, where)
    if kind == "search_result":
        _check_blocks(block.get("content"), ("text",), where)
    check_json(block, where)


def _check_source(block: Mapping[str, Any], kind: str, where: str) -> None:
    source, known = block.get("source"), _SOURCES[kind]
    form = cast("Mapping[str, Any]", source).get("type") if isinstance(source, Mapping) else None
    if not isinstance(form, str) or form not in known:
        types = ", ".join(known)
        raise RejectedError(
            f"{where} is no {kind}: its source is {brief(cast(object, source))}; give a dict of type {types}."
        )
    given, (texts, allowed) = cast("Mapping[str, Any]", source), known[form]
    for name in texts:
        _need_text(given, name, kind, f"the source of {where}")
    more = ("content",) if form == "content" else ()
    _refuse_unknown(given, ("type", *more, *texts), f"the source of {where}")
    if allowed and given["media_type"] not in allowed:
        wrong = f"the source of {where} has the media_type {brief(given['media_type'])}"
        raise _UnusableFileError(f"{wrong}; it may be {', '.join(allowed)}. Convert it, or give it as text.")
    if form == "base64" and (wrong := media.defect(kind, given["media_type"], given["data"])):
        raise _UnusableFileError(f"the {kind} in {where} cannot be used: it {wrong}. Give the bytes of a sound file.")
    if form == "content" and not isinstance(given.get("content"), str):
        _check_blocks(given.get("content"), ("text", "image"), f"the source of {where}")


def _check_citations(block: Mapping[str, Any], kind: str, where: str) -> None:
    given: Any = block.get("citations")
    if kind == "text" and given is not None and not isinstance(given, list):
        raise RejectedError(f"the citations of {where} are {brief(given)}; give a list, or leave them out.")
    if kind not in ("document", "search_result") or "citations" not in block or (given is None and kind == "document"):
        return
    settings: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"no": given}
    if set(settings) - {"enabled"} or not isinstance(settings.get("enabled", False), bool):
        raise RejectedError(
            f"the citations of {where} are {brief(cast(object, given))}; give {{'enabled': true}}, or none."
        )


def _refuse_unknown(given: Mapping[str, Any], known: Collection[str], where: str) -> None:
    unknown = sorted(set(map(str, given)) - {"cache_control", *known})
    if unknown:
        names = ", ".join(unknown)[:100]
        raise RejectedError(f"{where} has {names}, which the Messages API does not know; leave it out.")


def _blocks(content: Any, what: str) -> Sequence[Any]:
    if not isinstance(content, list | tuple):
        raise RejectedError(f"the content of {what} is {brief(content)}; give a text or a list of content blocks.")
    return cast("Sequence[Any]", content)


def _kind(block: Any, where: str) -> str:
    kind = cast("Mapping[str, Any]", block).get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str):
        example = {"type": "text", "text": "..."}
        raise RejectedError(f"{where} is {brief(cast(object, block))}; give a dict with a type, such as {example}.")
    return kind


def _need_text(block: Mapping[str, Any], name: str, kind: str, where: str) -> None:
    if not isinstance(block.get(name), str):
        raise RejectedError(f"{where} is no {kind} block: its {name} is {brief(block.get(name))}; give a text.")
