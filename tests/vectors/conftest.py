from collections.abc import Iterator
from pathlib import Path

import pytest

from pager import Memory
from tests.support import HandClock, Words


@pytest.fixture
def embedder() -> Words:
    return Words()


@pytest.fixture
def memory(tmp_path: Path, embedder: Words) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        yield memory
