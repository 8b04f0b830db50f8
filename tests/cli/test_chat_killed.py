"""kill -9 in the middle of a chat, then `chat` again: a person sees what happened, and it goes on."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.testing import call, stall
from tests.support.cli import Running, Terminal
from tests.support.shop import TOOLS, Shop, shop_in

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Shop]:
    (tmp_path / "shop.py").write_text(TOOLS)
    with shop_in(tmp_path) as place:
        yield place


def test_in_the_middle_of_an_answer(place: Shop) -> None:
    place.model.script("Hello.", stall("Hats are fine. " * 20))
    with Running("chat", place.file, "--home", place.home) as chat:
        chat.say("Hello?")
        assert chat.line() == "Hello.\n"
        chat.say("What of hats?")
        chat.read(10)
    place.model.script("Hats are fine.")
    again = place.chat()
    assert (again.code, again.out) == (0, "Hats are fine.\n")
    assert "continuing the open turn: 'What of hats?'" in again.err


def test_in_the_middle_of_a_tool(place: Shop) -> None:
    place.more += 'tools: [{use: "shop:wait_for"}]\n'
    os.mkfifo(place.folder / "pipe")
    place.model.script(call("wait_for", path=str(place.folder / "pipe")))
    with Running("chat", place.file, "--home", place.home, cwd=place.folder) as chat:
        chat.say("Wait.")
        chat.tells("wait_for(")
        with (place.folder / "pipe").open("w"):  # it is at work
            pass
    place.model.script("It may have run.")
    again = place.chat()
    assert "wait_for was at work when the program ended, and may have run" in again.err
    assert "interrupted, may have run" in str(place.model.requests[-1]["messages"])


def test_in_the_middle_of_undo_a_turn_is_whole_or_withdrawn(place: Shop) -> None:
    place.model.script("Fine.")
    place.chat("I like hats.")
    with Running("chat", place.file, "--home", place.home) as chat:
        chat.say("/undo")
    shown = place.chat("/undo").out
    assert "withdrawn: I like hats." in shown or "there is no turn to withdraw" in shown


def test_at_the_prompt(place: Shop) -> None:
    with Terminal("chat", place.file, "--home", place.home, TERM="xterm-256color") as terminal:
        terminal.until("Ctrl-D leaves")
    assert place.chat("/facts").code == 0
