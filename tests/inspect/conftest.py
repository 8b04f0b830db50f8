from collections.abc import Iterator

import pytest

from pager.inspect import Inspection
from tests.inspect.life import Life, lived


@pytest.fixture(scope="package")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with lived(tmp_path_factory.mktemp("life")) as life:
        yield life


@pytest.fixture
def inspect(life: Life) -> Inspection:
    return life.memory.inspect
