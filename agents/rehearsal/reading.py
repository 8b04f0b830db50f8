"""A request as the rehearsal reads it: what was said, which calls were made since, what core and the results say. Pure.

Only what is in the request counts. The markup is pager's own (`<core>`, `<recalled>`, `<notice>`), which it disarms in
everything that comes from outside.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agents.rehearsal.wire import Json
from pager import blocks, markup

_BLOCK = re.compile(r'<(block|core_update)((?:\s+[\w-]+="[^"]*")*)\s*>\n?(.*?)\n?</\1>', re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_CORE = re.compile(r"<core>.*?</core>", re.DOTALL)
_ASIDE = re.compile(rf"\s*<(?:{'|'.join(markup.OWN_ELEMENTS)})(?![\w-])")
_NOW_READS = re.compile(r"^The block (\S+) now reads[^\n]*:\n(.*)\Z", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r'^\W{0,3}(?:<\w+ )?(?:page[_ ])?(?:id[=:" ]+)?([fsx]\d{1,18})\b')
_SINCE = re.compile(r"\bsince (\d{4}-\d{2}-\d{2})")


@dataclass(slots=True)
class CoreBlock:
    text: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """A call and its result; both texts empty of what the memory put beside them."""

    name: str
    input: Json
    result: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """The memory says that the window is filling."""


@dataclass(frozen=True, slots=True)
class Found:
    """One page in a result: its id, its text, and the words before the text (tags, dates, who)."""

    page_id: str
    text: str
    heading: str = ""

    @property
    def since(self) -> str | None:
        match = _SINCE.search(self.heading)
        return match[1] if match else None


Item = Said | Done | Notice


@dataclass(slots=True)
class Scene:
    tools: Mapping[str, Json]
    core: dict[str, CoreBlock]
    items: list[Item] = field(default_factory=list[Item])
    recalled: list[Found] = field(default_factory=list[Found])
    paused: bool = False

    @property
    def said(self) -> str:
        """What was said last."""
        return next((item.text for item in reversed(self.items) if isinstance(item, Said)), "")

    @property
    def since(self) -> list[Item]:
        """What happened since then."""
        places = [place for place, item in enumerate(self.items) if isinstance(item, Said)]
        return self.items[places[-1] + 1 :] if places else self.items

    @property
    def done(self) -> list[Done]:
        return [item for item in self.since if isinstance(item, Done)]

    def did(self, name: str, arguments: Json) -> Done | None:
        """The result of this very call, if it was made since."""
        return next((done for done in self.done if done.name == name and done.input == arguments), None)


def read(params: Json) -> Scene:
    scene = Scene({str(tool.get("name")): tool for tool in params.get("tools") or ()}, _core(params.get("system")))
    open_calls: dict[str, Json] = {}
    messages = cast("list[Json]", params["messages"])
    for message in messages:
        said: list[str] = []
        for block in _as_blocks(message["content"]):
            if block.get("type") == "tool_use":
                open_calls[str(block.get("id"))] = block
            elif block.get("type") == "tool_result":
                _read_result(scene, block, open_calls)
            elif message["role"] == "user" and block.get("type") == "text":
                _read_text(scene, block["text"], said)
    scene.paused = messages[-1]["role"] == "assistant"
    return scene


def _read_result(scene: Scene, block: Json, open_calls: dict[str, Json]) -> None:
    inner = blocks.result_content(block)
    asides = [each for each in inner if _is_aside(each)]
    text = "\n".join(blocks.text_of(each) for each in inner if each not in asides)
    call = open_calls.pop(str(block.get("tool_use_id")), {})
    done = Done(str(call.get("name", "")), call.get("input") or {}, _armed(text), bool(block.get("is_error")))
    scene.items.append(done)
    _apply(scene.core, done)
    for aside in asides:
        _read_aside(scene, aside["text"])


def _read_text(scene: Scene, text: str, said: list[str]) -> None:
    """A text block of a user message; `said` holds what stands before it in the same message."""
    if _ASIDE.match(text):
        _read_aside(scene, text)
    elif text.strip():
        if said and isinstance(scene.items[-1], Said):
            scene.items.pop()
        elif not said:
            scene.recalled.clear()
        said.append(_armed(text))
        scene.items.append(Said("\n".join(said)))


def _is_aside(block: Json) -> bool:
    return block.get("type") == "text" and bool(_ASIDE.match(block["text"]))


def _read_aside(scene: Scene, text: str) -> None:
    if text.startswith("<notice>The window"):
        scene.items.append(Notice())
    elif text.startswith("<recalled>"):
        scene.recalled = found(text)
    elif text.startswith("<core_update"):
        scene.core.update(_blocks_in(text))


def _as_blocks(content: Any) -> list[Json]:
    return [blocks.text_block(content)] if isinstance(content, str) else cast("list[Json]", content)


def _armed(text: str) -> str:
    return text.replace("&lt;", "<")


# core


def _core(system: Any) -> dict[str, CoreBlock]:
    text = "\n".join(str(block.get("text", "")) for block in _as_blocks(system or []))
    cores = _CORE.findall(text)
    return dict(_blocks_in(cores[-1])) if cores else {}


def _blocks_in(text: str) -> Iterator[tuple[str, CoreBlock]]:
    for match in _BLOCK.finditer(text):
        attributes = dict(_ATTRIBUTE.findall(match[2]))
        name = html.unescape(attributes.get("name", ""))
        yield name, CoreBlock(_armed(match[3]), attributes.get("read_only") == "true")


def _apply(core: dict[str, CoreBlock], done: Done) -> None:
    """A core edit that was made since core was rendered: the tool answers with the block as it then read."""
    if done.is_error or not done.name.startswith("core_"):
        return
    if match := _NOW_READS.search(done.result):
        core.setdefault(match[1], CoreBlock("")).text = match[2]


# results


def found(text: str) -> list[Found]:
    """The pages in a result, in its order: JSON, or lines that begin with a page id."""
    listed = _from_json(text)
    if listed is not None:
        return listed
    result: list[Found] = []
    for line in text.splitlines():
        if match := _ENTRY.match(line):
            heading, _, rest = line[match.end() :].partition(": ")
            result.append(Found(match[1], rest.strip() or heading.strip(" :"), heading.strip()))
        elif result and line.strip() and not line.startswith(("(", "<")):
            last = result.pop()
            result.append(Found(last.page_id, f"{last.text}\n{line}", last.heading))
    return result


def _from_json(text: str) -> list[Found] | None:
    if text[:1] not in ("[", "{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    rows = cast("Sequence[Any]", value if isinstance(value, list) else [value])
    result: list[Found] = []
    for row in rows:
        if isinstance(row, dict):
            said = cast(Json, row)
            page_id, body = said.get("page_id") or said.get("id"), said.get("text") or said.get("excerpt")
            if page_id and body:
                since = said.get("valid_from")
                result.append(Found(str(page_id), str(body), f"since {since}" if since else ""))
    return result
