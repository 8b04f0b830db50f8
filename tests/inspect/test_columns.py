"""The window over time: every column is the window of its request."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from pager import MemoryReader
from pager.inspect import Inspection
from tests.inspect.life import Life


@pytest.mark.slow
def test_every_column_is_the_window_of_its_request(life: Life, inspect: Inspection) -> None:
    columns = inspect.columns(500)
    assert [column.step for column in columns] == [request.step for request in inspect.requests(500)] == life.steps
    for column in columns:
        window = inspect.window(column.step)
        assert column.tokens == tuple(part.tokens for part in window.parts)
        assert column.used_tokens == window.used_tokens
        assert (column.usable_tokens, column.epoch) == (window.usable_tokens, window.epoch)
        assert window.thresholds
        assert column.thresholds == astuple(window.thresholds)
    assert len({column.usable_tokens for column in columns}) == 2


def test_a_column_says_why_an_epoch_began_with_it(life: Life, inspect: Inspection) -> None:
    columns = inspect.columns(500)
    assert [column.opened for column in columns if column.opened] == [
        row.reason for row in life.memory.ledger(events=["epoch"])
    ]
    first = {column.epoch: column.step for column in reversed(columns)}
    assert {column.step for column in columns if column.opened} == set(first.values())


@pytest.mark.parametrize("limit", [0, 1, 7, 500])
def test_the_newest_or_those_up_to_a_step(inspect: Inspection, limit: int) -> None:
    columns = inspect.columns(500)
    assert inspect.columns(limit) == (columns[-limit:] if limit else ())
    middle = len(columns) // 2
    assert inspect.columns(limit, through=columns[middle].step) == (columns[: middle + 1][-limit:] if limit else ())


def test_a_reader_beside_the_writer_sees_the_same(life: Life, inspect: Inspection) -> None:
    with MemoryReader.open(life.talk.directory, clock=life.talk.clock) as reader:
        assert reader.inspect.columns() == inspect.columns()
        assert reader.inspect.pieces() == inspect.pieces()
