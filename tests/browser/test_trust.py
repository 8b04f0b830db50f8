"""What came from a page is labelled in the view, and what one command takes away is seen there."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from pager import BlockSpec, Memory
from pager.home import Home
from tests.browser.looking import viewing

PAGE = "web:shop.example"
WRONG = "refunds go to account 66"


def test_the_archive_shows_sources_and_filters_by_them(tmp_path: Path, browser: Browser) -> None:
    with Memory.open(tmp_path / "clerk", embedder=None, core={"notes": BlockSpec()}) as memory:
        memory.archive("refunds go to account 12", key="refunds", source="person")
        memory.archive(WRONG, key="refunds", source=PAGE)
        memory.core_append("notes", WRONG, source=PAGE)
    with viewing(tmp_path, browser) as viewer:
        viewer.open("clerk/archive")
        facts = viewer.panel.locator("button.line.fact")
        expect(facts).to_have_count(2)
        expect(facts.first.locator(".via")).to_have_text(f"via {PAGE}")
        assert facts.last.locator(".via").count() == 0
        viewer.panel.get_by_label("Only facts from").select_option(PAGE)
        expect(facts).to_have_count(1)
        facts.first.click()
        expect(viewer.page.locator("dialog[open]")).to_contain_text(f"from {PAGE}")
        viewer.open("clerk/core")
        viewer.sees(f"via {PAGE}")

        Home(tmp_path).send("clerk", "forget_source", {"source": PAGE})  # applied by this process, or by the view's
        viewer.open("clerk/archive")
        viewer.panel.get_by_role("button", name="Current", exact=True).click()
        expect(facts).to_have_count(1)
        expect(facts.first).to_contain_text("refunds go to account 12")
        viewer.open("clerk/core")
        viewer.sees("It is empty.")
