"""One request, piece by piece, and what is different from the one before. Pure functions over a `pager.MemoryReader`.

    >>> now = pieces(reading)                  # what the next request would hold
    >>> then = pieces(reading, at="s45")       # what the request held that the reply s45 answered
    >>> change = between(reading, "s43", "s45")
    >>> change.entered, change.left, change.opened

The texts are those of the request, so joined they are what `rebuild` gives; tokens add up to what the provider said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.explain.window_parts import fitted, model_of, part_of
from pager import blocks
from pager.prompt.state import PromptState
from pager.reader import MemoryReader
from pager.store.rows import Part, Step
from pager.tokens.counter import Counter
from pager.types import Json, Movement

MOST_MOVED = 400  # rows of the ledger that are asked why something left
MOMENTARY = {
    "recalled facts": "the facts that fit this message best",
    "notice": "the agent is told that the window fills",
    "update": "a change that the agent did not make itself",
}


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """A block of the request. `key` is the same for the same piece in another request, `part` names the part of the
    window it counts to, and `page_id` the page that it is (of) or shows."""

    key: str
    part: str
    title: str
    page_id: str | None
    step: str | None
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class PieceMove:
    """A piece that entered or left, and why."""

    piece: PromptPiece
    why: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A piece that stands in both requests and reads otherwise."""

    before: PromptPiece
    after: PromptPiece
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one request in the next. `opened` says why a new epoch was needed, empty when none was."""

    before: str | None
    after: str | None
    opened: str
    entered: tuple[PieceMove, ...]
    left: tuple[PieceMove, ...]
    changed: tuple[Changed, ...]
    kept: int
    pieces: tuple[PromptPiece, ...]  # of the later one


def pieces(reading: MemoryReader, at: str | None = None) -> tuple[PromptPiece, ...]:
    """The pieces of a request in their order: of the next one, or of the one that the reply `at` answered."""
    view = reading.history.prompt(at)
    return of_view(view, reading.history.counter(model_of(view)))


def of_view(view: PromptState, counter: Counter) -> tuple[PromptPiece, ...]:
    found = [*_prefix(view, counter), *(piece for step in view.steps for piece in _of_step(step, counter))]
    shares = fitted([piece.tokens for piece in found], view.size(counter).tokens)
    return tuple(replace(piece, tokens=tokens) for piece, tokens in zip(found, shares, strict=True))


# the prefix


def _prefix(view: PromptState, counter: Counter) -> list[PromptPiece]:
    epoch = view.epoch
    if epoch is None:
        return []
    sizes = {name: counter.tokens(counts) for name, counts in epoch.sizes.items()}
    found: list[PromptPiece] = []
    if epoch.tools:
        found += _sized("tools", sizes, [(_tool_title(tool), None, _pretty(tool)) for tool in epoch.tools])
    names = ("instructions", "core")
    for name, block in zip(names, epoch.system, strict=False):
        found += _sized(name, sizes, [(name, None, str(block["text"]))])
    return found + _preamble(epoch.preamble, sizes)


def _tool_title(tool: Json) -> str:
    return f"tool {tool.get('name') or tool.get('type', '')}"


def _preamble(preamble: Sequence[Json], sizes: dict[str, int]) -> list[PromptPiece]:
    """Digest, pinned pages, and the request that has left: the blocks say themselves which they are."""
    groups: dict[str, list[tuple[str, str | None, str]]] = {"digest": [], "pinned": [], "request": []}
    for block in preamble:
        text = _shown(block)
        page = _attribute(text, "page_id")
        if not groups["request"] and text.startswith("<digest>"):
            groups["digest"].append(("digest of the steps that left", None, text))
        elif not groups["request"] and text.startswith("<pinned "):
            groups["pinned"].append((f"pinned {page}", page, text))
        else:
            opens = text.startswith("<request ")
            known = page if opens or not groups["request"] else groups["request"][-1][1]
            groups["request"].append((f"the request of {known}", known, text))
    return [piece for name, members in groups.items() for piece in _sized(name, sizes, members)]


def _attribute(text: str, name: str) -> str | None:
    _, found, rest = text.partition(f'{name}="')
    return rest.partition('"')[0] if found else None


def _sized(part: str, sizes: dict[str, int], members: Sequence[tuple[str, str | None, str]]) -> list[PromptPiece]:
    """Pieces of which only the sum was counted share it by their lengths."""
    shares = fitted([len(text) for _, _, text in members], sizes.get(part, 0))
    found: list[PromptPiece] = []
    for place, ((title, page, text), tokens) in enumerate(zip(members, shares, strict=True)):
        unique = title if part in ("tools", "pinned") else f"{page or ''}{place or ''}"
        found.append(PromptPiece(f"{part}:{unique}", part, title, page, None, tokens, text))
    return found


# the conversation


def _of_step(step: Step, counter: Counter) -> list[PromptPiece]:
    called = {str(form.get("id")): str(form.get("name")) for part in step.parts if (form := part.form or {})}
    return [
        PromptPiece(
            f"part:{part.id}", part_of(part), _title(step, part, called), _page(step, part), f"s{step.id}",
            counter.tokens(part.counts), _shown(part.form),
        )
        for part in _in_order(step.parts)
        if part.form
    ]  # fmt: skip


def _in_order(parts: Iterable[Part]) -> list[Part]:
    """As the messages have them: the reply, then all results."""
    return sorted(parts, key=lambda part: part.slot == "result")


def _title(step: Step, part: Part, called: Mapping[str, str]) -> str:
    form = part.form or {}
    kind = str(form.get("type"))
    if part.kind != "said":
        return {"recalled": "recalled facts", "notice": "notice", "update": "update"}[part.kind]
    if part.slot == "user":
        return step.name or "user"
    if part.slot == "result":
        tool = called.get(str(form.get("tool_use_id")), "a tool")
        return f"{'error' if form.get('is_error') else 'result'} of {tool}"
    return {"text": "agent", "tool_use": f"agent calls {form.get('name')}"}.get(kind, f"agent, {kind}")


def _page(step: Step, part: Part) -> str | None:
    shown = _shown(part.form or {})
    if part.kind == "update" and shown.startswith("<pinned "):
        return _attribute(shown, "page_id")
    return f"x{part.id}" if "<spilled page_id=" in shown else f"s{step.id}"


def _shown(block: Json) -> str:
    """What a person would read in it; the JSON of what has no text."""
    kind = block.get("type")
    if kind == "tool_use":
        return _pretty(block.get("input") or {})
    return blocks.text_of(block) or _pretty(block)


def _pretty(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# what is different


def between(reading: MemoryReader, before: str | None, after: str | None) -> Change:
    """What entered and left from one request to a later one (None: the next one to come), and why."""
    with reading.at_one_moment():
        views = [reading.history.prompt(before) if before else PromptState(), reading.history.prompt(after)]
        was, now = ({piece.key: piece for piece in of_view(v, reading.history.counter(model_of(v)))} for v in views)
        moved = reading.ledger(events=["evict", "drop", "epoch"], limit=MOST_MOVED, at=after)
    epochs = [view.epoch.id if view.epoch else 0 for view in views]
    opened = _why_opened(moved) if epochs[0] != epochs[1] else ""
    entered = [PieceMove(piece, _why_entered(piece, opened)) for key, piece in now.items() if key not in was]
    left = [PieceMove(piece, _why_left(piece, moved, opened)) for key, piece in was.items() if key not in now]
    both = [(was[key], piece) for key, piece in now.items() if key in was]
    changed = [Changed(*pair, _why_changed(pair[1], opened)) for pair in both if pair[0].text != pair[1].text]
    kept = len(both) - len(changed)
    return Change(before, after, opened, tuple(entered), tuple(left), tuple(changed), kept, tuple(now.values()))


def _why_opened(moved: Sequence[Movement]) -> str:
    return next((row.reason for row in reversed(moved) if row.event == "epoch"), "")


def _why_entered(piece: PromptPiece, opened: str) -> str:
    kind = piece.key.partition(":")[0]
    if kind == "part":
        return MOMENTARY.get(piece.title) or f"said in {piece.step}"
    if kind == "request":
        return "its step left, and it is not answered yet"
    return f"a new epoch began: {opened}" if opened else "the first request"


def _why_left(piece: PromptPiece, moved: Sequence[Movement], opened: str) -> str:
    row = next((row for row in reversed(moved) if row.page_id == piece.step and row.event in ("evict", "drop")), None)
    if row is not None:
        return f"{piece.step} left: {row.reason}"
    if piece.title in MOMENTARY or "thinking" in piece.title:
        return "only for the moment: a new epoch drops it"
    return f"a new epoch began: {opened}" if opened else "it is no longer carried"


def _why_changed(piece: PromptPiece, opened: str) -> str:
    if piece.part == "core" and piece.key.startswith("core:"):
        return "core is written anew when an epoch opens"
    if piece.page_id and piece.page_id.startswith("x"):
        return f"too large: only its ends stay, the rest is the page {piece.page_id}"
    return f"a new epoch began: {opened}" if opened else "it is carried otherwise"
