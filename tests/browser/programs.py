"""The browser that is on this machine, and how it is started: without a screen, and asking nobody."""

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As root there is no sandbox; the rest keeps it from asking the network for things of its own.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


class NoBrowser(Exception):
    """What to install."""


def browser_program() -> str:
    """$BROWSER_PROGRAM, or the first of the known names that is on the path."""
    program = os.environ.get("BROWSER_PROGRAM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise NoBrowser(
            "a browser is needed, and none is on the path. On Debian and Ubuntu: apt-get install chromium fonts-inter"
        )
    return program


@contextmanager
def started() -> Generator[Browser]:
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=browser_program(), args=FLAGS) as browser,
    ):
        yield browser


if __name__ == "__main__":  # which one it is, or, with exit code 1, what to install
    try:
        print(browser_program())  # noqa: T201
    except NoBrowser as missing:
        sys.exit(str(missing))
