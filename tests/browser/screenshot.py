"""The pictures in README and docs/, taken of the demo's agent: `make screenshot`. They show why it did not see what it
was told.

The demo is told anew for each picture taken, so they are of the code as it is.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pager.reader import MemoryReader
from pager.types import read_step_id
from tests.browser.looking import serving
from tests.browser.programs import started
from tests.support.cli import selfpager

FOLDER = Path(__file__).parents[2] / "docs"
TRACE = "guide/trace/{step}/cork shop"
DRAWN = (".moment", ".hit", ".pill:has-text('running')")  # by answers of their own
Picture = tuple[str, Literal["dark", "light"], tuple[int, int], str, tuple[str, ...]]
PICTURES: list[Picture] = [  # a file, how it looks, its size, its address, what has to be there
    ("view-dark", "dark", (1280, 1000), TRACE, DRAWN),
    ("view-light", "light", (1280, 1000), TRACE, DRAWN),
    ("view-agents", "light", (1280, 420), "", ("body[data-ready]",)),
    (
        "view-request",
        "dark",
        (1280, 1000),
        "guide/request/{step}",
        (".pill:has-text('running')", "#request-title", "#change-title"),
    ),
    ("view-phone", "light", (390, 844), TRACE, ("text=It was not in the request",)),
]


def forgotten(reading: MemoryReader) -> str:
    """A request in the middle of the time in which the page that the demo pages in again was out of the prompt."""
    page = reading.ledger(events=["page_in"])[0]
    left = reading.ledger(page=page.page_id, events=["evict"])[0]
    steps = [request.step for request in reversed(reading.inspect.requests(0, 1_000).rows)]
    between = [step for step in steps if read_step_id(left.step) < read_step_id(step) < read_step_id(page.step)]
    return between[len(between) // 2]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        home = Path(folder, "home")
        done = selfpager("demo", "--home", home)
        if done.code:
            sys.exit(done.out + done.err)
        with MemoryReader.open(home / "guide") as reading:
            step = forgotten(reading)
        with serving(home) as server, started() as browser:
            for name, look, size, hash_, drawn in PICTURES:
                page = browser.new_page(
                    viewport={"width": size[0], "height": size[1]}, device_scale_factor=2, color_scheme=look
                )
                page.goto(f"{server.address}#{hash_.format(step=step)}")
                for part in drawn:
                    page.locator(part).first.wait_for()
                page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
