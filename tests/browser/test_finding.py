"""The ways to what one looks for: all agents, moments, filters in the address, zoom, comparing, keys, copying."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pager import Limits, Memory, MemoryReader
from tests.browser.looking import NARROW, Viewer, viewing

REQUESTS = 700  # more than the chart can show at once


@pytest.fixture
def reader(guide_home: Path) -> Iterator[MemoryReader]:
    with MemoryReader.open(guide_home / "guide") as reader:
        yield reader


def test_all_agents_come_first_and_lead_on(viewer: Viewer, reader: MemoryReader) -> None:
    viewer.open()
    rows = viewer.panel.locator("tbody tr")
    expect(rows.locator(".name")).to_have_text(["errand", "guide"])
    window = reader.inspect.window()
    share = round(100 * window.used_tokens / (window.usable_tokens or 1))
    for told in ("not running", f"{share} % of {window.usable_tokens:,}", f"{reader.inspect.fact_counts().current}"):
        expect(rows.last).to_contain_text(told)
    rows.last.get_by_role("button", name="guide").click()
    expect(viewer.panel.locator(".change")).to_be_visible()
    viewer.page.keyboard.press("0")
    expect(rows).to_have_count(2)
    viewer.page.go_back()
    expect(viewer.page.locator("#agent")).to_have_value("guide")


@pytest.mark.slow
def test_at_a_step_every_tab_shows_that_moment(viewer: Viewer, reader: MemoryReader) -> None:
    requests = [row.step for row in reader.inspect.requests(0, 500).rows][::-1]
    then = requests[len(requests) // 2]
    totals = {
        "turns": reader.inspect.steps(0, 1, at=then).total, "archive": reader.inspect.facts(at=then).total,
        "ledger": reader.inspect.movements(at=then).total, "cost": reader.inspect.requests(0, 1, then).total,
    }  # fmt: skip
    for tab, total in totals.items():
        viewer.open(f"guide/{tab}/{then}")
        expect(viewer.panel.locator(".count")).to_contain_text(f"of {total:,}")
        expect(viewer.page.locator("#then")).to_contain_text(f"As it was in the request that {then} answered.")
    used = reader.inspect.usage(then)
    expect(viewer.panel.locator(".sums")).to_contain_text(f"{used.whole_input:,}")
    viewer.page.locator("#then").get_by_role("button", name="Show now").click()
    expect(viewer.panel.locator(".count")).to_contain_text(f"of {reader.inspect.requests(0, 1).total:,}")
    expect(viewer.page.locator("#then")).to_be_empty()
    viewer.open(f"guide/searches/{requests[0]}")
    viewer.sees("Nobody has searched yet.")


@pytest.mark.slow
def test_filters_and_dialogs_are_in_the_address(viewer: Viewer, reader: MemoryReader) -> None:
    viewer.open("guide/turns")
    viewer.panel.get_by_role("searchbox").fill("cork shop")
    found = reader.inspect.steps(0, 100, text="cork shop").total
    count = viewer.panel.locator(".count")
    expect(count).to_contain_text(f"of {found}")
    viewer.panel.get_by_role("button", name="Evicted").click()
    gone = reader.inspect.steps(0, 100, text="cork shop", kind="evicted").total
    expect(count).to_contain_text(f"of {gone}")
    viewer.panel.locator('[data-key="s1"]').click()
    sheet = viewer.page.locator("#page")
    expect(sheet).to_be_visible()
    address = viewer.page.url
    viewer.page.go_back()
    expect(sheet).to_be_hidden()
    viewer.open(address.partition("#")[2])
    expect(sheet.locator("h2")).to_have_text("Step s1")
    expect(count).to_contain_text(f"of {gone}")
    expect(viewer.panel.get_by_role("searchbox")).to_have_value("cork shop")
    sheet.get_by_role("button", name="Close").click()
    expect(viewer.page).not_to_have_url(re.compile("page="))
    viewer.open("guide/ledger/now?events=evict%2Cpage_in")
    expect(viewer.panel.locator('.choice[aria-pressed="true"]')).to_have_count(2)
    viewer.open("guide/archive/now?kind=ended&q=budget")
    expect(count).to_contain_text("of 1")


def test_a_step_shows_its_calls_with_their_results(viewer: Viewer, reader: MemoryReader) -> None:
    step = next(row.page_id for row in reader.inspect.steps(0, 500).rows if "weather" in row.calls)
    viewer.open(f"guide/turns/now?q=porto&page={step}")
    titles = viewer.page.locator("#page .part-title")
    expect(titles).to_have_text(["calls weather", "result"])
    expect(viewer.panel.locator(f'[data-key="{step}"] .words')).to_contain_text("weather(city: Porto) → sunny")


@pytest.mark.slow
def test_two_requests_far_apart_are_compared(viewer: Viewer, reader: MemoryReader) -> None:
    columns = reader.inspect.columns(60)
    first, last = columns[2].step, columns[-3].step
    viewer.open(f"guide/request/{last}")
    viewer.page.locator(f'.hit[data-step="{first}"]').click(modifiers=["Shift"])
    viewer.sees(f"From {first} to {last}")
    change = reader.inspect.change(first, last)
    expect(viewer.panel.locator(".moves.entered > li")).to_have_count(len(change.entered))
    expect(viewer.panel.locator(".moves.left > li")).to_have_count(len(change.left))
    viewer.panel.get_by_role("button", name="The one before").click()
    viewer.sees("What is different from the one before")
    viewer.panel.get_by_role("textbox", name="Compare").fill(first)
    viewer.page.keyboard.press("Enter")
    viewer.sees(f"From {first} to {last}")
    assert viewer.page.url.endswith(f"?with={first}")


@pytest.mark.slow
def test_a_part_alone_and_the_fold_and_the_keys(viewer: Viewer) -> None:
    viewer.open("guide")
    chart = viewer.page.locator("#chart")
    kinds = chart.locator("path.part:not(.next)")
    assert kinds.count() > 3
    viewer.page.locator('#legend [data-part="digest"]').click()
    expect(kinds).to_have_count(1)
    expect(chart.locator("svg")).to_have_attribute("aria-label", re.compile("tokens of digest"))
    viewer.page.locator('#legend [data-part="digest"]').click()
    viewer.page.get_by_role("button", name="Hide chart").click()
    expect(chart).to_be_hidden()
    viewer.page.keyboard.press("ArrowLeft")
    expect(viewer.page.locator("#then")).not_to_be_empty()
    viewer.page.get_by_role("button", name="Show chart").click()
    expect(chart.locator(".hit").first).to_be_attached()
    viewer.page.keyboard.press("?")
    keys = viewer.page.locator("#keys")
    expect(keys).to_contain_text("trace a text")
    viewer.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    viewer.page.keyboard.press("3")
    expect(viewer.page.get_by_role("tab", name="Turns")).to_have_attribute("aria-selected", "true")


@pytest.mark.long
@pytest.mark.slow
def test_the_whole_life_is_seen_and_reached(tmp_path: Path, browser: Browser) -> None:
    with Memory.open(tmp_path / "anna", embedder=None, limits=Limits.for_window(20_000)) as memory:
        for number in range(REQUESTS):
            memory.append_user(f"day {number}")
            memory.request()
            memory.append_assistant("And then?", {"input_tokens": 1_000 + number, "output_tokens": 5})
        steps = [column.step for column in memory.inspect.columns(REQUESTS)]
    with viewing(tmp_path, browser) as viewer:
        viewer.open("anna")
        hits, frame = viewer.page.locator(".hit"), viewer.page.locator("#life .frame")
        expect(hits.last).to_have_attribute("data-step", "now")
        before = hits.count()
        box = viewer.page.locator("#life").bounding_box()
        assert box
        viewer.page.mouse.click(box["x"] + 3, box["y"] + 10)  # the beginning of the life
        expect(hits.first).to_have_attribute("data-step", steps[0])
        assert (frame.bounding_box() or box)["x"] < box["x"] + 5
        expect(viewer.step).to_have_text("now")
        viewer.page.keyboard.press("-")
        viewer.page.wait_for_function("least => document.querySelectorAll('.hit').length > least", arg=before)
        viewer.page.keyboard.press("Home")
        expect(viewer.step).to_have_text(steps[0])
        viewer.page.keyboard.press("End")
        expect(viewer.step).to_have_text("now")
        expect(hits.last).to_have_attribute("data-step", "now")


def test_what_is_shown_can_be_copied(guide_home: Path, browser: Browser, reader: MemoryReader) -> None:
    with viewing(guide_home, browser) as viewer:
        viewer.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        viewer.open("guide/trace/now/s1")
        viewer.panel.locator(".answer").get_by_role("button", name="Copy").click()
        expect(viewer.panel.get_by_role("button", name="Copied")).to_be_visible()
        assert "“s1”: It is" in viewer.page.evaluate("navigator.clipboard.readText()")
        viewer.open("guide/turns/now?page=s1")
        viewer.page.locator("#page").get_by_role("button", name="Copy").click()
        expect(viewer.page.locator("#page").get_by_role("button", name="Copied")).to_be_visible()
        assert viewer.page.evaluate("navigator.clipboard.readText()") == reader.page_text("s1")


def test_on_a_phone_the_panel_comes_before_the_chart(guide_home: Path, browser: Browser) -> None:
    with viewing(guide_home, browser, size=NARROW) as viewer:
        viewer.open("guide")
        expect(viewer.panel.locator(".change")).to_be_in_viewport()
        expect(viewer.page.locator("#chart")).to_be_hidden()
        for button in ("The request before", "Now"):
            expect(viewer.page.get_by_role("button", name=button)).to_be_in_viewport()


def test_a_search_that_is_tried_shows_scores_that_add_up(viewer: Viewer) -> None:
    viewer.open("guide/searches")
    viewer.panel.get_by_role("searchbox", name="Try a search").fill("a place worth a visit")
    viewer.panel.get_by_role("button", name="Try").click()
    rows = viewer.panel.locator(".tried .hit-row")
    expect(rows.first).to_be_visible()
    for row in rows.all():
        parts = (row.locator(".score-parts").text_content() or "").lstrip("= ").split(" + ")
        score = float(row.locator(".score b").text_content() or "")
        assert round(sum(float(part.split()[-1]) for part in parts if part != "no rival"), 2) == score
