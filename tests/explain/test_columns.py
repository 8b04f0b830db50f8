"""The window over time: every column is the snapshot of its request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.explain.columns import columns
from agents.explain.snapshot import take
from pager import BlockSpec, Limits, MemoryReader, Prefetch
from tests.standin import Standin, call, thinking
from tests.support import Talk, Words


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    talk = Talk(
        tmp_path_factory.mktemp("talk"), window=6_000, standin=Standin(limit_tokens=8_000),
        core={"human": BlockSpec()}, embedder=Words(), prefetch=Prefetch(k=1),
    )  # fmt: skip
    for number in range(60):
        talk.memory.archive(f"turn {number} was sunny")
        talk.memory.append_user("and so the story went on " * 12 + str(number))
        if number % 4 == 1:
            talk.reply(thinking("hm " * 30), call("weather", {"city": "Porto"}))
            talk.answer("sunny " * 40)
        talk.reply("It is sunny.")
        if number % 6 == 2:
            talk.memory.core_append("human", f"line {number}")
        if number == 30:
            talk.reopen(limits=Limits.for_window(8_000))
    yield talk
    talk.memory.close()


def test_every_column_is_the_snapshot_of_its_request(talk: Talk) -> None:
    every = columns(talk.memory, 500)
    assert [column.step for column in every] == [f"s{a.answered.step}" for a in talk.memory.inspect.requests(500)]
    for column in every:
        window = take(talk.memory, column.step).window
        assert column.tokens == tuple(part.tokens for part in window.parts)
        assert (column.used_tokens, column.usable_tokens, column.epoch) == (
            window.used_tokens, window.usable_tokens, window.epoch
        )  # fmt: skip
        assert window.thresholds
        levels = window.thresholds
        assert column.thresholds == (levels.notify_at, levels.evict_at, levels.evict_to)
    assert len({column.usable_tokens for column in every}) == 2


def test_a_column_says_why_an_epoch_began_with_it(talk: Talk) -> None:
    every = columns(talk.memory, 500)
    opened = [column.opened for column in every if column.opened]
    assert opened == [row.reason for row in talk.memory.ledger(events=["epoch"])]
    assert len(opened) > 3
    began = {column.epoch: column.step for column in reversed(every)}
    assert {column.step for column in every if column.opened} == set(began.values())


@pytest.mark.parametrize("limit", [0, 1, 7, 500])
def test_the_newest_or_those_up_to_a_step(talk: Talk, limit: int) -> None:
    every = columns(talk.memory, 500)
    assert columns(talk.memory, limit) == (every[-limit:] if limit else ())
    middle = every[len(every) // 2]
    there = every[: len(every) // 2 + 1]
    assert columns(talk.memory, limit, through=middle.step) == (there[-limit:] if limit else ())


def test_it_reads_the_same_beside_the_writer(talk: Talk) -> None:
    with MemoryReader.open(talk.directory, clock=talk.clock) as reading:
        assert columns(reading) == columns(talk.memory)
