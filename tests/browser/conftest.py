"""A real browser for the debug view: Debian's chromium, without a screen, driven by Playwright.

Where there is none, these tests fail and say which package to install; `make test` leaves them out then, and says so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.looking import Viewer, viewing
from tests.support.cli import selfpager

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As root there is no sandbox; the rest keeps it from asking the network for things of its own.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("BROWSER_PROGRAM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.fail("these tests need a browser. On Debian and Ubuntu: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
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
