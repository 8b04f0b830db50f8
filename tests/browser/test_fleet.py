"""Of more agents than a page shows: the next page, one from a name on, and an agent whose name is not listed."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from agents.testing import ScriptedServer
from agents.view import routes
from pager import Home, Memory
from tests.browser.looking import viewing
from tests.serve.conftest import Place

pytestmark = [pytest.mark.long, pytest.mark.slow]


def test_agents_are_shown_a_page_at_a_time(tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["anna", "bert", "cleo", "dora", "emil"]
    for name in names:
        Memory.open(tmp_path / name, embedder=None).close()
    monkeypatch.setattr(routes, "PAGE", 2)
    monkeypatch.setattr(routes, "MOST_NAMES", 4)
    with viewing(tmp_path, browser) as viewer:

        def shown(*expected: str) -> None:
            expect(viewer.panel.locator("tbody button.name")).to_have_text(list(expected))

        viewer.open()
        shown("anna", "bert")
        following = viewer.panel.get_by_role("button", name="Next")
        following.click()
        shown("cleo", "dora")
        following.click()
        shown("emil")
        expect(following).to_be_disabled()
        viewer.panel.get_by_role("button", name="First").click()
        shown("anna", "bert")
        jump = viewer.panel.get_by_role("searchbox")
        jump.fill("d")
        jump.press("Enter")
        shown("dora", "emil")
        viewer.panel.get_by_role("button", name="emil").click()
        expect(viewer.page).to_have_url(re.compile("#emil/"))
        viewer.open("emil/facts")  # though the list of names ends before it
        expect(viewer.page.locator("#agent")).to_have_value("emil")


def test_a_tenant_without_agents_is_told_how_it_can_make_one(tmp_path: Path, browser: Browser) -> None:
    with ScriptedServer() as model, Place(tmp_path, model).serving() as api:
        key = api.client("acme").headers["x-api-key"]
        with browser.new_context(http_credentials={"username": "", "password": key}) as context:
            page = context.new_page()
            page.goto(f"{api.url}/view/")
            expect(page.locator("#panel")).to_contain_text("POST /v1/agents makes one.")
            expect(page.locator("#panel")).not_to_contain_text("--home")


def test_an_agent_that_was_imported_has_sent_something_before(own_home: Path, tmp_path: Path, browser: Browser) -> None:
    with Home(own_home).read("guide") as reader:
        reader.export(tmp_path / "guide.db")
    Home(own_home).import_file(tmp_path / "guide.db", "again")
    with viewing(own_home, browser) as viewer:
        viewer.open()
        expect(viewer.panel.get_by_role("row").filter(has_text="again")).to_contain_text("no open epoch")
