"""A request taken apart, block by block; and what entered, left or changed from one request to another. Pure.

The texts are those of the request: joined, they are what `History.rebuild` returns. The tokens add up to what the
provider counted.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pager import blocks
from pager.inspect.window import part_name, share_out
from pager.prompt.state import PromptState
from pager.store.rows import Epoch, Part, Step
from pager.tokens.counter import Counter
from pager.types import Counts, Json, Movement

MOVEMENTS = ("evict", "drop", "epoch")  # the events of the ledger that explain a difference
MOST_MOVEMENTS = 400
ONE_REQUEST_ONLY = {  # pieces that stand behind one message, and why they entered
    "recalled pages": "the facts and earlier turns that fit this message best",
    "notice": "the agent is told that the window fills",
    "update": "a change that the agent did not make itself",
}


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """A block of a request, with the same `key` in every request. `page_id` is the page of which it is a part."""

    key: str
    part: str
    title: str
    page_id: str | None
    step: str | None
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class MovedPiece:
    """A piece that entered or left, and why."""

    piece: PromptPiece
    why: str


@dataclass(frozen=True, slots=True)
class ChangedPiece:
    """A piece that is in both requests with different texts, and why."""

    before: PromptPiece
    after: PromptPiece
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    """The difference of requests. `opened` is the reason for a new epoch; `pieces` are those of the later request."""

    before: str | None
    after: str | None
    opened: str
    entered: tuple[MovedPiece, ...]
    left: tuple[MovedPiece, ...]
    changed: tuple[ChangedPiece, ...]
    unchanged: int
    pieces: tuple[PromptPiece, ...]


def pieces_of(state: PromptState, counter: Counter) -> tuple[PromptPiece, ...]:
    """Return the pieces of a request in their order."""
    pieces = _prefix(state.epoch, counter) if state.epoch else []
    for step in state.steps:
        pieces += _step_pieces(step, counter)
    shares = share_out(state.size(counter).tokens, [piece.tokens for piece in pieces])
    return tuple(replace(piece, tokens=tokens) for piece, tokens in zip(pieces, shares, strict=True))


def _prefix(epoch: Epoch, counter: Counter) -> list[PromptPiece]:
    """Return tools, system and preamble. Each block of the preamble says itself if it is digest, pin or request."""
    members: dict[str, list[tuple[str, str | None, str]]] = {}  # part of the window -> title, page, text
    for tool in epoch.tools:
        title = f"tool {tool.get('name') or tool.get('type', '')}"
        members.setdefault("tools", []).append((title, None, _indented_json(tool)))
    members["instructions"] = [("instructions", None, _text(block)) for block in epoch.system[:1]]
    members |= {"core": [], "digest": [], "pinned": [], "request": []}
    for block in [*epoch.system[1:], *epoch.preamble]:
        text = _text(block)
        page = _page_attribute(text)
        request = members["request"]
        if not request and text.startswith("<core>"):
            members["core"].append(("core", None, text))
        elif not request and text.startswith("<digest>"):
            members["digest"].append(("digest of the steps that left", None, text))
        elif not request and text.startswith("<pinned "):
            members["pinned"].append((f"pinned {page}", page, text))
        else:
            page = page if text.startswith("<request ") or not request else request[-1][1]
            request.append((f"the request of {page}", page, text))
    pieces: list[PromptPiece] = []
    for part, found in members.items():
        tokens = counter.tokens(epoch.sizes.get(part, Counts()))
        shares = share_out(tokens, [len(text) for _, _, text in found])  # by lengths: only the sum was counted
        for place, ((title, page, text), share) in enumerate(zip(found, shares, strict=True)):
            key = title if part in ("tools", "pinned") else f"{page or ''}{place or ''}"
            pieces.append(PromptPiece(f"{part}:{key}", part, title, page, None, share, text))
    return pieces


def _page_attribute(text: str) -> str | None:
    _, found, rest = text.partition('page_id="')
    return rest.partition('"')[0] if found else None


def _step_pieces(step: Step, counter: Counter) -> Iterator[PromptPiece]:
    tools = {str(part.form.get("id")): str(part.form.get("name")) for part in step.parts if part.form}
    order = {"user": 0, "reply": 1, "result": 2}  # what was said comes last in a user message
    for part in sorted(step.parts, key=lambda part: (order[part.slot], part.slot == "user" and part.kind == "said")):
        if part.form:
            text, page = _text(part.form), f"s{step.id}"
            if part.kind == "update" and text.startswith("<pinned "):
                page = _page_attribute(text)
            elif "<spilled page_id=" in text:
                page = f"x{part.id}"
            title, tokens = _title(step, part, part.form, tools), counter.tokens(part.counts)
            yield PromptPiece(f"part:{part.id}", part_name(part), title, page, f"s{step.id}", tokens, text)


def _title(step: Step, part: Part, form: Json, tools: Mapping[str, str]) -> str:
    if part.kind != "said":
        return {"recalled": "recalled pages", "notice": "notice", "update": "update"}[part.kind]
    if part.slot == "user":
        return step.name or "user"
    if part.slot == "result":
        return f"{'error' if form.get('is_error') else 'result'} of {tools.get(str(form.get('tool_use_id')), 'a tool')}"
    kind = str(form.get("type"))
    if kind.endswith("tool_use"):
        return f"agent calls {form.get('name')}"
    if kind.endswith("_tool_result"):
        return f"result of {tools.get(str(form.get('tool_use_id')), kind.removesuffix('_tool_result'))}"
    return "agent" if kind == "text" else f"agent, {kind}"


def _text(block: Json) -> str:
    """Return the text of a block as a person reads it; for a block without text its JSON."""
    if str(block.get("type")).endswith("tool_use"):
        return _indented_json(block.get("input") or {})
    return blocks.text_of(block) or _indented_json(block)


def _indented_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def change_between(
    before: str | None, after: str | None, old: Sequence[PromptPiece], new: Sequence[PromptPiece],
    movements: Sequence[Movement], *, epoch_changed: bool,
) -> Change:  # fmt: skip
    """Return the difference between the pieces of two requests. `movements` are those before the later one."""
    opened = next((row.reason for row in reversed(movements) if row.event == "epoch"), "") if epoch_changed else ""
    was, now = ({piece.key: piece for piece in pieces} for pieces in (old, new))
    both = [(was[key], piece) for key, piece in now.items() if key in was]
    changed = [ChangedPiece(*pair, _why_changed(pair[1], opened)) for pair in both if pair[0].text != pair[1].text]
    entered = [MovedPiece(piece, _why_entered(piece, opened)) for key, piece in now.items() if key not in was]
    left = [MovedPiece(piece, _why_left(piece, movements, opened)) for key, piece in was.items() if key not in now]
    unchanged = len(both) - len(changed)
    return Change(before, after, opened, tuple(entered), tuple(left), tuple(changed), unchanged, tuple(new))


def _why_entered(piece: PromptPiece, opened: str) -> str:
    kind = piece.key.partition(":")[0]
    if kind == "part":
        return ONE_REQUEST_ONLY.get(piece.title) or f"said in {piece.step}"
    if kind == "request":
        return "its step left before it was answered"
    return _by_new_epoch(opened, "the first request")


def _why_left(piece: PromptPiece, movements: Sequence[Movement], opened: str) -> str:
    for row in reversed(movements):
        if row.page_id == piece.step and row.event in ("evict", "drop"):
            return f"{piece.step} left: {row.reason}"
    if piece.title in ONE_REQUEST_ONLY or "thinking" in piece.title:
        return "only for the moment: a new epoch drops it"
    return _by_new_epoch(opened, "it is no longer part of the prompt")


def _why_changed(piece: PromptPiece, opened: str) -> str:
    if piece.part == "core" and piece.key.startswith("core:"):
        return "core is written anew when an epoch opens"
    if piece.page_id and piece.page_id.startswith("x"):
        return f"too large: only its ends stay, the rest is the page {piece.page_id}"
    return _by_new_epoch(opened, "it is sent in another form")


def _by_new_epoch(opened: str, otherwise: str) -> str:
    return f"a new epoch began: {opened}" if opened else otherwise
