from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.view.serving import ViewServer
from pager import BlockSpec
from tests.view.asking import opened, serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with opened(tmp_path, core={"human": BlockSpec(value="name is Dana")}) as memory:
        memory.archive("likes trams", key="tram", tags=["travel"])
        memory.append_user("Where is the tram?")
        memory.search_archive("tram")
        memory.request()
        memory.append_assistant("On rails.", {"input_tokens": 900, "output_tokens": 5})
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[ViewServer]:
    with serving(home) as server:
        yield server
