"""What all tests share: how hard Hypothesis tries.

    default  a short look at random examples; keeps its failures in .hypothesis/ and tries them first
    ci       more examples, the same ones every time: what fails in CI fails in `make test` at home
    hunt     many random examples, for a machine with an evening to spare

Choose with `pytest --hypothesis-profile=hunt`. `make test` takes ci, plain `pytest` takes default.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.support.hands import Hands
    from tests.support.stage import Stage

# Examples write files and sync them: their duration tells about the disk, not about the code.
_no_clock = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _no_clock, max_examples=10)
settings.register_profile("default", _no_clock, max_examples=40)
settings.register_profile("ci", _no_clock, max_examples=200, derandomize=True, database=None, print_blob=True)
settings.register_profile("hunt", _no_clock, max_examples=5_000, print_blob=True)
settings.load_profile("default")


def pytest_configure() -> None:
    """Whoever starts the tests in the background (CI, `make test &`) makes them ignore Ctrl-C, and their children too:
    tests that interrupt a child would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Agents on the strict stand-in: in the end all that was scripted was said, and no request was refused."""
    from tests.support.stage import stage_in  # tests of the memory alone load no agent

    with stage_in(tmp_path) as stage:
        yield stage
    stage.assert_over()


@pytest.fixture
def hands() -> Hands:
    from tests.support.hands import Hands

    return Hands()
