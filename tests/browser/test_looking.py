"""The demo's agent in a real browser: going to a step, reading its request, finding out why something was forgotten."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from agents.explain.columns import columns
from agents.explain.pieces import between, pieces
from pager import Memory, MemoryReader
from tests.browser.looking import NARROW, WIDE, Viewer, viewing

pytestmark = pytest.mark.slow
TABS = ("Request", "Core", "CallLock", "Archive", "Ledger", "Searches", "Cost", "Trace")


@pytest.fixture
def guide(demo_home: Path):
    with MemoryReader.open(demo_home / "guide") as reading:
        yield reading


def last_step(guide: Memory) -> str:
    return columns(guide, 1)[0].step


def test_a_column_is_a_request_and_a_click_goes_there(demo: Viewer, guide: Memory) -> None:
    demo.open("guide")
    shown = demo.page.locator(".hit")
    expect(shown.last).to_have_attribute("data-step", "now")
    steps = [hit.get_attribute("data-step") for hit in shown.all()][:-1]
    known = columns(guide, len(steps))
    assert steps == [column.step for column in known]
    evicted = next(column for column in reversed(known) if column.opened)
    demo.page.locator(f'.hit[data-step="{evicted.step}"]').click()
    expect(demo.step).to_have_text(evicted.step)
    demo.sees(f"The request that {evicted.step} answered")
    demo.sees(evicted.opened)
    expect(demo.page.locator("#window-told")).to_contain_text(f"{evicted.used_tokens:,} of ")
    assert demo.page.locator(".epoch-mark").count() == sum(bool(column.opened) for column in known)


def test_the_request_is_read_piece_by_piece_with_its_tokens(demo: Viewer, guide: Memory) -> None:
    step = last_step(guide)
    demo.open(f"guide/request/{step}")
    held = pieces(guide, step)
    demo.sees(f"{len(held)} pieces, {sum(piece.tokens for piece in held):,} tokens")
    demo.panel.locator("summary", has_text="tools").click()
    shown = demo.panel.locator(".pieces li[data-key]")
    expect(shown).to_have_count(len(held))
    for piece in held:
        row = demo.panel.locator(f'li[data-key="{piece.key}"]')
        assert row.locator(".text").text_content() == piece.text
        assert row.locator(".tokens").first.text_content() == f"{piece.tokens:,}"


def test_what_entered_and_left_says_why(demo: Viewer, guide: Memory) -> None:
    opened = next(column for column in reversed(columns(guide)) if column.opened)
    before, _ = guide.inspect.around(opened.step)
    change = between(guide, before, opened.step)
    demo.open(f"guide/request/{opened.step}")
    left = demo.panel.locator(".moves.left > li")
    expect(left).to_have_count(len(change.left))
    assert left.locator(".why").all_text_contents() == [move.why for move in change.left]
    assert demo.panel.locator(".moves.entered > li").count() == len(change.entered)
    assert demo.panel.locator(".moves.changed .diff").count() == len(change.changed) > 0


def test_the_raw_request_is_what_was_sent(demo: Viewer, guide: Memory) -> None:
    step = last_step(guide)
    demo.open(f"guide/request/{step}")
    with demo.page.expect_download() as download:
        demo.panel.get_by_text("JSON as sent").click()
    assert json.loads(Path(download.value.path()).read_text()) == guide.history.rebuild(step)


def test_the_keys_find_and_walk(demo: Viewer, guide: Memory) -> None:
    newest = columns(guide, 3)
    demo.open("guide")
    for column in reversed(newest):
        demo.page.keyboard.press("ArrowLeft")
        expect(demo.step).to_have_text(column.step)
    demo.page.keyboard.press("ArrowRight")
    expect(demo.step).to_have_text(newest[1].step)
    demo.page.keyboard.press("/")
    expect(demo.page.locator("#find-text")).to_be_focused()
    demo.page.keyboard.type("cork shop")
    demo.page.keyboard.press("Enter")
    expect(demo.page.get_by_role("tab", name="Trace")).to_have_attribute("aria-selected", "true")
    demo.sees("“cork shop”")
    demo.page.keyboard.press("End")
    expect(demo.step).to_have_text("now")


def test_trace_says_why_an_evicted_text_is_not_in_the_prompt(demo: Viewer, guide: Memory) -> None:
    paged = guide.ledger(events=["page_in"])[0].page_id or ""
    row = guide.ledger(page=paged, events=["evict"])[0]
    words = guide.page(paged)[150:200]  # behind the first words, which the digest still shows
    after = next(column.step for column in columns(guide) if int(column.step[1:]) > row.step)
    demo.open(f"guide/request/{after}")
    demo.page.locator("#find-text").fill(words)
    demo.page.keyboard.press("Enter")
    answer = demo.panel.locator(".answer")
    expect(answer).to_have_class(re.compile(r"\bno\b"))
    expect(answer).to_contain_text(f"It was not in the request that {after} answered.")
    expect(answer).to_contain_text(f"{paged} had left the prompt after s{row.step}, because {row.reason}")
    expect(
        demo.panel.locator(".moment", has_text=f"{paged} left the prompt with {row.tokens:,} tokens")
    ).to_be_visible()
    expect(demo.panel.locator(".moment", has_text="paged")).to_be_visible()
    answer.get_by_role("button", name=paged).first.click()
    expect(demo.page.locator("#page .whole")).to_have_text(guide.page(paged))
    demo.page.keyboard.press("Escape")
    expect(demo.page.locator("#page")).to_be_hidden()


def test_facts_are_filtered_and_looked_into(demo: Viewer, guide: Memory) -> None:
    demo.open("guide/archive")
    total = guide.inspect.facts().total
    expect(demo.panel.locator(".count")).to_contain_text(f"of {total}")
    demo.panel.get_by_role("button", name="Ended").click()
    ended = guide.inspect.facts("ended")
    expect(demo.panel.locator(".count")).to_contain_text(f"of {ended.total}")
    demo.panel.get_by_role("button", name="All").click()
    demo.panel.get_by_role("searchbox").fill("budget")
    expect(demo.panel.locator(".count")).to_contain_text(f"of {guide.inspect.facts(text='budget').total}")
    old = guide.inspect.facts(text="budget").rows[-1].fact
    demo.panel.locator(f'[data-key="{old.id}"]').click()
    sheet = demo.page.locator("#page")
    expect(sheet.locator(".whole")).to_have_text(old.text)
    expect(sheet.locator(".near li")).to_have_count(len(guide.history.fact_versions(old.key or "")))
    sheet.get_by_role("button", name="Trace it").click()
    demo.sees(f"had been superseded by f{old.superseded_by}")


def test_the_ledger_is_filtered_by_event(demo: Viewer, guide: Memory) -> None:
    demo.open("guide/ledger")
    events = guide.inspect.events()
    expect(demo.panel.locator(".choice")).to_have_count(len(events))
    demo.panel.get_by_role("button", name=re.compile("^supersede")).click()
    expect(demo.panel.locator(".count")).to_contain_text(f"of {events['supersede']}")
    assert set(demo.panel.locator(".row .event").all_text_contents()) == {"supersede"}


def test_searches_show_each_part_of_a_score_and_what_was_missed(demo: Viewer, guide: Memory) -> None:
    row = guide.ledger(events=["search"])[-1]
    demo.open("guide/searches")
    card = demo.panel.locator(".search").first
    expect(card.locator(".query")).to_have_text(row.detail["query"])
    expect(card.locator(".hit-row")).to_have_count(len(row.detail["found"]) + len(row.detail.get("missed", [])))
    page, _, parts = row.detail["found"][0]
    best = card.locator(".hit-row").first
    expect(best).to_contain_text(page)
    for name in parts:
        expect(best.locator(".score-parts")).to_contain_text(name)
    if row.detail.get("missed"):
        expect(card.locator(".missed").first).to_contain_text("missed by")


def test_cost_names_where_the_cache_was_lost(demo: Viewer, guide: Memory) -> None:
    demo.open("guide/cost")
    usage = guide.inspect.usage()
    expect(demo.panel.locator(".sums")).to_contain_text(f"{usage.whole_input:,}")
    expect(demo.panel.locator(".break").first).to_contain_text("a new epoch began")


@pytest.mark.parametrize("look", ["dark", "light"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_panel_fits_dark_and_light_wide_and_narrow(
    demo_home: Path, browser: Browser, size: tuple[int, int], look: str
) -> None:
    with viewing(demo_home, browser, size=size, look=look) as viewer:
        viewer.open("guide/request/now/cork")
        for name in TABS:
            viewer.tab(name)
            expect(viewer.page.get_by_role("tab", name=name, exact=True)).to_have_attribute("aria-selected", "true")
            expect(viewer.panel.locator(".card").first).to_be_visible()
            wide = viewer.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size[0], f"{name} is {wide} pixels wide"
        ground = viewer.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128
        assert light == (look == "light")


def test_a_narrow_page_keeps_words_in_sight(demo_home: Path, browser: Browser) -> None:
    with viewing(demo_home, browser, size=NARROW) as viewer:
        viewer.open("guide/turns")
        row = viewer.panel.locator(".row .words").first
        expect(row).to_be_visible()
        assert (row.bounding_box() or {"width": 0})["width"] > 300


def test_an_empty_home_says_what_to_do(tmp_path: Path, browser: Browser) -> None:
    with viewing(tmp_path, browser) as viewer:
        viewer.page.goto(viewer.server.address)
        viewer.sees("There are no agents here yet.")
        viewer.sees("selfpager demo")
        viewer.sees(str(tmp_path))  # a home that was mistyped is recognized


def test_an_agent_that_was_never_asked_says_what_to_do(tmp_path: Path, browser: Browser) -> None:
    Memory.open(tmp_path / "young", embedder=None).close()
    with viewing(tmp_path, browser) as viewer:
        viewer.open("young")
        hints = {"Request": "selfpager chat", "Core": "core.blocks", "CallLock": "Nobody has said anything yet",
                 "Archive": "The archive is empty", "Ledger": "Nothing has moved yet",
                 "Searches": "Nobody has searched yet", "Cost": "Nothing was paid yet", "Trace": "Press /"}  # fmt: skip
        for name, hint in hints.items():
            viewer.tab(name)
            viewer.sees(hint)
