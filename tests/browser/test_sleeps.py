"""The page of sleeps: each edit as a difference with its sources, decided one by one, and undone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pager import Memory
from pager.reader import MemoryReader
from pager.sleep import Claim
from tests.browser.looking import NARROW, viewing
from tests.support import Words

pytestmark = [pytest.mark.long, pytest.mark.slow]


def slept(home: Path) -> None:
    """A sleep with a merge, a fact that was said, and one that corrects another."""
    with Memory.open(home / "guide", embedder=Words()) as memory:
        for text in ("prefers window seats", "Prefers window seats."):
            memory.archive(text, source="said:Dana")
        memory.archive("sits on roofs", source="web:example.org")
        memory.archive("Sits on roofs!", source="web:example.org")
        memory.record("user", "I moved to Porto <b>last</b> week, by the way. It rains.", name="Dana")
        begun = memory.sleeps.begin()
        assert begun
        turns = [turn for turn in memory.sleeps.unread_turns(100) if turn.steps[0].who == "Dana"]
        claims = [Claim("Dana moved to Porto last week", (turns[-1].id,), key="home town")]
        memory.sleeps.add_facts(begun.number, claims, turns)
        memory.sleeps.finish(begun.number, {"requests": 1, "tokens": 900, "usd": 0.004})


@pytest.mark.parametrize("size", [(1280, 900), NARROW], ids=["wide", "narrow"])
def test_edits_are_decided_one_by_one_and_undone(own_home: Path, browser: Browser, size: tuple[int, int]) -> None:
    slept(own_home)
    with viewing(own_home, browser, size=size) as viewer, MemoryReader.open(own_home / "guide") as reader:
        viewer.open("guide/sleeps")
        edits = {edit.kind + (edit.after[0].text[:5]): edit for edit in reader.sleeps.proposal(1).edits}
        new = viewer.panel.locator(".edit", has_text="Dana moved to Porto")
        expect(new.locator("blockquote")).to_contain_text("I moved to Porto <b>last</b> week, by the way.")
        expect(new.locator(".diff")).to_contain_text("home town: Dana moved to Porto last week")
        expect(new).to_contain_text("from said:Dana")
        merge = viewer.panel.locator(".edit", has_text="Prefers window seats.")
        expect(merge.locator(".diff .left")).to_have_count(2)
        expect(viewer.panel.locator(".edit", has_text="Sits on roofs")).to_contain_text("from web:example.org")
        merge.get_by_role("button", name="Accept").click()
        expect(merge.locator(".state")).to_have_text("applied")
        viewer.panel.locator(".edit", has_text="Sits on roofs").get_by_role("button", name="Refuse").click()
        expect(viewer.panel.locator(".edit", has_text="Sits on roofs").locator(".state")).to_have_text("refused")
        expect(new.locator(".state")).to_have_text("open")
        assert {kind: edit.state for kind, edit in edits.items()} == dict.fromkeys(edits, "open")
        viewer.panel.get_by_role("button", name="Undo").click()
        expect(merge.locator(".state")).to_have_text("undone")
        viewer.panel.get_by_role("button", name="Apply all").click()
        expect(new.locator(".state")).to_have_text("applied")
        current = {row.fact.text for row in reader.inspect.facts("current").rows}
        assert {"Dana moved to Porto last week", "prefers window seats"} <= current


def test_an_agent_that_never_slept_says_how(own_home: Path, browser: Browser) -> None:
    with viewing(own_home, browser, read_only=True) as viewer:
        viewer.open("guide/sleeps")
        viewer.sees("selfpager sleep guide")
        slept(own_home)
        viewer.sees("said in s")
        expect(viewer.panel.get_by_role("button", name="Apply all")).to_have_count(0)
