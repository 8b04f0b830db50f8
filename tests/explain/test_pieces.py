"""One request piece by piece, against the request rebuilt byte for byte; and what is different from the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from agents.explain.pieces import PromptPiece, between, pieces
from agents.explain.snapshot import take
from agents.explain.window_parts import PARTS
from pager import BlockSpec, Prefetch
from pager.types import Json
from tests.standin import Reply, call, thinking
from tests.support import Talk, Words

CORE = {"human": BlockSpec(limit_tokens=400), "rules": BlockSpec(value="be kind", read_only=True)}


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """Some of everything, over several epochs."""
    directory: Path = tmp_path_factory.mktemp("talk")
    talk = Talk(directory, window=6_000, core=CORE, embedder=Words(), prefetch=Prefetch(k=2, budget_tokens=120))
    for word in ("bus", "hat", "boat", "lamp", "tree", "cup"):  # among others a fact that fits stands out
        talk.memory.archive(f"the {word} is red")
    for number in range(30):
        if number % 3 == 0:
            talk.memory.core_append("human", f"noted before turn {number}")
        if number % 4 == 0:
            talk.memory.archive(f"In turn {number} it was sunny in Porto.", key=f"k{number % 8}")
        if number == 6:
            talk.memory.page_in("f1", pin=True)
        asked = "In which turn was it sunny in Porto? " if number % 5 == 2 else "and so the story went on " * 12
        talk.memory.append_user(f"{asked}[u{number}]")
        talk.reply(thinking("let me think " * 8), call("weather", {"city": "Porto"}))
        talk.answer("sunny " * (900 if number == 17 else 3), is_error=number == 9)
        talk.reply(Reply.refusal() if number == 21 else f"It is sunny. [a{number}]")
        if number == 21:
            talk.watch.forget_tail()
    assert len(talk.memory.ledger(events=["epoch"])) > 3
    yield talk
    talk.memory.close()


def steps(talk: Talk) -> list[str]:
    return [f"s{asked.answered.step}" for asked in talk.memory.inspect.requests(1_000)]


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
        elif block.get("type") == "tool_result":
            yield from texts(block.get("content", []))
        elif "text" in block:
            yield block["text"]
        else:
            yield from texts(block.get("content", []))


def test_the_pieces_in_order_are_the_request(talk: Talk) -> None:
    for step in steps(talk):
        request, held = talk.memory.history.rebuild(step), pieces(talk.memory, step)
        tools = [piece for piece in held if piece.part == "tools"]
        assert [json.loads(piece.text) for piece in tools] == request["tools"]
        rest = [piece.text for piece in held if piece.part != "tools"]
        assert "\n".join(rest) == "\n".join([*texts(request["system"]), *texts(request["messages"])]), step


def test_their_tokens_add_up_to_what_the_provider_said(talk: Talk) -> None:
    for step in steps(talk):
        held, window = pieces(talk.memory, step), take(talk.memory, step).window
        assert sum(piece.tokens for piece in held) == window.used_tokens
        for part in window.parts:
            own = sum(piece.tokens for piece in held if piece.part == part.name)
            assert abs(own - part.tokens) <= len(held), (step, part)


def test_a_key_is_one_piece(talk: Talk) -> None:
    for step in steps(talk):
        keys = [piece.key for piece in pieces(talk.memory, step)]
        assert len(keys) == len(set(keys))
        assert {piece.part for piece in pieces(talk.memory, step)} <= set(PARTS)


def test_pieces_say_whose_they_are(talk: Talk) -> None:
    seen: dict[str, PromptPiece] = {}
    for step in steps(talk):
        seen |= {piece.title: piece for piece in pieces(talk.memory, step)}
    assert {"instructions", "core", "digest of the steps that left", "user", "agent", "agent, thinking", "notice",
            "agent calls weather", "result of weather", "error of weather", "recalled facts", "update",
            "tool weather"} <= set(seen)  # fmt: skip
    pins = [piece for title, piece in seen.items() if title.startswith("pinned ")]
    assert [piece.title for piece in pins] == [f"pinned {piece.page_id}" for piece in pins] != []
    user = seen["user"]
    assert user.page_id == user.step
    assert user.text.startswith("and so the story")


def test_a_request_that_left_stands_before_the_conversation(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    talk.memory.append_user("look it all up, please")
    for _ in range(40):
        talk.reply(call("weather", {"city": "x"}))
        talk.answer("rain and wind " * 150)
    step = talk.reply("done")
    [request, *_] = [piece for piece in pieces(talk.memory, step) if piece.part == "request"]
    assert request.page_id == "s1"
    assert "look it all up, please" in " ".join(piece.text for piece in pieces(talk.memory, step))
    talk.memory.close()


# --- what is different


def test_one_request_and_its_change_make_the_next(talk: Talk) -> None:
    known = steps(talk)
    for before, after in pairwise(known):
        change = between(talk.memory, before, after)
        was = {piece.key: piece for piece in pieces(talk.memory, before)}
        for move in change.left:
            assert was.pop(move.piece.key) == move.piece
        for changed in change.changed:
            assert was[changed.before.key] == changed.before
            was[changed.after.key] = changed.after
        assert change.kept == len(was) - len(change.changed)
        made = {key: piece.text for key, piece in was.items()} | {m.piece.key: m.piece.text for m in change.entered}
        assert made == {piece.key: piece.text for piece in pieces(talk.memory, after)}


def test_everything_that_moved_says_why(talk: Talk) -> None:
    known = steps(talk)
    whys: set[str] = set()
    for before, after in pairwise(known):
        change = between(talk.memory, before, after)
        reasons = [row.reason for row in talk.memory.ledger(events=["epoch"], limit=1, at=after)]
        same = talk.memory.history.prompt(before).epoch == talk.memory.history.prompt(after).epoch
        assert change.opened == ("" if same else reasons[0])
        for move in (*change.entered, *change.left, *change.changed):
            assert move.why
            whys.add(move.why)
        for move in change.left:
            gone = [row for row in talk.memory.ledger(page=move.piece.step or "", at=after) if row.event == "evict"]
            if gone and move.piece.part == "turns":
                assert move.why == f"{move.piece.step} left: {gone[-1].reason}"
    assert {"core is written anew when an epoch opens", "the facts that fit this message best",
            "only for the moment: a new epoch drops it", "the agent is told that the window fills",
            "a change that the agent did not make itself"} <= whys  # fmt: skip


def test_within_an_epoch_nothing_leaves_or_changes(talk: Talk) -> None:
    known = steps(talk)
    quiet = 0
    for before, after in pairwise(known):
        change = between(talk.memory, before, after)
        if not change.opened:
            assert (change.left, change.changed) == ((), ())
            quiet += 1
    assert quiet > 20


def test_the_first_request_entered_as_a_whole(talk: Talk) -> None:
    first = steps(talk)[0]
    change = between(talk.memory, None, first)
    assert [move.piece for move in change.entered] == list(change.pieces) == list(pieces(talk.memory, first))
    assert (change.opened, change.left, change.kept) == ("first request", (), 0)


def test_a_memory_that_was_never_asked_has_no_pieces(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    assert pieces(talk.memory) == ()
    talk.memory.close()
