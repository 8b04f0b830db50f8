from pathlib import Path

import pytest

from pager import BlockSpec
from tests.support import Talk, Words


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "agent", window=6_000, core={"human": BlockSpec(limit_tokens=400)}, embedder=Words())
