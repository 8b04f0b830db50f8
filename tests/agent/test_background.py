"""Embedding while nobody waits: it begins by itself, goes on beside the conversation, and ends with the agent."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from agents.agent import BackgroundWork
from agents.cli.terminal import MIN_TEXTS_TO_REPORT, Printer
from pager import Memory, StorageError
from pager.vectors.indexing import SMALLEST
from tests.support import HandClock, Words
from tests.support.stage import Stage


class Slow(Words):
    """Waits in the middle until it is released."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.at_work, self.go_on = Event(), Event()

    def embed(self, texts: Sequence[str]) -> Any:
        if len(texts) > 1:
            self.at_work.set()
            assert self.go_on.wait(30)
        return super().embed(texts)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        yield memory


@pytest.fixture
def embedder() -> Slow:
    return Slow()


@pytest.fixture
def slow_memory(tmp_path: Path, embedder: Slow) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        yield memory


def turns(count: int) -> list[dict[str, str]]:
    return [{"role": "user", "text": f"topic{number}", "session": str(number)} for number in range(count)]


def test_others_take_their_turns_while_the_embedder_works(slow_memory: Memory, embedder: Slow) -> None:
    slow_memory.record_many(turns(40), embed=False)
    background = BackgroundWork(slow_memory)
    background.wake()
    assert embedder.at_work.wait(30)
    slow_memory.append_user("hello")
    slow_memory.request()
    slow_memory.append_assistant("hello")
    assert slow_memory.page_text("s42") == "hello"
    assert background.is_busy
    background.wake()  # once is enough
    embedder.go_on.set()
    background.finish()
    assert slow_memory.count_unembedded() == 0


def test_a_full_disk_ends_it_and_the_next_turn_tries_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory.record_many(turns(40), embed=False)
    background = BackgroundWork(memory)
    with monkeypatch.context() as patched:
        patched.setattr(memory._store.said, "store_vectors", Mock(side_effect=StorageError("the disk is full")))
        background.wake()
        background.finish()
    assert "goes on after the next turn" in caplog.text
    background.wake()
    background.finish()
    assert memory.count_unembedded() == 0


@pytest.mark.slow
def test_the_index_of_an_agent_is_built_between_its_turns(stage: Stage) -> None:
    agent = stage.agent(embedder=Words())
    state = stage.directory / "chroma" / "state.json"
    for facts in (SMALLEST, 3 * SMALLEST):
        with agent.memory.transaction():
            for number in range(facts):
                agent.memory.archive(f"topic{number} of {facts}")
        agent.turn("hello")
        agent.background.finish()
        assert not agent.memory.index_is_behind
        assert json.loads(state.read_text())["through"] == len(agent.memory.inspect.newest_facts(10_000))


@pytest.mark.parametrize(("json_lines", "shown"), [(False, True), (True, False)])
def test_the_terminal_shows_it_while_it_works(
    slow_memory: Memory, embedder: Slow, capsys: pytest.CaptureFixture[str], json_lines: bool, shown: bool
) -> None:
    slow_memory.record_many(turns(MIN_TEXTS_TO_REPORT), embed=False)
    background, printer = BackgroundWork(slow_memory), Printer(json_lines=json_lines)
    printer.embedding(background)
    assert capsys.readouterr().err == ""
    background.wake()
    assert embedder.at_work.wait(30)
    printer.embedding(background)
    assert ("0 of 256 texts" in capsys.readouterr().err) == shown
    embedder.go_on.set()
    background.finish()
