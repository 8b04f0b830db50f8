"""What is tested here was written for a memory in a directory. Here each directory is a cache of Postgres, and what is
in it is deleted and restored at every opening."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pager.store import Store
from tests.support import HandClock


@pytest.fixture(autouse=True)
def every_directory_is_logged(address: str) -> Iterator[None]:
    from tests.support.postgres import logged

    with logged(address):
        yield


@pytest.fixture
def store(tmp_path: Path, every_directory_is_logged: None) -> Iterator[Store]:
    from pager.upkeep.place import Directory

    opened = Directory(tmp_path).open(HandClock())
    yield opened.store
    opened.store.close()
    opened.release()


@pytest.fixture
def reader(store: Store, tmp_path: Path) -> Store:
    """Return a second connection to the same file, which only reads."""
    return Store(tmp_path / "pager.db", HandClock(), read_only=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("long")
