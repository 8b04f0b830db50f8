"""How soon the debug view is there, and `selfpager show`, for an agent that is a thousand times as old as another.

Both agents have the same window; the old one has 100,000 turns and 100,000 facts, the young one 100 of each. A paint
counts from the click on the address until the window, the request and what is different in it are drawn, in a real
browser (`tests/browser/conftest.py` says which). `show` is a process of its own, Python's start with it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager import Limits, Memory
from pager.clock import SystemClock
from pager.home import Home
from tests.bench.figures import Figure, pair, timed
from tests.bench.grown import INSTRUCTIONS, Talk, archive_all
from tests.bench.texts import Texts
from tests.browser.programs import FLAGS, browser_program

OLD, YOUNG = 100_000, 100
PIECE = 1_000  # facts and turns are grown in turns, as they come in life
PAINTS, SHOWS = 25, 15
MOST_SHOW_S = 1.0
SCROLLS = 40
JUMP = "part => { const box = document.querySelector('.long'); box.scrollTop = part * box.scrollHeight; }"
ALL_THERE = "() => document.querySelectorAll('.row .fact').length > 5 && !document.querySelector('.row .waits')"


def grown(home: Path, name: str, size: int) -> None:
    texts = Texts()
    facts = texts.facts(size)
    with Memory.open(
        home / name, instructions=INSTRUCTIONS, embedder=None, limits=Limits.for_window(100_000)
    ) as memory:
        for start in range(0, size, PIECE):
            archive_all(memory, facts[start : start + PIECE])
            Talk(memory, texts).turns_in_batches(min(PIECE, size - start))


def figures(work: Path) -> list[Figure]:
    grown(work, "old", OLD)
    grown(work, "young", YOUNG)
    with (
        ViewServer(Readers(Home(work, clock=SystemClock()))) as server,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=browser_program(), args=FLAGS) as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        paints = pair(
            lambda: painted(page, f"{server.address}#old"), lambda: painted(page, f"{server.address}#young"),
            rounds=PAINTS, warm_up=2,
        )  # fmt: skip
        scrolled = slowest_scroll(page, f"{server.address}#old/archive")
    shows = pair(lambda: shown(work, "old"), lambda: shown(work, "young"), rounds=SHOWS, warm_up=1)
    told = ("old", "young")
    return [
        Figure("first paint at 100,000 turns and facts, against 100", paints.told(*told), paints.ratio, 2),
        Figure("`show` of the same", shows.told(*told), shows.ratio, 2),
        Figure("... in seconds", "", sorted(shows.ours)[len(shows.ours) // 2], MOST_SHOW_S, " s"),
        Figure(
            "a jump to anywhere in 100,000 facts, until its rows are there", "the slowest of 40", scrolled, None, " s"
        ),
    ]


def painted(page: Page, address: str) -> float:
    page.goto("about:blank")
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector("#panel .change")
    return time.perf_counter() - start


def shown(home: Path, name: str) -> float:
    command = [sys.executable, "-m", "agents", "show", name, "--home", str(home)]
    return timed(lambda: subprocess.run(command, check=True, capture_output=True))


def slowest_scroll(page: Page, address: str) -> float:
    """From a jump of the scroll bar until no row in sight is empty."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#panel .row .fact")
    slowest = 0.0
    for number in range(SCROLLS):
        start = time.perf_counter()
        page.evaluate(JUMP, (number * 37 % SCROLLS) / SCROLLS)
        page.wait_for_function(ALL_THERE)
        slowest = max(slowest, time.perf_counter() - start)
    return slowest
