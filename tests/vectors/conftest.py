import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pager import Memory
from tests.support import HandClock, Words
from tests.support.indexed import FACTS, archive, build, open_memory


@pytest.fixture
def embedder() -> Words:
    return Words()


@pytest.fixture
def memory(tmp_path: Path, embedder: Words) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        yield memory


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent with an index, closed. Not to be touched: use a copy."""
    directory = tmp_path_factory.mktemp("well") / "agent"
    with open_memory(directory) as memory:
        archive(memory, 1, FACTS)
        build(memory)
    return directory


@pytest.fixture
def directory(well: Path, tmp_path: Path) -> Path:
    return shutil.copytree(well, tmp_path / "agent")
