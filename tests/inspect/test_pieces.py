"""One request piece by piece, against the request rebuilt byte for byte; and what is different from the one before."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from pager.inspect import PARTS, Change, Inspection, PromptPiece
from pager.types import Json
from tests.inspect.life import Life
from tests.standin import call
from tests.support import Talk


def texts(value: object) -> Iterator[str]:
    """Every text that a person would read in a request, in order."""
    if isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        block: Json = value
        if block.get("type") == "tool_use":
            yield json.dumps(block["input"], ensure_ascii=False, indent=2)
        elif block.get("type") == "thinking":
            yield block["thinking"]
        elif "text" in block:
            yield block["text"]
        else:
            yield from texts(block.get("content", []))


def changes(life: Life) -> Iterator[Change]:
    for before, after in pairwise(life.steps):
        yield life.memory.inspect.change(before, after)


@pytest.mark.slow
def test_the_pieces_in_order_are_the_request_and_add_up_to_what_the_provider_counted(life: Life) -> None:
    seen: dict[str, PromptPiece] = {}
    for step in life.steps:
        request, pieces = life.memory.history.rebuild(step), life.memory.inspect.pieces(step)
        tools = [piece for piece in pieces if piece.part == "tools"]
        assert [json.loads(piece.text) for piece in tools] == request["tools"]
        rest = [piece.text for piece in pieces if piece.part != "tools"]
        assert "\n".join(rest) == "\n".join([*texts(request["system"]), *texts(request["messages"])]), step
        assert len({piece.key for piece in pieces}) == len(pieces)
        assert {piece.part for piece in pieces} <= set(PARTS)
        assert sum(piece.tokens for piece in pieces) == life.size[step]
        for part in life.memory.inspect.window(step).parts:
            own = sum(piece.tokens for piece in pieces if piece.part == part.name)
            assert abs(own - part.tokens) <= len(pieces), (step, part)
        seen |= {piece.title: piece for piece in pieces}
    assert {"instructions", "core", "digest of the steps that left", "user", "agent", "agent, thinking", "notice",
            "agent calls weather", "result of weather", "error of weather", "recalled pages", "update",
            "tool weather"} <= set(seen)  # fmt: skip
    pins = [piece for title, piece in seen.items() if title.startswith("pinned ")]
    assert [piece.title for piece in pins] == [f"pinned {piece.page_id}" for piece in pins] != []
    assert seen["user"].page_id == seen["user"].step


def test_a_request_that_left_stands_before_the_conversation(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    assert talk.memory.inspect.pieces() == ()
    talk.memory.append_user("look it all up, please")
    for _ in range(40):
        talk.reply(call("weather", {"city": "x"}))
        talk.answer("rain and wind " * 150)
    pieces = talk.memory.inspect.pieces(talk.reply("done"))
    assert next(piece.page_id for piece in pieces if piece.part == "request") == "s1"
    assert "look it all up, please" in " ".join(piece.text for piece in pieces)
    talk.memory.close()


@pytest.mark.slow
def test_one_request_and_its_change_make_the_next(life: Life, inspect: Inspection) -> None:
    for change in changes(life):
        was = {piece.key: piece for piece in inspect.pieces(change.before)}
        for move in change.left:
            assert was.pop(move.piece.key) == move.piece
        for changed in change.changed:
            assert was[changed.before.key] == changed.before
            was[changed.after.key] = changed.after
        assert change.unchanged == len(was) - len(change.changed)
        made = {key: piece.text for key, piece in was.items()} | {m.piece.key: m.piece.text for m in change.entered}
        assert made == {piece.key: piece.text for piece in inspect.pieces(change.after)}
    first = inspect.change(None, life.steps[0])
    assert [move.piece for move in first.entered] == list(first.pieces) == list(inspect.pieces(life.steps[0]))
    assert (first.opened, first.left, first.unchanged) == ("first request", (), 0)


@pytest.mark.slow
def test_everything_that_moved_says_why_and_within_an_epoch_nothing_leaves_or_changes(life: Life) -> None:
    whys: set[str] = set()
    for change in changes(life):
        assert change.before
        assert change.after
        epochs = [life.memory.inspect.window(step).epoch for step in (change.before, change.after)]
        reasons = [row.reason for row in life.memory.ledger(events=["epoch"], limit=1, at=change.after)]
        assert change.opened == ("" if epochs[0] == epochs[1] else reasons[0])
        assert change.opened or (change.left, change.changed) == ((), ())
        for move in (*change.entered, *change.left, *change.changed):
            assert move.why
            whys.add(move.why)
        for move in change.left:
            rows = life.memory.ledger(page=move.piece.step or "", at=change.after, events=["evict"])
            if rows and move.piece.part == "steps":
                assert move.why == f"{move.piece.step} left: {rows[-1].reason}"
    assert {"core is written anew when an epoch opens", "the facts and earlier turns that fit this message best",
            "only for the moment: a new epoch drops it", "the agent is told that the window fills",
            "a change that the agent did not make itself"} <= whys  # fmt: skip
