"""What each address of the debug view answers: plain data for JSON, out of one agent's reading.

    >>> answer(reading, "facts", {"kind": "current", "offset": "200"})

The names in `ANSWERS` are the addresses; what they take is in the query, as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any, cast

from agents.explain import pieces, snapshot
from agents.explain.columns import MOST_COLUMNS, columns
from agents.explain.costs import costs
from agents.explain.diffs import lines_changed
from agents.explain.snapshot import archived, used
from agents.explain.trace import answering, trace
from agents.explain.window_parts import PARTS
from pager.errors import NotFoundError
from pager.reader import MemoryReader
from pager.store.rows import Rows
from pager.types import Json

PART_CHARS = 1_500  # of a piece of a request; the whole of it is asked for by itself
NEWEST = 60  # pieces of a conversation that are told at first
ROWS = 100
Query = Mapping[str, str]


def answer(reading: MemoryReader, name: str, query: Query) -> Any:
    if name not in ANSWERS:
        raise NotFoundError(f"there is nothing at {name!r}; there are {', '.join(ANSWERS)}.")
    return plain(ANSWERS[name](reading, query))


def plain(value: Any) -> Any:
    """For JSON: data classes as objects, moments in ISO 8601."""
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return plain({field: getattr(value, field) for field in value.__dataclass_fields__})
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return value


# one moment


def _now(reading: MemoryReader, query: Query) -> Json:
    """The window, and the requests before and after."""
    at = _at(reading, query)
    window = snapshot.window_at(reading, at)
    before, after = reading.inspect.around(at) if at else (_newest(reading), None)
    return {"at": at, "before": before, "after": after, "window": {**asdict(window), "free_tokens": window.free_tokens}}


def _newest(reading: MemoryReader) -> str | None:
    last = reading.inspect.requests(1)
    return f"s{last[0].answered.step}" if last else None


def _columns(reading: MemoryReader, query: Query) -> Json:
    limit = min(MOST_COLUMNS, _number(query, "limit", MOST_COLUMNS))
    return {"parts": PARTS, "columns": columns(reading, limit, query.get("through") or None)}


def _request(reading: MemoryReader, query: Query) -> Json:
    """The newest pieces of a request (or `all`), and what is different from the one before."""
    at = _at(reading, query)
    change = pieces.between(reading, reading.inspect.around(at)[0] if at else _newest(reading), at)
    prefix = [piece for piece in change.pieces if piece.step is None]
    rest = change.pieces[len(prefix) :]
    shown = rest if query.get("all") else rest[-NEWEST:]
    moved = {name: [{"piece": _shortened(move.piece), "why": move.why} for move in getattr(change, name)]
             for name in ("entered", "left")}  # fmt: skip
    changed = [
        {"piece": _shortened(each.after), "why": each.why, "lines": lines_changed(each.before.text, each.after.text)}
        for each in change.changed
    ]
    told = {"before": change.before, "opened": change.opened, "kept": change.kept, **moved, "changed": changed}
    return {
        "at": at,
        "total": len(change.pieces),
        "tokens": sum(piece.tokens for piece in change.pieces),
        "earlier": len(rest) - len(shown),
        "prefix": [_shortened(piece) for piece in prefix],
        "pieces": [_shortened(piece) for piece in shown],
        "change": told,
    }


def _shortened(piece: pieces.PromptPiece) -> Json:
    told = asdict(piece)
    return {**told, "text": piece.text[:PART_CHARS], "characters": len(piece.text)}


def _piece(reading: MemoryReader, query: Query) -> Json:
    """One piece of a request, whole."""
    found = [piece for piece in pieces.pieces(reading, _at(reading, query)) if piece.key == query.get("key")]
    if not found:
        raise NotFoundError(f"this request has no piece {query.get('key')!r}.")
    return asdict(found[0])


def _raw(reading: MemoryReader, query: Query) -> Json:
    """The request as it was sent."""
    at = _at(reading, query)
    if at is None:
        raise NotFoundError("only a request that was answered is known as it was sent; name its step.")
    return reading.history.rebuild(at)


def _trace(reading: MemoryReader, query: Query) -> Json:
    told = trace(reading, query.get("text", ""), query.get("at") or None)
    return {**asdict(told), "present": told.verdict.present, "known": told.known}


# lists


def _core(reading: MemoryReader, query: Query) -> Json:
    """The blocks with all their versions, newest first, each with what it changed."""
    blocks: list[Json] = []
    for block in snapshot.take(reading, _at(reading, query)).core.blocks:
        history = reading.inspect.core_history(block.name)
        before = ["", *(version.block.value for version in history)]
        versions = [
            {"ordinal": known.ordinal, "at": known.block.at, "step": f"s{known.step}", "actor": known.block.actor,
             "used_tokens": known.block.used_tokens, "lines": lines_changed(old, known.block.value)}
            for known, old in zip(history, before, strict=False)
        ][-ROWS:]  # fmt: skip
        blocks.append({**asdict(block), "versions": versions[::-1]})
    return {"blocks": blocks}


def _steps(reading: MemoryReader, query: Query) -> Json:
    return _listed(reading.inspect.steps(*_span(query)))


def _facts(reading: MemoryReader, query: Query) -> Json:
    offset, limit = _span(query)
    kind, text = query.get("kind") or "all", query.get("text", "")
    found = reading.inspect.facts(kind, text=text, offset=offset, limit=limit)
    return {"total": found.total, "rows": [{**asdict(used(use)), "step": f"s{use.fact.step}", "actor": use.fact.actor}
                                           for use in found.rows]}  # fmt: skip


def _ledger(reading: MemoryReader, query: Query) -> Json:
    offset, limit = _span(query)
    events = [event for event in query.get("events", "").split(",") if event]
    found = reading.inspect.movements(events, offset=offset, limit=limit)
    return {"total": found.total, "rows": [snapshot.moved(row) for row in found.rows]}


def _events(reading: MemoryReader, _: Query) -> Json:
    return {"events": reading.inspect.events()}


def _searches(reading: MemoryReader, query: Query) -> Json:
    """Searches with the texts of what they found and missed."""
    offset, limit = _span(query)
    found = reading.inspect.movements(["search"], offset=offset, limit=limit)
    rows = [{**asdict(snapshot.moved(row)), "found": _hits(reading, row.detail.get("found")),
             "missed": _hits(reading, row.detail.get("missed"))} for row in found.rows]  # fmt: skip
    return {"total": found.total, "rows": rows}


def _hits(reading: MemoryReader, rows: Any) -> list[Json]:
    return [{"page_id": page, "score": score, "parts": parts, "text": _text_of(reading, page)[:240]}
            for page, score, parts in rows or ()]  # fmt: skip


def _text_of(reading: MemoryReader, page: str) -> str:
    try:
        return reading.page(page)
    except NotFoundError as error:  # it was purged
        return str(error)


def _costs(reading: MemoryReader, query: Query) -> Json:
    told = costs(reading, *_span(query))
    return {"sum": told.total, "usd": told.usd, **_listed(told.requests)}


def _page(reading: MemoryReader, query: Query) -> Json:
    """A page as it is read; of one that was purged, that it was."""
    page = query.get("id", "")
    told: Json = {"page_id": page, "pinned": page in {pin.page_id for pin in reading.inspect.pins()}}
    if page.startswith("f"):
        fact = reading.fact(page)
        versions = reading.history.fact_versions(fact.key) if fact.key else [fact]
        about = {**asdict(archived(fact)), "step": f"s{fact.step}", "actor": fact.actor}
        told |= {"fact": about, "versions": [asdict(archived(known)) for known in versions]}
    elif page.startswith("s"):
        told |= {"step": asdict(reading.inspect.step(page))}
    else:
        told |= {"text": reading.page(page)}
    return {"text": _text_of(reading, page), **told}


def _listed(found: Rows[Any]) -> Json:
    return {"total": found.total, "rows": found.rows}


# the query


def _at(reading: MemoryReader, query: Query) -> str | None:
    at = query.get("at")
    return answering(reading, at) if at else None


def _span(query: Query) -> tuple[int, int]:
    return max(0, _number(query, "offset", 0)), min(ROWS, _number(query, "limit", ROWS))


def _number(query: Query, name: str, default: int) -> int:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else default


ANSWERS: dict[str, Callable[[MemoryReader, Query], Json]] = {
    "now": _now, "columns": _columns, "request": _request, "piece": _piece, "raw": _raw, "trace": _trace,
    "core": _core, "steps": _steps, "facts": _facts, "ledger": _ledger, "events": _events, "searches": _searches,
    "costs": _costs, "page": _page,
}  # fmt: skip
