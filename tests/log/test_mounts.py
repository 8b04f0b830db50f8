"""Memories that several agents share, on a home in Postgres: the same laws."""

import pytest

from pager import Home
from tests.memory.test_mounts import *  # noqa: F403
from tests.support.clock import HandClock


@pytest.fixture
def home(address: str) -> Home:
    """Return a home in Postgres, in the place of the directory of these tests."""
    return Home(address, clock=HandClock())
