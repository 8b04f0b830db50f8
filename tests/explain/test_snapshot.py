"""Snapshots of the tiers against what a witness noted while the agent lived."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agents.explain.json_form import to_json
from agents.explain.snapshot import Snapshot, take
from pager import BlockSpec, Memory, MemoryReader, tokens
from tests.inspect.life import Life, lived
from tests.support import Talk


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with lived(tmp_path_factory.mktemp("life")) as life:
        yield life


@pytest.mark.slow
def test_core_archive_and_movements_are_as_they_were(life: Life) -> None:
    everything = life.memory.ledger()
    for step in life.steps[::3]:
        then = take(life.memory, step, facts=1_000, movements=10_000)
        assert {block.name: block.value for block in then.core.blocks} == life.core[step]
        assert then.core.used_tokens == sum(tokens.total(block.value) for block in then.core.blocks)
        assert then.archive.total == len(then.archive.newest) == life.facts[step]
        before = life.memory.ledger(at=step)
        assert [row.number for row in then.movements] == [row.number for row in before]
        assert before == everything[: len(before)]
    now = take(life.memory, facts=1_000).archive
    used = {use.fact.id for use in now.most_used}
    assert {fact.id for fact in now.unused} == {fact.id for fact in now.newest if not fact.valid_until} - used
    assert used


def _keys(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {path}.union(*(_keys(item, f"{path}.{key}") for key, item in value.items() if key != "detail"))
    if isinstance(value, list):
        return {path}.union(*(_keys(item, f"{path}[]") for item in value))
    return {path}


def test_the_json_has_the_same_keys_at_any_moment(life: Life, tmp_path: Path) -> None:
    moments: list[Snapshot] = [take(life.memory, at) for at in (None, "s3", life.steps[-1])]
    with Memory.open(tmp_path, embedder=None) as memory:
        moments.append(take(memory))
    everything = {path for moment in moments for path in _keys(to_json(moment))}
    for moment in moments:
        data = to_json(moment)
        assert json.loads(json.dumps(data)) == data
        missing = everything - _keys(data)
        # What is in a list that is empty, and what is within a value that is None, cannot be there.
        assert [path for path in missing if "[]" not in path and not path.startswith(".window.thresholds.")] == []
        assert set(data) == {"at", "window", "core", "steps", "pages", "archive", "movements"}


@pytest.mark.slow
def test_a_snapshot_is_of_one_moment_while_the_agent_goes_on(tmp_path: Path) -> None:
    """Each turn archives one fact and edits core once, in one transaction: no look may see one without the other."""
    talk = Talk(tmp_path, window=6_000, core={"human": BlockSpec(limit_tokens=400)})
    talk.memory.append_user("turn 0")

    def live() -> None:
        for number in range(1, 60):
            with talk.memory.transaction():
                talk.reply("yes")
                talk.memory.archive(f"fact {number}")
                talk.memory.core_append("human", "x", actor="agent")
                talk.memory.append_user(f"turn {number} " + "and so on " * 40)

    writer = Thread(target=live)
    seen = set[int]()
    with MemoryReader.open(tmp_path) as reader:
        writer.start()
        while writer.is_alive() or not seen:
            now = take(reader)
            number = now.archive.total
            seen.add(number)
            assert now.steps[-1].words.startswith(f"turn {number}")
            assert now.core.blocks[0].value.count("x") == number
            assert sum(part.tokens for part in now.window.parts) == now.window.used_tokens
        writer.join()
        assert take(reader) == take(talk.memory)
    assert take(talk.memory).archive.total == 59
    assert len(seen) > 3
