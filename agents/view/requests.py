"""Answers about requests: the window over time, one request piece by piece, and the difference of any two."""

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from agents.explain import AnyMemory
from agents.explain.json_form import to_json
from agents.explain.trace_events import recalled_because
from pager.errors import NotFoundError
from pager.inspect import MOST_COLUMNS, PARTS, MovedPiece, PromptPiece
from pager.types import Json, read_step_id

PIECE_CHARS = 1_500  # of a piece of a request in a list; the address `piece` returns the whole
NEWEST_PIECES = 60  # of a conversation, unless all are asked for
CONTEXT_LINES = 2
MOST_RECALLED = 50  # pages that were put behind one message
MOST_LINES = 400  # of each text whose difference is shown; of a longer one the beginning
Query = Mapping[str, str]


def moment(reader: AnyMemory, query: Query) -> str | None:
    """Return the request that `at` in the query means: the one that this step answered, or the next one after it."""
    at = query.get("at")
    return reader.inspect.reply_for(at) if at else None


def number(query: Query, name: str, default: int) -> int:
    """Return a number of the query."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else default


def window(reader: AnyMemory, query: Query) -> Json:
    """Return how full the window is or was, and the requests beside it."""
    at = moment(reader, query)
    before, after = reader.inspect.neighbouring_requests(at) if at else (_newest(reader), None)
    return {"at": at, "before": before, "after": after, "window": reader.inspect.window(at)}


def columns(reader: AnyMemory, query: Query) -> Json:
    """Return the sizes of many requests in a row."""
    limit = min(MOST_COLUMNS, number(query, "limit", MOST_COLUMNS))
    return {"parts": PARTS, "columns": reader.inspect.columns(limit, query.get("through") or None)}


def request(reader: AnyMemory, query: Query) -> Json:
    """Return a request piece by piece, and its difference from the one before, or from the one that `with` names."""
    at, other = moment(reader, query), query.get("with")
    before = reader.inspect.reply_for(other) if other else _before(reader, at)
    first, last = (at, before) if at and before and read_step_id(before) > read_step_id(at) else (before, at)
    change = reader.inspect.change(first, last)
    pieces = change.pieces if last == at else reader.inspect.pieces(at)
    prefix = [piece for piece in pieces if piece.step is None]
    conversation = pieces[len(prefix) :]
    shown = conversation if query.get("all") else conversation[-NEWEST_PIECES:]
    return {
        "at": at,
        "total": len(pieces),
        "tokens": sum(piece.tokens for piece in pieces),
        "earlier": len(conversation) - len(shown),
        "prefix": [_shortened(piece) for piece in prefix],
        "pieces": [_shortened(piece) for piece in shown],
        "change": {
            "before": first,
            "after": last,
            "neighbours": not other,
            "opened": change.opened,
            "unchanged": change.unchanged,
            "entered": [{"piece": _shortened(each.piece), "why": _why(reader, each)} for each in change.entered],
            "left": [{"piece": _shortened(each.piece), "why": each.why} for each in change.left],
            "changed": [
                {"piece": _shortened(new), "why": each.why, "lines": changed_lines(each.before.text, new.text)}
                for each, new in ((each, each.after) for each in change.changed)
            ],
        },
    }


def piece(reader: AnyMemory, query: Query) -> PromptPiece:
    """Return one whole piece of a request."""
    for each in reader.inspect.pieces(moment(reader, query)):
        if each.key == query.get("key"):
            return each
    raise NotFoundError(f"this request has no piece {query.get('key')!r}.")


def raw(reader: AnyMemory, query: Query) -> Json:
    """Return a request as it was sent."""
    at = moment(reader, query)
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


def _why(reader: AnyMemory, moved: MovedPiece) -> str:
    """Return why a piece entered; of recalled pages how the message was judged, and the scores of the pages."""
    if moved.piece.part != "recalled" or not moved.piece.step:
        return moved.why
    step = moved.piece.step
    rows = reader.ledger(events=["recall"], at=f"s{read_step_id(step) + 1}", limit=MOST_RECALLED)
    return "; ".join([moved.why, *(f"{row.page_id}{recalled_because(row)}" for row in rows if row.step == step)])


def _shortened(piece: PromptPiece) -> Json:
    return {**to_json(piece), "text": piece.text[:PIECE_CHARS], "characters": len(piece.text)}


def _before(reader: AnyMemory, at: str | None) -> str | None:
    return reader.inspect.neighbouring_requests(at)[0] if at else _newest(reader)


def _newest(reader: AnyMemory) -> str | None:
    last: Any = reader.inspect.requests(0, 1).rows
    return last[0].step if last else None
