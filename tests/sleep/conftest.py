"""A memory whose texts are near each other if they share words."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from tests.support.clock import HandClock
from tests.support.embedders import Words

Open = Callable[..., Memory]


@pytest.fixture
def open_memory(tmp_path: Path) -> Open:
    def opened(**more: Any) -> Memory:
        return Memory.open(tmp_path / "home", **{"embedder": Words(dimension=64), "clock": HandClock(), **more})

    return opened


@pytest.fixture
def memory(open_memory: Open) -> Iterator[Memory]:
    with open_memory() as memory:
        yield memory
