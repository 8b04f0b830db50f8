"""Changing a memory from the page, with the agent at rest and running; two viewers; hostile texts."""

import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from pager import BlockSpec, Limits, Memory, pending_commands
from pager.reader import MemoryReader
from tests.browser.guide import running
from tests.browser.looking import NARROW, Viewer, another, viewing

pytestmark = [pytest.mark.long, pytest.mark.slow]
TOO_LONG = "too long " * 400
RUNNING = f"running, process {os.getpid()}"


def toast(viewer: Viewer) -> Locator:
    return viewer.page.locator("#toast")


def edit_block(viewer: Viewer, text: str) -> None:
    viewer.panel.get_by_role("button", name="Edit").first.click()
    viewer.panel.get_by_role("textbox").fill(text)
    viewer.panel.get_by_role("button", name="Save").click()


def test_a_block_is_edited_and_the_agent_uses_it_at_its_next_step(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer:
        viewer.open("guide/core")
        edit_block(viewer, "name is Rosa, not Dana")
        expect(toast(viewer)).to_have_text("Done.")
        expect(viewer.panel.locator(".value")).to_have_text("name is Rosa, not Dana")
        viewer.sees("version 3 · by person")
        with running(own_home) as guide:
            step = guide.say("And now?")
            assert "name is Rosa, not Dana" in json.dumps(guide.memory.history.rebuild(step))
        viewer.tab("Request")
        viewer.page.locator(f'.hit[data-step="{step}"]').click()
        update = viewer.panel.locator(".moves.entered > li", has_text="update")
        expect(update).to_contain_text("a change that the agent did not make itself")
        expect(update).to_contain_text("name is Rosa, not Dana")


@pytest.mark.parametrize("goes_on", [True, False], ids=["the agent goes on", "the agent ends"])
def test_an_edit_of_a_running_agent_waits_for_its_next_step_or_its_end(
    own_home: Path, browser: Browser, goes_on: bool
) -> None:
    with viewing(own_home, browser) as viewer:
        with running(own_home) as guide:
            viewer.open("guide/core")
            expect(viewer.page.locator("#runner")).to_have_text(RUNNING)
            edit_block(viewer, "name is Rosa")
            expect(toast(viewer)).to_contain_text("Sent to the process that runs the agent")
            waiting = viewer.page.locator("#waiting")
            expect(waiting).to_contain_text(f"Waiting for process {os.getpid()}")
            expect(waiting).to_contain_text("core replace")
            assert [command["kind"] for command in pending_commands(own_home / "guide")] == ["core_replace"]
            if goes_on:
                assert "name is Rosa" in json.dumps(guide.memory.history.rebuild(guide.say("And now?")))
                expect(waiting).to_be_hidden()
        expect(waiting).to_be_hidden()
        expect(viewer.panel.locator(".value")).to_have_text("name is Rosa")


def test_a_refused_edit_says_why_and_keeps_what_was_typed(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer:
        viewer.open("guide/core")
        edit_block(viewer, TOO_LONG)
        expect(toast(viewer)).to_contain_text("Refused: the block 'human' would hold")
        expect(viewer.panel.get_by_role("textbox")).to_have_value(TOO_LONG)
        viewer.panel.get_by_role("button", name="Cancel").click()
        with running(own_home) as guide:
            expect(viewer.page.locator("#runner")).to_have_text(RUNNING)
            edit_block(viewer, TOO_LONG)
            expect(viewer.page.locator("#waiting")).to_be_visible()
            guide.say("And now?")
            refused = viewer.page.locator("#refused")
            expect(refused).to_contain_text("the block 'human' would hold")
            expect(refused).to_contain_text(TOO_LONG)
            refused.get_by_role("button", name="Put away").click()
            expect(refused).to_be_hidden()
        expect(viewer.panel.locator(".value")).to_have_text("name is Dana")


def test_facts_and_pages_of_an_agent_at_rest_are_changed_at_once(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser, size=NARROW) as viewer, MemoryReader.open(own_home / "guide") as reader:
        viewer.open("guide/archive")
        viewer.panel.get_by_text("Add a fact").click()
        for name, text in (("A fact", "likes tram 28"), ("Key", "tram"), ("Tags", "travel, city")):
            field = viewer.panel.get_by_role("textbox", name=name)
            field.scroll_into_view_if_needed()
            expect(field).to_be_in_viewport(ratio=1)
            field.fill(text)
        viewer.panel.get_by_role("button", name="Add", exact=True).click()
        expect(viewer.panel.locator(".row").first).to_contain_text("likes tram 28")
        fact = reader.inspect.newest_facts(1)[0]
        assert (fact.text, fact.key, fact.tags, fact.actor) == ("likes tram 28", "tram", ("travel", "city"), "person")
        sheet = viewer.page.locator("#page")
        for button, event in (("Pin", "pin"), ("Page out", "unpin")):
            viewer.panel.locator(f'[data-key="{fact.id}"]').click()
            sheet.get_by_role("button", name=button, exact=True).click()
            expect(sheet).to_be_hidden()
            assert event in {row.event for row in reader.ledger(page=fact.id)}
        viewer.panel.locator(f'[data-key="{fact.id}"]').click()
        sheet.get_by_role("textbox", name="Why it ends").fill("took the bus")
        sheet.get_by_role("button", name="Forget").click()
        expect(viewer.panel.locator(".row").first).to_contain_text("ended")
        assert reader.fact(fact.id).forgotten == "took the bus"


def test_a_message_waits_for_the_agent_to_be_started(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer:
        viewer.open("guide/turns")
        viewer.panel.get_by_role("textbox", name="A message to the agent").fill("Take the ferry on Monday.")
        viewer.panel.get_by_role("button", name="Send").click()
        waiting = viewer.page.locator("#waiting")
        expect(waiting).to_contain_text("Waiting for the agent to be started")
        expect(waiting).to_contain_text("Take the ferry on Monday.")
        with running(own_home) as guide:
            guide.say("And now?")
            expect(waiting).to_be_hidden()
        expect(viewer.panel.locator(".row", has_text="Take the ferry on Monday.")).to_be_visible()


def test_a_run_is_followed_without_disturbing_the_reader(own_home: Path, browser: Browser) -> None:
    """The page is not loaded again; what is unfolded or selected stays so. In a past request and in the next one."""
    with viewing(own_home, browser) as viewer, running(own_home) as guide:
        past = guide.say("On the first day we walked along the river.")
        for place, day in ((f"/{past}", "second"), ("", "third")):
            viewer.open(f"guide/request{place}")
            viewer.page.evaluate("window.same = true")
            viewer.panel.locator("summary", has_text="tools").click()
            more = viewer.panel.locator('[data-key="core:"] .more')
            more.click()
            if place:
                core = "document.querySelector('[data-key=\"core:\"] .text')"
                viewer.page.evaluate(f"getSelection().selectAllChildren({core})")
            newest = guide.say(f"On the {day} day it rained.")
            expect(viewer.page.locator(f'.hit[data-step="{newest}"]')).to_be_attached()
            if not place:
                viewer.sees("On the third day it rained.")
            expect(more).to_have_text("show less")
            expect(viewer.panel.locator("details")).to_have_attribute("open", "")
            if place:
                assert "<core>" in viewer.page.evaluate("String(getSelection())")
            assert viewer.page.evaluate("window.same") is True


def test_two_viewers_see_each_others_commands(own_home: Path, browser: Browser) -> None:
    with (
        viewing(own_home, browser) as one,
        another(one.server, browser, look="light") as other,
        running(own_home) as guide,
    ):
        one.open("guide/core")
        other.open("guide/turns")
        for viewer in (one, other):
            expect(viewer.page.locator("#runner")).to_have_text(RUNNING)
        edit_block(one, "name is Rosa")
        expect(other.page.locator("#waiting")).to_contain_text("core replace human: name is Rosa")
        other.panel.get_by_role("textbox", name="A message to the agent").fill("And the tickets?")
        other.panel.get_by_role("button", name="Send").click()
        expect(one.page.locator("#waiting")).to_contain_text("And the tickets?")
        step = guide.say("And now?")
        for viewer in (one, other):
            expect(viewer.page.locator("#waiting")).to_be_hidden()
            expect(viewer.page.locator(".hit").nth(-2)).to_have_attribute("data-step", step)
        expect(other.panel.locator(".row", has_text="And the tickets?")).to_be_visible()
        expect(one.panel.locator(".value")).to_have_text("name is Rosa")


def test_a_read_only_view_offers_nothing_to_change(guide_home: Path, browser: Browser) -> None:
    with viewing(guide_home, browser, read_only=True) as viewer:
        viewer.open("guide/core")
        viewer.sees("name is Dana")
        assert viewer.panel.get_by_role("button", name="Edit").count() == 0
        expect(viewer.page.locator("#runner")).to_have_text("not running · read-only")
        viewer.tab("Archive")
        viewer.panel.locator(".row button").first.click()
        expect(viewer.page.locator("#page").get_by_role("button", name="Trace it")).to_be_visible()
        assert viewer.page.locator("#page").get_by_role("button", name="Forget").count() == 0
        viewer.page.keyboard.press("Escape")
        viewer.tab("Turns")
        expect(viewer.panel.locator(".row").first).to_be_visible()
        assert viewer.page.get_by_role("button", name="Send").count() == 0


HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'><svg onload='window.hacked = 3'>"
    "</textarea></div><iframe src='javascript:window.hacked=4'></iframe> **bold** [link](javascript:window.hacked=5) "
    "\u202eevil {{7*7}} ${7*7} &lt;b&gt;"
)


def hostile_agent(home: Path) -> None:
    """Hostile texts wherever a text can be."""
    core = {"human": BlockSpec(value=HOSTILE, description=HOSTILE), "hard": BlockSpec(value=HOSTILE, read_only=True)}
    limits = Limits.for_window(20_000)
    with Memory.open(home / "hostile", embedder=None, core=core, instructions=HOSTILE, limits=limits) as memory:
        memory.record(HOSTILE, HOSTILE, name=HOSTILE, session=HOSTILE)
        memory.append_user(HOSTILE, name=HOSTILE)
        fact = memory.archive(HOSTILE, key=HOSTILE[:200], tags=[HOSTILE])
        memory.search_archive(HOSTILE)
        memory.search_recall("hacked")
        memory.page_in(fact.id, pin=True)
        memory.request()
        memory.append_assistant(HOSTILE, {"input_tokens": 2_000, "output_tokens": 10})
        memory.core_append("human", HOSTILE)
        memory.forget(fact.id, HOSTILE)


def test_hostile_texts_are_only_ever_shown(tmp_path: Path, browser: Browser) -> None:
    hostile_agent(tmp_path)
    with viewing(tmp_path, browser) as viewer:
        viewer.open("hostile/request/s3")
        for text in (HOSTILE, "f1", "s2"):
            viewer.page.locator("#find-text").fill(text)
            viewer.page.keyboard.press("Enter")
            expect(viewer.panel).to_have_attribute("data-text", text)
            expect(viewer.panel.locator(".life-of").first).to_be_visible()
            assert_inert(viewer)
        for name in ("Request", "Core", "Turns", "Archive", "Ledger", "Searches", "Cost"):
            viewer.tab(name)
            viewer.sees("evil" if name != "Cost" else "Sent")
            assert_inert(viewer)
            assert "\u202e" not in viewer.page.locator("body").inner_text(), "it would turn the words around it"
        viewer.tab("Archive")
        viewer.panel.locator('[data-key="f1"]').click()
        expect(viewer.page.locator("#page .whole")).to_have_text(HOSTILE.replace("\u202e", "\\u202e"))
        assert_inert(viewer)


def assert_inert(viewer: Viewer) -> None:
    assert viewer.page.evaluate("window.hacked") is None
    made = viewer.page.locator(
        ":is(main, dialog, #waiting) :is(script, img, iframe, a[href^='javascript'], strong, b:text-is('bold'))"
    )
    assert made.count() == 0


def test_even_a_mistake_of_ours_could_not_run_a_text(viewer: Viewer) -> None:
    """The browser has orders: no text becomes markup, and no script runs that did not come with the page."""
    viewer.open("guide")
    attempt = "document.body.insertAdjacentHTML('beforeend', '<i></i>')"
    refused = viewer.page.evaluate(f"() => {{ try {{ {attempt}; return ''; }} catch (e) {{ return e.name; }} }}")
    assert refused == "TypeError"
    assert re.search("TrustedHTML", " ".join(viewer.complaints))
    viewer.complaints.clear()
