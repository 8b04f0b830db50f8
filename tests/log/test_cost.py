"""The price of a commit: one round trip, one row here and one there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from pager import Home
from pager.log import rows as rows_module
from tests.log.test_outages import behind
from tests.log.test_restore import rows_of

if TYPE_CHECKING:
    from tests.support.proxy import Proxy


def test_a_turn_is_two_round_trips(proxy: Proxy, address: str) -> None:
    with Home(behind(proxy, address)).open("x", embedder=None) as memory:
        for number in range(4):
            before = proxy.requests
            memory.append_user(f"message {number}")
            memory.request()
            memory.append_assistant(
                {"role": "assistant", "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn"}
            )
            if number:  # the first prepares the statement
                assert proxy.requests == before + 2


@pytest.mark.parametrize("kind", ["directory", "postgres"])
def test_an_open_agent_has_four_descriptors(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    def opened() -> Counter[str]:
        return Counter(each.path for each in psutil.Process().open_files())

    home = Home(tmp_path) if kind == "directory" else Home(request.getfixturevalue("address"))
    with home.open("first", embedder=None) as first:
        first.append_user("hello")
        before = opened()
        with home.open("x", embedder=None) as memory:
            memory.append_user("hello")
            found = opened()
    assert (found - before).total() == 4, found - before  # what an earlier test has left may be closed meanwhile


def test_a_commit_changes_no_column_of_an_agent_that_is_in_an_index(home: Home, address: str) -> None:
    home.open("x", embedder=None).close()
    found = rows_of(address).server.ask(
        """SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
           WHERE i.indrelid = 'selfpager.agents'::regclass"""
    )
    changed = rows_module._COMMIT.partition("SET")[2].partition("WHERE")[0]
    assert "seq =" in changed
    assert [name for (name,) in found if f"{name} =" in changed] == []
