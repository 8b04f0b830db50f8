"""Functions for `script:` in the YAML of tests: models that say one thing, or keep and look up what they are told."""

from __future__ import annotations

from agents.models.scripted import OpenTurn
from agents.testing import Reply, call
from pager.types import Json


def ok(_: Json) -> str:
    """Answer anything with one word."""
    return "ok"


def keeps_and_finds(params: Json) -> Reply:
    """Search for a question and answer with what was found; archive anything else."""
    turn = OpenTurn.of(params)
    if turn.results:
        return Reply("\n".join(turn.results))
    if turn.said.endswith("?"):
        return Reply(calls=[call("search_archive", query=turn.said)])
    return Reply(calls=[call("archive", text=turn.said)])
