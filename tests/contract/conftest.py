from collections.abc import Iterator
from pathlib import Path

import pytest

from pager.store import Store
from tests.contract.stores import KINDS, Place


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    here = Place(request.param, tmp_path)
    yield here
    here.close()


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()
