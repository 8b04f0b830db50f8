"""axe finds nothing in any state of the page, dark and light, at three widths."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.browser.looking import Viewer, viewing

pytestmark = [pytest.mark.slow, pytest.mark.long]
SIZES = [(1440, 900), (1024, 800), (390, 844)]
STATES = [
    "", "guide/request", "guide/request/s4?with=s9", "guide/core", "guide/core/s9", "guide/turns", "guide/turns?q=cork",
    "guide/turns/now?page=s2", "guide/archive", "guide/archive/s9?kind=ended", "guide/archive/now?page=f2",
    "guide/ledger?events=evict", "guide/searches/now?q=place", "guide/cost", "guide/trace", "guide/trace/now/cork shop",
    "guide/trace/now/nothing at all", "errand/request", "errand/turns",
]  # fmt: skip


def complaints(viewer: Viewer) -> list[str]:
    found = Axe().run(viewer.page).response["violations"]
    return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("look", ["dark", "light"])
@pytest.mark.parametrize("size", SIZES, ids=["wide", "middle", "phone"])
def test_axe_finds_nothing(guide_home: Path, browser: Browser, size: tuple[int, int], look: str) -> None:
    with viewing(guide_home, browser, size=size, look=look) as viewer:
        found: dict[str, list[str]] = {}
        for state in STATES:
            viewer.open(state)
            found[state] = complaints(viewer)
        viewer.page.keyboard.press("?")
        expect(viewer.page.locator("#keys")).to_be_visible()
        found["keys"] = complaints(viewer)
        assert {state: each for state, each in found.items() if each} == {}
