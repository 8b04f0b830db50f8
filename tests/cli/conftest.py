"""A command line in this process, in a folder of its own, and an agent with a past."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.config import embedders
from pager import BlockSpec, Memory
from tests.support.cli import Done, command_line
from tests.support.shop import Shop, shop_in

Command = Callable[..., Done]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line; its home is `home` in the present folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELFPAGER_HOME", str(tmp_path / "home"))
    return command_line


@pytest.fixture
def alice(tmp_path: Path) -> Path:
    """The directory of the agent alice."""
    directory = tmp_path / "home" / "alice"
    with Memory.open(directory, embedder=None, core={"human": BlockSpec(value="Alice")}) as memory:
        memory.record("user", "The secret word is zyzzogeton.", name="Alice")
        memory.archive("prefers window seats", key="seat")
        memory.archive("prefers aisle seats", key="seat")
        memory.save_value(embedders.EMBEDDER, "null")
    return directory


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Shop]:
    """A folder with an agent whose model is scripted."""
    with shop_in(tmp_path) as place:
        yield place
