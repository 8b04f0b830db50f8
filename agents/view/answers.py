"""The answers of the debug view's addresses for one agent, as plain data for JSON.

    >>> answer(reader, "facts", {"kind": "current", "offset": "200"})

The names in `ANSWERS` are the addresses. What they take is in the query, as text.
"""

from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from itertools import product
from typing import Any

from agents.explain import AnyMemory
from agents.explain.costs import costs
from agents.explain.json_form import to_json
from agents.explain.snapshot import core_tier
from agents.explain.trace import MOST, trace
from pager.errors import NotFoundError
from pager.inspect import MOST_COLUMNS, PARTS, PromptPiece
from pager.types import Json

PIECE_CHARS = 1_500  # of a piece of a request in a list; the address `piece` returns the whole
HIT_CHARS = 240
NEWEST_PIECES = 60  # of a conversation, unless all are asked for
ROWS = 100
CONTEXT_LINES = 2
MOST_LINES = 400  # of each text whose difference is shown; of a longer one the beginning
Query = Mapping[str, str]


def answer(reader: AnyMemory, name: str, query: Query) -> Any:
    """Return what an address returns. Raises NotFoundError if there is no such address."""
    if name not in ANSWERS:
        raise NotFoundError(f"there is nothing at {name!r}; there are {', '.join(ANSWERS)}.")
    return to_json(ANSWERS[name](reader, query))


def _now(reader: AnyMemory, query: Query) -> Json:
    at = _at(reader, query)
    before, after = reader.inspect.neighbouring_requests(at) if at else (_newest(reader), None)
    return {"at": at, "before": before, "after": after, "window": reader.inspect.window(at)}


def _columns(reader: AnyMemory, query: Query) -> Json:
    limit = min(MOST_COLUMNS, _number(query, "limit", MOST_COLUMNS))
    return {"parts": PARTS, "columns": reader.inspect.columns(limit, query.get("through") or None)}


def _request(reader: AnyMemory, query: Query) -> Json:
    at = _at(reader, query)
    change = reader.inspect.change(reader.inspect.neighbouring_requests(at)[0] if at else _newest(reader), at)
    prefix = [piece for piece in change.pieces if piece.step is None]
    conversation = change.pieces[len(prefix) :]
    shown = conversation if query.get("all") else conversation[-NEWEST_PIECES:]
    return {
        "at": at,
        "total": len(change.pieces),
        "tokens": sum(piece.tokens for piece in change.pieces),
        "earlier": len(conversation) - len(shown),
        "prefix": [_shortened(piece) for piece in prefix],
        "pieces": [_shortened(piece) for piece in shown],
        "change": {
            "before": change.before,
            "opened": change.opened,
            "unchanged": change.unchanged,
            "entered": [{"piece": _shortened(each.piece), "why": each.why} for each in change.entered],
            "left": [{"piece": _shortened(each.piece), "why": each.why} for each in change.left],
            "changed": [
                {"piece": _shortened(new), "why": each.why, "lines": changed_lines(each.before.text, new.text)}
                for each, new in ((each, each.after) for each in change.changed)
            ],
        },
    }


def _shortened(piece: PromptPiece) -> Json:
    return {**to_json(piece), "text": piece.text[:PIECE_CHARS], "characters": len(piece.text)}


def _piece(reader: AnyMemory, query: Query) -> PromptPiece:
    for piece in reader.inspect.pieces(_at(reader, query)):
        if piece.key == query.get("key"):
            return piece
    raise NotFoundError(f"this request has no piece {query.get('key')!r}.")


def _raw(reader: AnyMemory, query: Query) -> Json:
    at = _at(reader, query)
    if at is None:
        raise NotFoundError("only a request that was answered is stored as it was sent; name its step.")
    return reader.history.rebuild(at)


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Return lines with '-' (only before), '+' (only after), ' ' (both) or '~' (the number of lines left out)."""
    old, new = before.splitlines()[:MOST_LINES], after.splitlines()[:MOST_LINES]
    lines, shown = list[tuple[str, str]](), 0
    for group in SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        lines += [("~", str(group[0][1] - shown))] if group[0][1] > shown else []
        for kind, i, j, k, m in group:
            if kind == "equal":
                lines += [(" ", line) for line in old[i:j]]
            else:
                lines += [("-", line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
        shown = group[-1][2]
    return [*lines, ("~", str(len(old) - shown))] if shown < len(old) else lines


def _core(reader: AnyMemory, query: Query) -> Json:
    blocks: list[Json] = []
    tier = core_tier(reader, _at(reader, query))
    for block in tier.blocks:
        history = reader.history.core_versions(block.name)
        before = ["", *(version.block.value for version in history)]
        versions = [
            {"ordinal": version.ordinal, "step": version.step, "lines": changed_lines(old, version.block.value)}
            | {name: getattr(version.block, name) for name in ("at", "actor", "used_tokens")}
            for version, old in list(zip(history, before, strict=False))[-ROWS:]
        ]
        plan = tier.plans.get(block.name)
        blocks.append({**to_json(block), "plan": str(plan) if plan else "", "versions": versions[::-1]})
    return {"blocks": blocks}


def _searches(reader: AnyMemory, query: Query) -> Json:
    found = reader.inspect.movements(["search"], **_span(query))
    rows: list[Json] = [to_json(row) for row in found.rows]
    for row, name in product(rows, ("found", "missed")):
        row[name] = [
            {"page_id": page, "score": score, "parts": parts, "text": _text_of(reader, page)[:HIT_CHARS]}
            for page, score, parts in row["detail"].get(name) or ()
        ]
    return {"total": found.total, "rows": rows}


def _text_of(reader: AnyMemory, page: str) -> str:
    try:
        return reader.page_text(page)
    except NotFoundError as error:  # it was purged
        return str(error)


def _costs(reader: AnyMemory, query: Query) -> Json:
    found = costs(reader, **_span(query))
    return {"sum": found.total, "usd": found.usd, **to_json(found.requests)}


def _page(reader: AnyMemory, query: Query) -> Json:
    """Return a page as it is read, or that it was purged."""
    page = query.get("id", "")
    data: Json = {"page_id": page, "pinned": page in {pin.page_id for pin in reader.inspect.pins()}}
    if page.startswith("f"):
        fact = reader.fact(page)
        data |= {"fact": fact, "versions": reader.history.fact_versions(fact.key) if fact.key else [fact]}
    elif page.startswith("s"):
        data |= {"step": reader.inspect.step(page)}
    else:
        data |= {"text": reader.page_text(page)}
    return {"text": _text_of(reader, page), **data}


def _at(reader: AnyMemory, query: Query) -> str | None:
    at = query.get("at")
    return reader.inspect.reply_for(at) if at else None


def _newest(reader: AnyMemory) -> str | None:
    last = reader.inspect.requests(0, 1).rows
    return last[0].step if last else None


def _span(query: Query, limit: int = ROWS) -> dict[str, int]:
    return {"offset": _number(query, "offset", 0), "limit": min(ROWS, _number(query, "limit", limit))}


def _number(query: Query, name: str, default: int) -> int:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else default


ANSWERS: dict[str, Callable[[AnyMemory, Query], Any]] = {
    "now": _now, "columns": _columns, "request": _request, "piece": _piece, "raw": _raw, "core": _core,
    "trace": lambda reader, query: trace(
        reader, query.get("text", ""), query.get("at") or None, limit=max(1, _span(query, MOST)["limit"])
    ),
    "steps": lambda reader, query: reader.inspect.steps(**_span(query)),
    "facts": lambda reader, query: reader.inspect.facts(
        query.get("kind") or "all", text=query.get("text", ""), source=query.get("source", ""), **_span(query)
    ),
    "sources": lambda reader, _: {"sources": reader.inspect.sources()},
    "ledger": lambda reader, query: reader.inspect.movements(
        [event for event in query.get("events", "").split(",") if event], **_span(query)
    ),
    "events": lambda reader, _: {"events": reader.inspect.events()}, "searches": _searches, "costs": _costs,
    "page": _page,
}  # fmt: skip
