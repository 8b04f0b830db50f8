"""A page of a shared memory is opened in that memory, and a shared block says whose it is."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pager import Home, Mount, Prefetch
from pager.types import BlockSpec
from tests.browser.looking import viewing

pytestmark = [pytest.mark.long, pytest.mark.slow]


def test_a_shared_page_is_opened_where_it_is(own_home: Path, browser: Browser) -> None:
    home = Home(own_home)
    with home.open("sales", embedder=None, core={"rules": BlockSpec(value="Be kind.")}) as unit:
        unit.archive("The Porto depot closes at six.")
    mount = Mount(home.place("sales"), core=("rules",))
    with home.open("ann", embedder=None, mounts=[mount], prefetch=Prefetch(k=2)) as memory:
        memory.append_user("When does the Porto depot close?")
        memory.request()
        memory.append_assistant("At six.")
        memory.search_archive("depot")
    with viewing(own_home, browser) as viewer:
        viewer.open("ann/core")
        expect(viewer.panel).to_contain_text("It is shared with others, in sales.")
        viewer.open("ann/searches")
        viewer.panel.locator(".chip", has_text="sales/f1").first.click()
        expect(viewer.page.locator("#page")).to_contain_text("The Porto depot closes at six.")
        expect(viewer.page.locator("#page-title")).to_have_text("Fact f1")
        assert "#sales/archive" in viewer.page.url
