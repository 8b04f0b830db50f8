"""Changing a memory from the page, with the agent at rest and at work; two who look on; hostile texts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from agents.demo.stage import Stage
from agents.explain.columns import columns
from pager import BlockSpec, Limits, Memory, pending_commands
from pager.reader import MemoryReader
from tests.browser.looking import NARROW, Viewer, another, viewing

pytestmark = pytest.mark.long
TOLD = "Tell me about the plan."


def asked(reading: MemoryReader) -> str:
    """The newest request, as it was sent."""
    return json.dumps(reading.history.rebuild(columns(reading, 1)[0].step), ensure_ascii=False)


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
        with Stage(own_home, os.environ).chat("guide") as talk:
            step = talk.say(TOLD).usages[0][0]
        with MemoryReader.open(own_home / "guide") as reading:
            assert "name is Rosa, not Dana" in json.dumps(reading.history.rebuild(step))
        viewer.tab("Request")
        viewer.page.locator(f'.hit[data-step="{step}"]').click()
        update = viewer.panel.locator(".moves.entered > li", has_text="update")
        expect(update).to_contain_text("a change that the agent did not make itself")
        expect(update).to_contain_text("name is Rosa, not Dana")


def test_an_edit_of_a_running_agent_waits_for_its_next_step(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer, Stage(own_home, os.environ).chat("guide") as talk:
        viewer.open("guide/core")
        expect(viewer.page.locator("#runner")).to_have_text(f"running, process {talk.pid}")
        edit_block(viewer, "name is Rosa")
        expect(toast(viewer)).to_contain_text("Left for the process that runs the agent")
        strip = viewer.page.locator("#waiting")
        expect(strip).to_contain_text(f"Waiting for process {talk.pid}")
        expect(strip).to_contain_text("core replace")
        assert [command["kind"] for command in pending_commands(own_home / "guide")] == ["core_replace"]
        talk.say(TOLD)
        expect(strip).to_be_hidden()
        expect(viewer.panel.locator(".value")).to_have_text("name is Rosa")
        with MemoryReader.open(own_home / "guide") as reading:
            assert "name is Rosa" in asked(reading)


def test_what_waits_when_the_agent_ends_is_done_then(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer:
        with Stage(own_home, os.environ).chat("guide") as talk:
            viewer.open("guide/core")
            expect(viewer.page.locator("#runner")).to_have_text(f"running, process {talk.pid}")
            edit_block(viewer, "name is Rosa")
            expect(viewer.page.locator("#waiting")).to_be_visible()
            talk.kill()
        expect(viewer.page.locator("#waiting")).to_be_hidden()
        expect(viewer.panel.locator(".value")).to_have_text("name is Rosa")


def test_a_refused_edit_says_why_and_keeps_what_was_typed(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer:
        viewer.open("guide/core")
        edit_block(viewer, "too long " * 400)
        expect(toast(viewer)).to_contain_text("Refused: the block 'human' would hold")
        expect(viewer.panel.get_by_role("textbox")).to_have_value("too long " * 400)
        viewer.panel.get_by_role("button", name="Cancel").click()
        expect(viewer.panel.locator(".value")).to_have_text("name is Dana")


def test_an_edit_that_the_running_agent_refuses_says_why_and_keeps_what_was_typed(
    own_home: Path, browser: Browser
) -> None:
    with viewing(own_home, browser) as viewer, Stage(own_home, os.environ).chat("guide") as talk:
        viewer.open("guide/core")
        expect(viewer.page.locator("#runner")).to_have_text(f"running, process {talk.pid}")
        edit_block(viewer, "too long " * 400)
        expect(viewer.page.locator("#waiting")).to_be_visible()
        talk.say(TOLD)
        strip = viewer.page.locator("#refused")
        expect(strip).to_contain_text("the block 'human' would hold")
        expect(strip).to_contain_text("too long " * 400)
        strip.get_by_role("button", name="Put away").click()
        expect(strip).to_be_hidden()
        expect(viewer.panel.locator(".value")).to_have_text("name is Dana")


def test_facts_and_pages_of_an_agent_at_rest_are_changed_at_once(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer, MemoryReader.open(own_home / "guide") as reading:
        viewer.open("guide/archive")
        viewer.panel.get_by_text("Add a fact").click()
        viewer.panel.get_by_role("textbox", name="A fact").fill("likes tram 28")
        viewer.panel.get_by_role("textbox", name="Key").fill("tram")
        viewer.panel.get_by_role("textbox", name="Tags").fill("travel, city")
        viewer.panel.get_by_role("button", name="Add", exact=True).click()
        expect(viewer.panel.locator(".row").first).to_contain_text("likes tram 28")
        fact = reading.inspect.newest_facts(1)[0]
        assert (fact.text, fact.key, fact.tags, fact.actor) == ("likes tram 28", "tram", ("travel", "city"), "person")
        sheet = viewer.page.locator("#page")
        for button, event in (("Pin", "pin"), ("Page out", "unpin")):
            viewer.panel.locator(f'[data-key="{fact.id}"]').click()
            sheet.get_by_role("button", name=button, exact=True).click()
            expect(sheet).to_be_hidden()
            assert event in {row.event for row in reading.ledger(page=fact.id)}
        viewer.panel.locator(f'[data-key="{fact.id}"]').click()
        sheet.get_by_role("textbox", name="Why it ends").fill("took the bus")
        sheet.get_by_role("button", name="Forget").click()
        expect(viewer.panel.locator(".row").first).to_contain_text("ended")
        assert reading.fact(fact.id).forgotten == "took the bus"


def test_a_fact_is_added_on_a_narrow_page(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser, size=NARROW) as viewer:
        viewer.open("guide/archive")
        viewer.panel.get_by_text("Add a fact").click()
        for name in ("A fact", "Key", "Tags"):
            field = viewer.panel.get_by_role("textbox", name=name)
            field.scroll_into_view_if_needed()
            expect(field).to_be_in_viewport(ratio=1)
            field.fill("tram 28")
        viewer.panel.get_by_role("button", name="Add", exact=True).click()
        expect(viewer.panel.locator(".row").first).to_contain_text("tram 28")


def test_a_message_waits_for_whoever_will_answer_it(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer:
        viewer.open("guide/turns")
        viewer.panel.get_by_role("textbox", name="A message to the agent").fill("Take the ferry on Monday.")
        viewer.panel.get_by_role("button", name="Send").click()
        strip = viewer.page.locator("#waiting")
        expect(strip).to_contain_text("Waiting for the agent to be started")
        expect(strip).to_contain_text("Take the ferry on Monday.")
        with Stage(own_home, os.environ).chat("guide") as talk:
            talk.say(TOLD)
            expect(strip).to_be_hidden()
        expect(viewer.panel.locator(".row", has_text="Take the ferry on Monday.")).to_be_visible()


def test_a_run_is_followed_without_loading_the_page_again(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer, Stage(own_home, os.environ).chat("guide") as talk:
        viewer.open("guide/request")
        viewer.page.evaluate("window.same = true")
        before = viewer.page.locator(".hit").nth(-2).get_attribute("data-step")
        for number in range(3):
            step = talk.say(f"On day {number} we walked along the river.").usages[-1][0]
            expect(viewer.page.locator(".hit").nth(-2)).to_have_attribute("data-step", step)
            viewer.sees(f"On day {number} we walked along the river.")
            assert step != before
        assert viewer.page.evaluate("window.same") is True


def test_who_reads_a_request_is_not_disturbed_by_the_agent_that_goes_on(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser) as viewer, Stage(own_home, os.environ).chat("guide") as talk:
        step = talk.say("On the first day we walked along the river.").usages[-1][0]
        for place, day in ((f"/{step}", "second"), ("", "third")):  # a request of the past, and the one to come
            viewer.open(f"guide/request{place}")
            viewer.panel.locator("summary", has_text="tools").click()
            more = viewer.panel.locator('[data-key="core:"] .more')
            more.click()
            if place:
                viewer.page.evaluate(
                    "getSelection().selectAllChildren(document.querySelector('[data-key=\"core:\"] .text'))"
                )
            newest = talk.say(f"On the {day} day it rained.").usages[-1][0]
            expect(viewer.page.locator(f'.hit[data-step="{newest}"]')).to_be_attached()
            if not place:
                viewer.sees("On the third day it rained.")
            expect(more).to_have_text("show less")
            expect(viewer.panel.locator("details")).to_have_attribute("open", "")
            if place:
                assert "<core>" in viewer.page.evaluate("String(getSelection())")


def test_two_look_on_while_the_agent_works(own_home: Path, browser: Browser) -> None:
    with (
        viewing(own_home, browser) as one,
        another(one.server, browser, look="light") as other,
        Stage(own_home, os.environ).chat("guide") as talk,
    ):
        one.open("guide/core")
        other.open("guide/turns")
        for viewer in (one, other):
            expect(viewer.page.locator("#runner")).to_have_text(f"running, process {talk.pid}")
        edit_block(one, "name is Rosa")
        expect(other.page.locator("#waiting")).to_contain_text("core replace human: name is Rosa")
        other.panel.get_by_role("textbox", name="A message to the agent").fill("And the tickets?")
        other.panel.get_by_role("button", name="Send").click()
        expect(one.page.locator("#waiting")).to_contain_text("And the tickets?")
        step = talk.say(TOLD).usages[-1][0]
        for viewer in (one, other):
            expect(viewer.page.locator("#waiting")).to_be_hidden()
            expect(viewer.page.locator(".hit").nth(-2)).to_have_attribute("data-step", step)
        expect(other.panel.locator(".row", has_text="And the tickets?")).to_be_visible()
        expect(one.panel.locator(".value")).to_have_text("name is Rosa")


def test_who_only_reads_is_offered_nothing_to_change(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser, read_only=True) as viewer:
        viewer.open("guide/core")
        viewer.sees("name is Dana")
        assert viewer.panel.get_by_role("button", name="Edit").count() == 0
        expect(viewer.page.locator("#runner")).to_have_text("not running · read-only")
        viewer.tab("Archive")
        row = viewer.panel.locator(".row button").first
        row.click()
        expect(viewer.page.locator("#page").get_by_role("button", name="Trace it")).to_be_visible()
        assert viewer.page.locator("#page").get_by_role("button", name="Forget").count() == 0
        viewer.page.keyboard.press("Escape")
        viewer.tab("CallLock")
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
            viewer.sees("Its life")
            inert(viewer)
        for name in ("Request", "Core", "CallLock", "Archive", "Ledger", "Searches", "Cost"):
            viewer.tab(name)
            viewer.sees("evil" if name != "Cost" else "Sent")
            inert(viewer)
            assert "\u202e" not in viewer.page.locator("body").inner_text(), "it would turn the words around it"
        viewer.tab("Archive")
        viewer.panel.locator('[data-key="f1"]').click()
        expect(viewer.page.locator("#page .whole")).to_have_text(HOSTILE.replace("\u202e", "\\u202e"))
        inert(viewer)


def inert(viewer: Viewer) -> None:
    assert viewer.page.evaluate("window.hacked") is None
    made = viewer.page.locator(
        ":is(main, dialog, #waiting) :is(script, img, iframe, a[href^='javascript'], strong, b:text-is('bold'))"
    )
    assert made.count() == 0


def test_even_a_mistake_of_ours_could_not_run_a_text(demo: Viewer) -> None:
    """The browser was told: no text becomes markup, and no script runs that did not come with the page."""
    demo.open("guide")
    attempt = "document.body.insertAdjacentHTML('beforeend', '<i></i>')"
    refused = demo.page.evaluate(f"() => {{ try {{ {attempt}; return ''; }} catch (e) {{ return e.name; }} }}")
    assert refused == "TypeError"
    assert re.search("TrustedHTML", " ".join(demo.complaints))
    demo.complaints.clear()
