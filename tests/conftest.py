"""Profiles of Hypothesis, the fixtures that all rooms use, and which tests count as slow.

fast     a few examples: `make test-fast`
default  a short run of random examples; failures are stored in .hypothesis/ and tried first: plain `pytest`
ci       more examples, the same in every run, so that a failure of CI fails here too: `make test`
hunt     many random examples, for a machine with an evening to spare: `pytest --hypothesis-profile=hunt`
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pager import Memory
    from tests.support.hands import Hands
    from tests.support.stage import Stage
    from tests.support.talk import Talk

# Tests of these rooms start processes or servers, or run for seconds. They all count as slow.
TESTS = Path(__file__).parent
SLOW_ROOMS = {
    *("bench", "browser", "chaos", "cli", "crash", "demo", "hostile", "laws", "local", "log", "mcp", "models"),
    *("project", "serve", "standin", "testing", "vectors", "view"),
}

IN_MEMORY = Path("/dev/shm")

# Examples write and sync files. Their duration depends on the disk, not on the code.
_no_clock = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _no_clock, max_examples=10, derandomize=True, database=None)  # a part of CI
settings.register_profile("default", _no_clock, max_examples=40)
settings.register_profile("ci", _no_clock, max_examples=100, derandomize=True, database=None, print_blob=True)
settings.register_profile("hunt", _no_clock, max_examples=5_000, print_blob=True)
settings.load_profile("default")


def is_slow(path: Path) -> bool:
    return TESTS in path.parents and path.relative_to(TESTS).parts[0] in SLOW_ROOMS


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the slow rooms when their tests would be left out."""
    return True if "not slow" in config.option.markexpr and is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow rooms."""
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")


def pytest_configure(config: pytest.Config) -> None:
    """Take Ctrl-C again, and let fast tests write into memory.

    A shell that starts the tests in the background makes them and their children ignore Ctrl-C, and tests that
    interrupt a child would wait forever. Fast tests make thousands of commits, each of which waits for the disk."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "not slow" in config.option.markexpr and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > 1 << 30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over all that was imported, which stays until the end."""
    gc.freeze()


@pytest.fixture(autouse=True)
def close_databases(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every database that the test opened. Since Python 3.13 an open connection that is collected is a warning,
    and a warning is an error here."""
    from pager.store.database import Database

    if request.path.parent.name == "browser":  # there one view serves many tests
        yield
        return
    opened: list[Connection] = []
    connect = Database._connect

    def connect_and_note(database: Database) -> Connection:
        opened.append(connect(database))
        return opened[-1]

    monkeypatch.setattr(Database, "_connect", connect_and_note)
    yield
    for connection in opened:
        connection.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Yield a stage for agents on the strict stand-in. Every scripted reply has to be used, every request accepted."""
    from tests.support.stage import stage_in  # here, because tests of the memory alone must not load an agent

    with stage_in(tmp_path) as stage:
        yield stage
    stage.assert_over()


@pytest.fixture
def hands() -> Hands:
    from tests.support.hands import Hands

    return Hands()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Yield an open memory without an embedder."""
    from pager import Memory
    from tests.support.clock import HandClock

    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        yield memory


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """Yield a memory that talks to the strict stand-in."""
    from tests.support.talk import Talk

    talk = Talk(tmp_path)
    yield talk
    talk.memory.close()


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an agent with a vector index, closed. Not to be touched: use a copy, as `directory` is."""
    from tests.support.indexed import FACTS, archive, build, open_memory

    directory = tmp_path_factory.mktemp("well") / "agent"
    with open_memory(directory) as memory:
        archive(memory, 1, FACTS)
        build(memory)
    return directory


@pytest.fixture
def directory(well: Path, tmp_path: Path) -> Path:
    return shutil.copytree(well, tmp_path / "agent")
