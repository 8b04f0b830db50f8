"""What happens around an open page: keys that are held, agents that come and go, a server that is gone for a while."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pager import Limits, Memory, MemoryReader
from tests.browser.looking import another, serving, viewing
from tests.support.ports import hold_port

pytestmark = pytest.mark.long
LIMITS = Limits.for_window(20_000)
REQUESTS = 150  # more than the page has columns

HELD = """([key, times]) => {
  for (let n = 0; n < times; n++) document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
}"""


@pytest.fixture(scope="module")
def long_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("long")
    with Memory.open(home / "anna", embedder=None, limits=LIMITS) as memory:
        for number in range(REQUESTS):
            memory.append_user(f"day {number}")
            memory.request()
            memory.append_assistant("And then?", {"input_tokens": 1_000 + number, "output_tokens": 5})
    return home


def test_held_arrows_lose_no_step(long_home: Path, browser: Browser) -> None:
    with MemoryReader.open(long_home / "anna") as reader:
        steps = [column.step for column in reader.inspect.columns(REQUESTS)] + ["now"]
    with viewing(long_home, browser) as viewer:
        viewer.open("anna/request")
        for key, times, place in (
            ("ArrowLeft", 40, -41), ("ArrowLeft", REQUESTS - 50, 10), ("ArrowRight", REQUESTS - 30, -21),
            ("ArrowRight", 2 * REQUESTS, -1), ("ArrowLeft", 2 * REQUESTS, 0),
        ):  # fmt: skip
            # As the browser tells of a key that is held: again and again, waiting for nothing.
            viewer.page.evaluate(HELD, [key, times])
            expect(viewer.step).to_have_text(steps[place])
            if key == "ArrowLeft":
                viewer.sees(f"The request that {steps[place]} answered")
                viewer.page.wait_for_url(f"**#anna/request/{steps[place]}")


def test_the_first_agent_of_a_home_appears_by_itself_and_so_do_others(tmp_path: Path, browser: Browser) -> None:
    with viewing(tmp_path, browser) as viewer:
        viewer.open()
        viewer.sees("There are no agents here yet.")
        with Memory.open(tmp_path / "bert", embedder=None, limits=LIMITS) as memory:
            memory.append_user("hello")
        viewer.panel.get_by_role("button", name="bert").click()
        viewer.sees("hello")
        expect(viewer.page.locator("#agent")).to_have_value("bert")
        with Memory.open(tmp_path / "a.nn-a_", embedder=None, limits=LIMITS):
            pass
        expect(viewer.page.locator("#agent option")).to_have_text(["All agents", "a.nn-a_", "bert"])
        expect(viewer.page.locator("#agent")).to_have_value("bert")
        viewer.page.locator("#agent").select_option("a.nn-a_")
        viewer.sees("Nothing was sent to a model yet.")


def test_an_agent_that_is_deleted_and_brought_back_while_it_is_looked_at(own_home: Path, browser: Browser) -> None:
    trouble = "there is no agent 'guide'"
    with viewing(own_home, browser) as viewer:
        viewer.open("guide/core")
        viewer.sees("name is Dana")
        (own_home / "guide").rename(own_home.parent / "aside")
        expect(viewer.page.locator("#trouble")).to_contain_text(trouble)
        shutil.copytree(own_home.parent / "aside", own_home / "guide")
        with Memory.open(own_home / "guide", embedder=None, limits=LIMITS) as memory:
            memory.core_append("human", "is back")
        expect(viewer.page.locator("#trouble")).to_be_hidden()
        viewer.sees("is back")
        viewer.complaints = [text for text in viewer.complaints if "404" not in text]  # the browser's own


def test_a_server_that_was_gone_is_found_again(own_home: Path, browser: Browser) -> None:
    held = hold_port()
    port = held.getsockname()[1]
    first = serving(own_home, port=port).start()
    with held, another(first, browser) as viewer:
        viewer.open("guide/core")
        viewer.sees("name is Dana")
        first.close()
        expect(viewer.page.locator("#trouble")).to_contain_text("selfpager view does not answer")
        expect(viewer.page.locator("#runner")).to_have_text("no answer")
        with Memory.open(own_home / "guide", embedder=None, limits=LIMITS) as memory:
            memory.core_append("human", "is back")
        with serving(own_home, port=port) as second:
            second.token = first.token  # as when a machine slept: the same server
            expect(viewer.page.locator("#trouble")).to_be_hidden()
            viewer.sees("is back")
        viewer.complaints = [text for text in viewer.complaints if "ERR_" not in text]  # the browser's own


def damaged(file: Path) -> None:
    file.write_bytes(b"no database at all" * 1_000)


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 999")


@pytest.mark.parametrize(("spoil", "told"), [(damaged, "pager.db is damaged"), (newer, "Install a newer selfpager")])
def test_a_memory_that_cannot_be_read_says_why_and_the_others_go_on(
    own_home: Path, browser: Browser, spoil: Callable[[Path], None], told: str
) -> None:
    spoil(own_home / "guide" / "pager.db")
    with viewing(own_home, browser) as viewer:
        viewer.open("guide/core")
        expect(viewer.page.locator("#trouble")).to_contain_text(told)
        viewer.page.locator("#agent").select_option("errand")
        viewer.sees("human")
        expect(viewer.page.locator("#trouble")).to_be_hidden()
        viewer.complaints = [text for text in viewer.complaints if "400" not in text]  # the browser's own
