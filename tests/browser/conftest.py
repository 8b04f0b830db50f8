"""A real browser for the debug view: Debian's chromium, without a screen, driven by Playwright.

If there is none, these tests fail and say which package to install; `make test` leaves them out then, and says so.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.guide import make_home
from tests.browser.looking import Viewer, viewing
from tests.browser.programs import started


@pytest.fixture(scope="package")  # not longer: as long as Playwright is there, an event loop runs in this thread
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture(scope="package")
def guide_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of `tests.browser.guide`. Tests only read it: one that changes something takes `own_home`."""
    return make_home(tmp_path_factory.mktemp("guide"))


@pytest.fixture
def own_home(guide_home: Path, tmp_path: Path) -> Path:
    return shutil.copytree(guide_home, tmp_path / "home")


@pytest.fixture(scope="module")
def viewer(guide_home: Path, browser: Browser) -> Iterator[Viewer]:
    with viewing(guide_home, browser) as viewer:
        yield viewer
