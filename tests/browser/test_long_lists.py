"""Lists that are longer than anybody reads: a piece of them is in the page, the right one, wherever one scrolls."""

from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pager import Memory
from tests.browser.looking import NARROW, WIDE, Viewer, viewing

pytestmark = pytest.mark.long
FACTS = 2_500
JUMP = "(box, part) => { box.scrollTop = part * (box.scrollHeight - box.clientHeight); }"
# Every place in sight has its row, and no row still waits for what it shows.
ALL_IN_SIGHT = """() => {
  const box = document.querySelector(".long").getBoundingClientRect();
  const rows = [...document.querySelectorAll(".long .row")].map(row => row.getBoundingClientRect());
  return !document.querySelector(".row .waits") && rows.length && rows[0].top <= box.top
    && rows[rows.length - 1].bottom >= box.bottom - 1;
}"""
ROWS = """() => [...document.querySelectorAll(".long .row")].map(
  row => [row.firstChild.dataset.key, Math.round(row.getBoundingClientRect().top)])"""
# A list of so many rows, whose texts are their places; nothing but the list is ours here.
LIST = """async total => {
  const { LongList } = await import("./list.js");
  const list = new LongList({
    height: 40, label: "numbers", nothing: () => "none",
    load: async (offset, limit) => {
      const length = Math.min(limit, total - offset);
      return { total, rows: Array.from({ length }, (_, place) => offset + place) };
    },
    row: number => { const b = document.createElement("b"); b.textContent = number; return b; },
  });
  document.getElementById("panel").replaceChildren(list.element);
  await list.again();
}"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home / "old", embedder=None) as memory, memory.transaction():
        for number in range(1, FACTS + 1):
            memory.archive(f"the fact number {number}", tags=["odd"] if number % 2 else [])
    return home


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_wherever_one_scrolls_the_rows_there_follow_each_other(
    home: Path, browser: Browser, size: tuple[int, int]
) -> None:
    with viewing(home, browser, size=size) as viewer:
        viewer.open("old/archive")
        box, newest = viewer.panel.locator(".long"), viewer.panel.locator(f'[data-key="f{FACTS}"]')
        expect(newest).to_be_visible()
        for part in (0.5, 0.123, 1):
            box.evaluate(JUMP, part)
            viewer.page.wait_for_function(ALL_IN_SIGHT)
            rows = viewer.page.evaluate(ROWS)
            assert len(rows) < 80, "only what is in sight is in the page"
            numbers = [int(key[1:]) for key, _ in rows]
            assert numbers == list(range(numbers[0], numbers[0] - len(numbers), -1))
            assert len({lower - upper for (_, upper), (_, lower) in pairwise(rows)}) == 1, "without a gap"
        expect(viewer.panel.locator('[data-key="f1"]')).to_be_visible()
        box.evaluate(JUMP, 0)
        expect(newest).to_be_visible()
        viewer.panel.get_by_role("searchbox").fill("number 17")
        expect(viewer.panel.locator(".count")).to_contain_text("of 111")


@pytest.mark.parametrize("total", [0, 1, 99, 100, 101, 5_000_000])
def test_a_list_of_any_length_shows_its_beginning_and_its_end(viewer: Viewer, total: int) -> None:
    viewer.open("guide/core")
    viewer.page.evaluate(LIST, total)
    rows = viewer.panel.locator(".row b")
    if not total:
        expect(viewer.panel.locator(".space")).to_have_text("none")
        return
    expect(rows.first).to_have_text("0")
    viewer.panel.locator(".long").evaluate(JUMP, 1)
    expect(rows.last).to_have_text(str(total - 1))
    expect(rows.last).to_be_in_viewport()
    expect(viewer.panel.locator(".count")).to_contain_text(f"of {total:,}")
