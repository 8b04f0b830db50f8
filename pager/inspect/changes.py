"""The difference between two requests: which pieces entered, left or changed, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pager.inspect.pieces import PromptPiece
from pager.types import Movement

MOVEMENTS = ("evict", "drop", "epoch")  # the events of the ledger that explain a difference
MOST_MOVEMENTS = 400
ONE_REQUEST_ONLY = {  # pieces that stand behind one message, and why they entered
    "recalled facts": "the facts that fit this message best",
    "notice": "the agent is told that the window fills",
    "update": "a change that the agent did not make itself",
}


@dataclass(frozen=True, slots=True)
class MovedPiece:
    """A piece that entered or left, and why."""

    piece: PromptPiece
    why: str


@dataclass(frozen=True, slots=True)
class ChangedPiece:
    """A piece that stands in both requests with different texts, and why."""

    before: PromptPiece
    after: PromptPiece
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    """The difference between two requests. `opened` is the reason for a new epoch, empty if none began.

    `unchanged` counts the pieces that stand in both; `pieces` are those of the later request.
    """

    before: str | None
    after: str | None
    opened: str
    entered: tuple[MovedPiece, ...]
    left: tuple[MovedPiece, ...]
    changed: tuple[ChangedPiece, ...]
    unchanged: int
    pieces: tuple[PromptPiece, ...]


def change_between(
    before: str | None, after: str | None, old: Sequence[PromptPiece], new: Sequence[PromptPiece],
    movements: Sequence[Movement], *, epoch_changed: bool,
) -> Change:  # fmt: skip
    """Return the difference between the pieces of two requests. `movements` are those before the later one."""
    opened = next((row.reason for row in reversed(movements) if row.event == "epoch"), "") if epoch_changed else ""
    was, now = ({piece.key: piece for piece in pieces} for pieces in (old, new))
    both = [(was[key], piece) for key, piece in now.items() if key in was]
    changed = [ChangedPiece(*pair, _why_changed(pair[1], opened)) for pair in both if pair[0].text != pair[1].text]
    return Change(
        before=before,
        after=after,
        opened=opened,
        entered=tuple(MovedPiece(piece, _why_entered(piece, opened)) for key, piece in now.items() if key not in was),
        left=tuple(
            MovedPiece(piece, _why_left(piece, movements, opened)) for key, piece in was.items() if key not in now
        ),
        changed=tuple(changed),
        unchanged=len(both) - len(changed),
        pieces=tuple(new),
    )


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
