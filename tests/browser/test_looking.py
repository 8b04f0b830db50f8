"""One agent in a real browser: going to a step, reading its request, finding out why something was forgotten."""

import json
import re
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from agents.view.opening import open_in_browser
from pager import Memory, MemoryReader
from tests.browser.looking import NARROW, WIDE, Viewer, viewing

HINTS = {  # of each tab, where there is nothing to show
    "Request": "selfpager chat", "Core": "core.blocks", "Turns": "Nobody has said anything yet",
    "Archive": "The archive is empty", "Ledger": "Nothing has moved yet", "Searches": "Nobody has searched yet",
    "Cost": "Nothing was paid yet", "Trace": "Press /",
}  # fmt: skip


@pytest.fixture
def reader(guide_home: Path) -> Iterator[MemoryReader]:
    with MemoryReader.open(guide_home / "guide") as reader:
        yield reader


def test_a_column_is_a_request_and_a_click_shows_it_and_what_changed(viewer: Viewer, reader: MemoryReader) -> None:
    viewer.open("guide")
    shown = viewer.page.locator(".hit")
    expect(shown.last).to_have_attribute("data-step", "now")
    steps = [hit.get_attribute("data-step") for hit in shown.all()][:-1]
    columns = reader.inspect.columns(len(steps))
    assert steps == [column.step for column in columns]
    opened = next(column for column in reversed(columns) if column.opened)
    viewer.page.locator(f'.hit[data-step="{opened.step}"]').click()
    expect(viewer.step).to_have_text(opened.step)
    viewer.sees(f"The request that {opened.step} answered")
    viewer.sees(opened.opened)
    expect(viewer.page.locator("#window-told")).to_contain_text(f"{opened.used_tokens:,} of ")
    assert viewer.page.locator(".epoch-mark").count() == sum(bool(column.opened) for column in columns)
    change = reader.inspect.change(reader.inspect.neighbouring_requests(opened.step)[0], opened.step)
    left = viewer.panel.locator(".moves.left > li")
    expect(left).to_have_count(len(change.left))
    assert left.locator(".why").all_text_contents() == [move.why for move in change.left]
    assert viewer.panel.locator(".moves.entered > li").count() == len(change.entered)
    assert viewer.panel.locator(".moves.changed .diff").count() == len(change.changed) > 0


@pytest.mark.slow
def test_a_request_is_read_piece_by_piece_and_downloaded_as_it_was_sent(viewer: Viewer, reader: MemoryReader) -> None:
    step = reader.inspect.requests(0, 1).rows[0].step
    viewer.open(f"guide/request/{step}")
    pieces = reader.inspect.pieces(step)
    viewer.sees(f"{len(pieces)} pieces, {sum(piece.tokens for piece in pieces):,} tokens")
    viewer.panel.locator("summary", has_text="tools").click()
    expect(viewer.panel.locator(".pieces li[data-key]")).to_have_count(len(pieces))
    for piece in pieces:
        row = viewer.panel.locator(f'li[data-key="{piece.key}"]')
        assert row.locator(".text").text_content() == piece.text
        assert row.locator(".tokens").first.text_content() == f"{piece.tokens:,}"
    with viewer.page.expect_download() as download:
        viewer.panel.get_by_text("JSON as sent").click()
    assert json.loads(Path(download.value.path()).read_text()) == reader.history.rebuild(step)


@pytest.mark.slow
def test_the_keys_find(viewer: Viewer) -> None:
    """How arrows walk is in test_living.py."""
    viewer.open("guide")
    viewer.page.keyboard.press("ArrowLeft")
    viewer.page.keyboard.press("/")
    expect(viewer.page.locator("#find-text")).to_be_focused()
    viewer.page.keyboard.type("cork shop")
    viewer.page.keyboard.press("Enter")
    expect(viewer.page.get_by_role("tab", name="Trace")).to_have_attribute("aria-selected", "true")
    viewer.sees("“cork shop”")
    viewer.page.keyboard.press("End")
    expect(viewer.step).to_have_text("now")


def test_trace_says_why_an_evicted_text_is_not_in_the_prompt(viewer: Viewer, reader: MemoryReader) -> None:
    row = reader.ledger(page="s1", events=["evict"])[0]
    words = reader.page_text("s1")[150:200]  # behind the first words, which the digest still shows
    after = reader.inspect.reply_for(row.step)
    viewer.open(f"guide/request/{after}")
    viewer.page.locator("#find-text").fill(words)
    viewer.page.keyboard.press("Enter")
    answer = viewer.panel.locator(".answer")
    expect(answer).to_have_class(re.compile(r"\bno\b"))
    expect(answer).to_contain_text(f"It was not in the request that {after} answered.")
    expect(answer).to_contain_text(f"s1 had left the prompt after {row.step}, because {row.reason}")
    moment = viewer.panel.locator(".moment", has_text=f"s1 left the prompt with {row.tokens:,} tokens")
    expect(moment).to_be_visible()
    expect(viewer.panel.locator(".moment", has_text="paged")).to_be_visible()
    answer.get_by_role("button", name="s1", exact=True).first.click()
    expect(viewer.page.locator("#page .whole")).to_have_text(reader.page_text("s1"))
    viewer.page.keyboard.press("Escape")
    expect(viewer.page.locator("#page")).to_be_hidden()


@pytest.mark.slow
def test_facts_are_filtered_and_looked_into(viewer: Viewer, reader: MemoryReader) -> None:
    viewer.open("guide/archive")
    count = viewer.panel.locator(".count")
    expect(count).to_contain_text(f"of {reader.inspect.facts().total}")
    viewer.panel.get_by_role("button", name="Ended").click()
    expect(count).to_contain_text(f"of {reader.inspect.facts('ended').total}")
    viewer.panel.get_by_role("button", name="All").click()
    viewer.panel.get_by_role("searchbox").fill("budget")
    found = reader.inspect.facts(text="budget")
    expect(count).to_contain_text(f"of {found.total}")
    old = found.rows[-1].fact
    viewer.panel.locator(f'[data-key="{old.id}"]').click()
    sheet = viewer.page.locator("#page")
    expect(sheet.locator(".whole")).to_have_text(old.text)
    expect(sheet.locator(".near li")).to_have_count(len(reader.history.fact_versions("budget")))
    sheet.get_by_role("button", name="Trace it").click()
    viewer.sees(f"had been superseded by {found.rows[0].fact.id}")


@pytest.mark.slow
def test_the_ledger_the_searches_and_the_costs(viewer: Viewer, reader: MemoryReader) -> None:
    events = reader.inspect.events()
    viewer.open("guide/ledger")
    expect(viewer.panel.locator(".choice")).to_have_count(len(events))
    viewer.panel.get_by_role("button", name=re.compile("^supersede")).click()
    expect(viewer.panel.locator(".row .event")).to_have_text(["supersede"] * events["supersede"])
    row = reader.ledger(events=["search"])[-1]
    viewer.open("guide/searches")
    card = viewer.panel.locator(".search").first
    expect(card.locator(".query")).to_have_text(row.detail["query"])
    expect(card.locator(".hit-row")).to_have_count(len(row.detail["found"]) + len(row.detail["missed"]))
    page, _, parts = row.detail["found"][0]
    best = card.locator(".hit-row").first
    expect(best).to_contain_text(page)
    for name in parts:
        expect(best.locator(".score-parts")).to_contain_text(name)
    expect(card.locator(".missed").first).to_contain_text("missed by")
    viewer.open("guide/cost")
    expect(viewer.panel.locator(".sums")).to_contain_text(f"{reader.inspect.usage().whole_input:,}")
    expect(viewer.panel.locator(".break").first).to_contain_text("a new epoch began")


@pytest.mark.slow
@pytest.mark.parametrize("look", ["dark", "light"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_panel_fits_dark_and_light_wide_and_narrow(
    guide_home: Path, browser: Browser, size: tuple[int, int], look: str
) -> None:
    with viewing(guide_home, browser, size=size, look=look) as viewer:
        viewer.open("guide/request/now/cork")
        for name in HINTS:
            viewer.tab(name)
            expect(viewer.page.get_by_role("tab", name=name, exact=True)).to_have_attribute("aria-selected", "true")
            expect(viewer.panel.locator(".card").first).to_be_visible()
            wide = viewer.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size[0], f"{name} is {wide} pixels wide"
        ground = viewer.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128
        assert light == (look == "light")
        viewer.tab("Turns")
        row = viewer.panel.locator(".row .words").first
        expect(row).to_be_visible()
        assert (row.bounding_box() or {"width": 0})["width"] > 300


def test_without_agents_or_requests_it_says_what_to_do(tmp_path: Path, browser: Browser) -> None:
    with viewing(tmp_path, browser) as viewer:
        viewer.page.goto(viewer.server.address)
        for text in ("There are no agents here yet.", "selfpager demo", str(tmp_path)):  # a mistyped home is recognized
            viewer.sees(text)
        Memory.open(tmp_path / "young", embedder=None).close()
        viewer.open("young")
        for name, hint in HINTS.items():
            viewer.tab(name)
            viewer.sees(hint)


def test_the_file_that_a_browser_is_given_leads_to_the_page(
    guide_home: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    with viewing(guide_home, browser) as viewer:
        monkeypatch.setattr(webbrowser, "open", lambda url: viewer.page.goto(url) is not None)
        open_in_browser(viewer.server, f"{viewer.server.address}#guide")
        expect(viewer.page.locator("body[data-ready]")).to_be_attached()
        assert viewer.page.url.startswith(f"{viewer.server.address}#guide")
        assert [url.partition(":")[0] for url in viewer.asked_elsewhere] == ["file"]
        viewer.asked_elsewhere.clear()
