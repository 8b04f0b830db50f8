"""The answers of the debug view's addresses for one agent, as plain data for JSON.

    >>> answer(reader, "facts", {"kind": "current", "offset": "200", "at": "s300"})

The names in `ANSWERS` are the addresses. What they take is in the query, as text. With `at` every list is that of the
request which this step answered.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

from agents.explain import AnyMemory
from agents.explain.costs import costs
from agents.explain.json_form import to_json
from agents.explain.scores import rounded
from agents.explain.snapshot import core_tier
from agents.explain.trace import MOST, trace
from agents.explain.trace_events import recalled_because
from agents.view import requests
from agents.view.requests import Query, changed_lines, moment, number
from pager import EmbedderUnavailableError
from pager.errors import NotFoundError
from pager.inspect import SaidPart, StepRow
from pager.sleep import Edit
from pager.types import Hit, Json

HIT_CHARS = 240
CALL_CHARS = 160  # of a call's input or result in a list
ROWS = 100
SLEEPS = 20
FOUND = 10  # hits of a search that is tried


def answer(reader: AnyMemory, name: str, query: Query) -> Any:
    """Return what an address returns. Raises NotFoundError if there is no such address."""
    if name not in ANSWERS:
        raise NotFoundError(f"there is nothing at {name!r}; there are {', '.join(ANSWERS)}.")
    return to_json(ANSWERS[name](reader, query))


def _core(reader: AnyMemory, query: Query) -> Json:
    tier, shown = core_tier(reader, moment(reader, query)), list[Json]()
    for block in tier.blocks:
        history = [version for version in reader.history.core_versions(block.name) if version.ordinal <= block.version]
        before = ["", *(version.block.value for version in history)]
        versions = [
            {"ordinal": version.ordinal, "step": version.step, "lines": changed_lines(old, version.block.value)}
            | {name: getattr(version.block, name) for name in ("at", "actor", "used_tokens")}
            for version, old in list(zip(history, before, strict=False))[-ROWS:]
        ]
        plan = tier.plans.get(block.name)
        shown.append({**to_json(block), "plan": str(plan) if plan else "", "versions": versions[::-1]})
    return {"blocks": shown}


def _steps(reader: AnyMemory, query: Query) -> Json:
    kind, text = query.get("kind") or "all", query.get("text", "")
    found = reader.inspect.steps(**_span(query), kind=kind, text=text, at=moment(reader, query))
    return {"total": found.total, "rows": [{**to_json(row), "calls": _calls(reader, row)} for row in found.rows]}


def _calls(reader: AnyMemory, row: StepRow) -> list[Json]:
    """Return the calls of a step with their results, both shortened."""
    if not row.calls:
        return []
    parts = reader.inspect.said_parts(row.page_id)
    results = {str(part.block.get("tool_use_id")): part for part in parts if part.slot == "result"}
    calls = [part.block for part in parts if part.block.get("type") == "tool_use"]
    return [_call(call, results.get(str(call.get("id")))) for call in calls]


def _call(call: Json, result: SaidPart | None) -> Json:
    given = ", ".join(f"{name}: {value}" for name, value in dict(call.get("input") or {}).items())
    return {
        "name": call.get("name"),
        "input": given[:CALL_CHARS],
        "result": None if result is None else result.text[:CALL_CHARS],
        "failed": result is not None and bool(result.block.get("is_error")),
    }


def _facts(reader: AnyMemory, query: Query) -> Any:
    kind, text, source = query.get("kind") or "all", query.get("text", ""), query.get("source", "")
    return reader.inspect.facts(kind, text=text, source=source, **_span(query), at=moment(reader, query))


def _ledger(reader: AnyMemory, query: Query) -> Any:
    events = [event for event in query.get("events", "").split(",") if event]
    found = reader.inspect.movements(events, **_span(query), at=moment(reader, query))
    rows = [{**to_json(row), "because": recalled_because(row) if row.event == "recall" else ""} for row in found.rows]
    return {"total": found.total, "rows": rows}


def _searches(reader: AnyMemory, query: Query) -> Json:
    found = reader.inspect.movements(["search"], **_span(query), at=moment(reader, query))
    rows: list[Json] = [to_json(row) for row in found.rows]
    for row, name in product(rows, ("found", "missed")):
        row[name] = _scored(reader, row["detail"].get(name) or ())
    return {"total": found.total, "rows": rows}


def find(searcher: AnyMemory, reader: AnyMemory, query: Query) -> Json:
    """Return what a search would find now, in the form of `searches`. The ledger does not note it. Where the searcher
    has not the agent's embedder, words alone answer."""
    tier, text, why = query.get("tier") or "memory", query.get("text", ""), ""
    try:
        hits = _search(searcher, tier, text)
    except EmbedderUnavailableError as error:
        hits, why = _search(reader, tier, text), str(error)
    found = _scored(reader, [(hit.page_id, hit.score, hit.parts) for hit in hits])
    return {"found": found, "missed": [], "detail": {"tier": tier, "query": text, "without_meaning": why}}


def _search(reader: AnyMemory, tier: str, text: str) -> Sequence[Hit]:
    if tier == "archive":
        return reader.search_archive(text, limit=FOUND)
    if tier == "recall":
        return reader.search_recall(text, limit=FOUND)
    if tier == "memory":
        return reader.search(text, limit=FOUND)
    raise NotFoundError(f"there is no tier {tier!r}; there are archive, recall and memory.")


def _scored(reader: AnyMemory, hits: Iterable[Any]) -> list[Json]:
    """Return hits with their texts, and scores whose parts add up as they are shown."""
    shown: list[Json] = []
    for page, *scored in hits:
        score, parts = rounded(*scored)
        shown.append({"page_id": page, "score": score, "parts": parts, "text": _text_of(reader, page)[:HIT_CHARS]})
    return shown


def _text_of(reader: AnyMemory, page: str) -> str:
    try:
        return reader.page_text(page)
    except NotFoundError as error:  # it was purged
        return str(error)


def _costs(reader: AnyMemory, query: Query) -> Json:
    found = costs(reader, **_span(query), at=moment(reader, query))
    return {"sum": found.total, "usd": found.usd, **to_json(found.requests)}


def _page(reader: AnyMemory, query: Query) -> Json:
    """Return a page as it is read, or that it was purged."""
    page = query.get("id", "")
    data: Json = {"page_id": page, "pinned": page in {pin.page_id for pin in reader.inspect.pins()}}
    if page.startswith("f"):
        fact = reader.fact(page)
        data |= {"fact": fact, "versions": reader.history.fact_versions(fact.key) if fact.key else [fact]}
    elif page.startswith("s"):
        row = reader.inspect.step(page)
        resident = page in {stay.page_id for stay in reader.history.resident(moment(reader, query))}
        data |= {"step": replace(row, resident=resident), "parts": [] if row.purged else _said(reader, page)}
    else:
        data |= {"text": reader.page_text(page)}
    return {"text": _text_of(reader, page), **data}


def _said(reader: AnyMemory, step: str) -> list[Json]:
    """Return what a step holds, each result behind its call."""
    parts = reader.inspect.said_parts(step)
    results = {str(part.block.get("tool_use_id")): part for part in parts if part.slot == "result"}
    ordered: list[tuple[str, SaidPart]] = []
    for part in parts:
        if part.block.get("type") == "tool_use":
            ordered.append((f"calls {part.block.get('name')}", part))
            with suppress(KeyError):
                result = results.pop(str(part.block.get("id")))
                ordered.append(("error" if result.block.get("is_error") else "result", result))
        elif part.slot != "result":
            kind = str(part.block.get("type"))
            ordered.append(("" if kind == "text" else kind, part))
    return [{"title": title, "text": _readable(part)} for title, part in ordered]


def _readable(part: SaidPart) -> str:
    if part.block.get("type") == "tool_use":
        return _indented(part.block.get("input") or {})
    return part.text or _indented(part.block)


def _indented(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _span(query: Query, limit: int = ROWS) -> dict[str, Any]:
    return {"offset": number(query, "offset", 0), "limit": min(ROWS, number(query, "limit", limit))}


def _trace(reader: AnyMemory, query: Query) -> Any:
    return trace(reader, query.get("text", ""), query.get("at") or None, limit=max(1, _span(query, MOST)["limit"]))


def _sleeps(reader: AnyMemory, query: Query) -> Json:
    """Return the newest proposals, each edit as a difference."""
    found = reader.sleeps.proposals(number(query, "limit", SLEEPS))
    shown = [{**to_json(each), "edits": [_sleep_edit(edit) for edit in each.edits]} for each in found]
    return {"sleeps": shown}


def _sleep_edit(edit: Edit) -> Json:
    if edit.block is not None:
        lines = changed_lines(edit.before[0] if edit.before else "", edit.value or "")
    else:
        left = [f"{page}: {text}" for page, text in zip(edit.pages, edit.before, strict=True)]
        lines = [("-", " ".join(line.split())) for line in left]
    lines += [("+", f"{fact.key}: {fact.text}" if fact.key else fact.text) for fact in edit.after]
    return {**to_json(edit), "lines": lines, "from": list(dict.fromkeys(map(str, edit.sources)))}


ANSWERS: dict[str, Callable[[AnyMemory, Query], Any]] = {
    "now": requests.window, "columns": requests.columns, "request": requests.request, "piece": requests.piece,
    "raw": requests.raw, "life": lambda reader, _: {"spans": reader.inspect.request_spans()},
    "core": _core, "steps": _steps, "facts": _facts, "ledger": _ledger, "searches": _searches,
    "sources": lambda reader, _: {"sources": reader.inspect.sources()},
    "events": lambda reader, query: {"events": reader.inspect.events(moment(reader, query))},
    "sleeps": _sleeps, "costs": _costs, "page": _page, "trace": _trace,
}  # fmt: skip
