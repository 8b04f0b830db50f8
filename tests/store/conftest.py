from collections.abc import Iterator
from pathlib import Path

import pytest

from pager.store import Store
from tests.store.rows import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()
