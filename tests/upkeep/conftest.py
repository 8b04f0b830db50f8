"""Memories that a test opens are closed at its end."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import Talk

OpenTalk = Callable[..., Talk]


@pytest.fixture
def open_talk(tmp_path: Path) -> Iterator[OpenTalk]:
    talks: list[Talk] = []

    def open_talk(**options: Any) -> Talk:
        talks.append(Talk(tmp_path, **options))
        return talks[-1]

    yield open_talk
    for talk in talks:
        talk.memory.close()
