"""The pytest fixture `rehearsal`, for tests of your own agents: no key, no network, every reply as you script it.

    def test_my_agent(rehearsal, tmp_path):
        rehearsal.script(call("lookup", order=17), "Order 17 is on its way.")
        with Agent.load("my_agent.yaml", home=tmp_path) as agent:       # model: {provider: rehearsal}
            assert "on its way" in agent.turn("Where is order 17?").text

A client of any other kind takes `rehearsal.base_url`. What a scripted function raised fails the test.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agents.rehearsal import Rehearsal


@pytest.fixture
def rehearsal() -> Generator[Rehearsal]:
    from agents.rehearsal import server  # pytest loads plugins at every start: it should cost nothing

    with server.Rehearsal() as started:
        before = server.share(started)
        try:
            yield started
        finally:
            server.share(before)
    if started.errors:
        raise started.errors[0]
