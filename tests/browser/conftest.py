"""A real browser for the debug view: Debian's chromium, without a screen, driven by Playwright.

Where there is none, these tests fail and say which package to install; `make test` leaves them out then, and says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.looking import Viewer, viewing
from tests.browser.programs import FLAGS, browser_program
from tests.support.cli import selfpager


@pytest.fixture(scope="package")  # not longer: as long as Playwright is there, an event loop runs in this thread
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo leaves behind. Only looked at: who changes something takes a copy."""
    home = tmp_path_factory.mktemp("demo") / "home"
    done = selfpager("demo", "--home", home)
    assert done.code == 0, done.out + done.err
    return home


@pytest.fixture
def own_home(demo_home: Path, tmp_path: Path) -> Path:
    """A copy of what the demo left behind."""
    return shutil.copytree(demo_home, tmp_path / "home")


@pytest.fixture(scope="module")
def demo(demo_home: Path, browser: Browser) -> Iterator[Viewer]:
    with viewing(demo_home, browser) as viewer:
        yield viewer
