"""What was recalled for a message leaves whole when a small window has no room for it: a piece of it is no page."""

import re
from pathlib import Path

import pytest

from pager import Limits, Memory, Prefetch, WindowTooSmallError
from tests.support.clock import HandClock

SPILLED = re.compile(r'<spilled page_id=\\?"(x[0-9]+)\\?"')


@pytest.mark.parametrize("words", range(600, 700, 20))
def test_what_stands_for_a_page_can_be_read(tmp_path: Path, words: int) -> None:
    limits = Limits.for_window(2600, max_output_tokens=400, core_tokens=100)
    options = {"prefetch": Prefetch(k=4, budget_tokens=400), "embedder": None, "clock": HandClock()}
    with Memory.open(tmp_path, limits=limits, instructions="Be brief. " * (words // 2), **options) as memory:
        memory.archive("The train of the invoice is blue. " * 8)
        for number in range(6):
            memory.append_user(f"Which train has the blue invoice {number}? " + "window rain " * 60)
            try:
                sent = str(memory.request().params)
            except WindowTooSmallError:
                break
            for page in SPILLED.findall(sent):
                assert memory.page_text(page)
            memory.append_assistant("The blue train of the invoice. " * 20)
