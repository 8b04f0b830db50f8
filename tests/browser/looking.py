"""Somebody who looks at the debug view: a server over a home, a browser's page, and what went wrong in it.

with viewing(home, browser) as viewer:
    viewer.open("guide/request/s202")
    viewer.sees("The request that s202 answered")
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager.clock import SystemClock
from pager.home import Home

WIDE = (1280, 900)
NARROW = (390, 844)
expect.set_options(timeout=20_000)


class Viewer:
    """One page of one browser. Whatever it complains about, and whatever it asks of others, is kept."""

    def __init__(self, server: ViewServer, page: Page) -> None:
        self.server = server
        self.page = page
        self.complaints: list[str] = []
        self.asked_elsewhere: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.server.address, "about:")):
            self.asked_elsewhere.append(request.url)

    def open(self, hash_: str = "") -> None:
        """Load the page anew, whatever it showed before."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.address}#{hash_}")
        expect(self.page.locator("body[data-ready]")).to_be_attached()

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()

    @property
    def panel(self) -> Locator:
        return self.page.locator("#panel")

    @property
    def step(self) -> Locator:
        return self.page.locator("#step")

    def sees(self, text: str) -> None:
        expect(self.panel).to_contain_text(text)


def serving(home: Path, **options: Any) -> ViewServer:
    return ViewServer(Readers(Home(home, clock=SystemClock())), **options)


@contextmanager
def viewing(
    home: Path, browser: Browser, *, read_only: bool = False, size: tuple[int, int] = WIDE, look: str = "dark"
) -> Generator[Viewer]:
    """In the end nothing has gone wrong in the page, and it has asked nobody else."""
    with serving(home, read_only=read_only) as server, another(server, browser, size=size, look=look) as viewer:
        yield viewer


@contextmanager
def another(
    server: ViewServer, browser: Browser, *, size: tuple[int, int] = WIDE, look: Any = "dark"
) -> Generator[Viewer]:
    """One more who looks at what a server serves."""
    wide, high = size
    context = browser.new_context(viewport={"width": wide, "height": high}, color_scheme=look)
    try:
        viewer = Viewer(server, context.new_page())
        yield viewer
        assert viewer.complaints == []
        assert viewer.asked_elsewhere == []
    finally:
        context.close()
