"""The three parts of the protocol, each taken away: the judge of these scenarios notices.

Each scenario passes with the log as it is. With its mutant it has to fail, or it proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pager import Home, Memory, StorageError
from pager.errors import AgentLostError
from pager.log import rows as rows_module
from pager.log.rows import Rows
from tests.log.test_ownership import end_lease, stop_renewing

Scenario = Callable[[Home, str], None]


def facts(memory: Memory) -> list[str]:
    return [use.fact.text for use in memory.inspect.facts("current").rows][::-1]


def judge(home: Home, acknowledged: list[str]) -> None:
    """Everything that was acknowledged is in the restored agent, once, in order, and it is whole."""
    with home.open("x", embedder=None) as memory:
        assert facts(memory) == acknowledged
        assert memory.check() == []


def another_has_claimed(home: Home, address: str) -> None:
    """A worker stands still, another claims its agent and begins to work. The first commits nothing from then on: it
    may not even begin a call of a tool."""
    first = home.open("x", embedder=None)
    acknowledged = ["one"]
    first.archive("one")
    stop_renewing(address)
    end_lease(address)
    second = home.open("x", embedder=None)
    try:
        first.archive("of the one that stood still")
    except AgentLostError:
        pass
    else:
        raise AssertionError("a worker has committed to an agent that is another's")
    finally:
        first.close()
    second.archive("two")
    second.close()
    judge(home, [*acknowledged, "two"])


def postgres_is_lost_during_a_commit(home: Home, address: str) -> None:
    """Postgres refuses a commit. Whoever was told that it is stored finds it."""
    from tests.support.postgres import rows_of

    server, acknowledged = rows_of(address).server, list[str]()
    memory = home.open("x", embedder=None)
    memory.archive("one")
    acknowledged.append("one")
    server.ask("ALTER TABLE selfpager.commits ADD CONSTRAINT down CHECK (false) NOT VALID")
    try:
        memory.archive("two")
        acknowledged.append("two")
    except AgentLostError:
        pass
    server.ask("ALTER TABLE selfpager.commits DROP CONSTRAINT down")
    memory.close()
    judge(home, acknowledged)


def a_commit_is_missing(home: Home, address: str) -> None:
    """A standby took over that did not have the last commit. Nothing is put on top of the gap."""
    from tests.support.postgres import rows_of

    rows, acknowledged = rows_of(address), ["one"]
    memory = home.open("x", embedder=None)
    memory.archive("one")
    memory.archive("two, which the standby does not have")
    rows.server.tell(
        ("UPDATE selfpager.agents SET seq = seq - 1 RETURNING seq", ()),
        ("DELETE FROM selfpager.commits c USING selfpager.agents a WHERE c.agent = a.id AND c.seq > a.seq", ()),
    )
    try:
        memory.archive("three")
        acknowledged.append("three")
    except AgentLostError:
        pass
    finally:
        memory.close()
    judge(home, acknowledged)


SCENARIOS: list[Scenario] = [another_has_claimed, postgres_is_lost_during_a_commit, a_commit_is_missing]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_the_protocol_holds(home: Home, address: str, scenario: Scenario) -> None:
    scenario(home, address)


def test_without_the_fence_the_judge_notices(home: Home, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = "(fence, claim) = (%s, %s)"
    assert fence in rows_module._COMMIT
    monkeypatch.setattr(rows_module, "_COMMIT", rows_module._COMMIT.replace(fence, "%s > 0 AND %s IS NOT NULL"))
    with pytest.raises(AssertionError, match="another's"):
        another_has_claimed(home, address)


def test_acknowledged_before_it_is_stored_the_judge_notices(
    home: Home, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Rows.commit

    def commit_later(*args: Any) -> bool:
        try:
            return bool(commit(*args))
        except StorageError:
            return False  # it was acknowledged already

    monkeypatch.setattr(Rows, "commit", commit_later)
    with pytest.raises(AssertionError, match="two"):
        postgres_is_lost_during_a_commit(home, address)


def test_without_the_sequence_the_judge_notices(home: Home, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "seq = %s" in rows_module._COMMIT
    monkeypatch.setattr(rows_module, "_COMMIT", rows_module._COMMIT.replace("AND seq = %s", "AND %s >= 0"))
    with pytest.raises((AssertionError, StorageError)):
        a_commit_is_missing(home, address)
