from pathlib import Path

import pytest

from pager.store import Store
from tests.support import HandClock


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "pager.db", HandClock())


@pytest.fixture
def reader(store: Store, tmp_path: Path) -> Store:
    """Return a second connection to the same file, which only reads."""
    return Store(tmp_path / "pager.db", HandClock(), read_only=True)
