"""SIGKILL at every kind of commit of a sleep: what is left is the proposal, or all of what was applied."""

import signal
from itertools import product
from pathlib import Path

import pytest

from pager import Memory
from pager.sleep import Claim
from tests.crash.children import run, say
from tests.crash.commit_points import EVERY, CommitPoints, one_of_each
from tests.crash.load import open_memory

SAID = [f"I have painted tram {number} in {colour}." for number, colour in enumerate(("red", "green", "blue"))]
FACTS = ("prefers window seats", "Prefers window seats.", "the old boat", "The old boat!")
LATE = {"prefers window seats", "Prefers window seats.", "the old boat", "The old boat!"}


def sleep(memory: Memory, reads: bool) -> int | None:
    """A whole sleep: with a model that notes what was said and judges, or without one."""
    if not reads:
        proposal = memory.sleeps.propose()
        return proposal and proposal.number
    begun = memory.sleeps.begin()
    if begun is None:
        return None
    while turns := memory.sleeps.unread_turns(1):
        [step] = turns[0].steps
        memory.sleeps.add_facts(begun.number, [Claim(step.text.replace("I have", "Dana has"), (step.id,))], turns)
        memory.sleeps.note(begun.number, {"requests": 1})
    pairs = memory.sleeps.pairs(begun.number)
    memory.sleeps.judge(begun.number, dict.fromkeys(pairs, "replaces"))
    return memory.sleeps.finish(begun.number, {"requests": 3}).number


def prepared(directory: Path) -> Memory:
    memory = open_memory(directory, life=1, core=None)
    for text in FACTS:
        memory.archive(text)
    memory.record_many([{"role": "user", "text": text, "name": "Dana"} for text in SAID])
    return memory


def sleeping(directory: Path, deadly: int, when: str, reads: bool) -> None:
    with prepared(directory):
        pass
    points = CommitPoints(deadly, after=when == "after", directory=directory)
    with open_memory(directory, life=2, core=None) as memory:
        number = sleep(memory, reads)
        assert number
        memory.sleeps.apply(number)
        say("applied")
        memory.sleeps.undo(number)
        say("undone")
        memory.sleeps.refuse(number) if memory.sleeps.proposal(number).count("open") else None
    say("done", points.commits)


@EVERY
@pytest.mark.parametrize("reads", [True, False], ids=["with a model", "without"])
def test_killed_at_a_commit_of_a_sleep(tmp_path: Path, every: bool, reads: bool) -> None:
    life = run(sleeping, tmp_path / "whole", 0, "before", reads)
    assert (life.signal, life.said[-1][0]) == (0, "done")
    whole = life.said[-1][1]
    assert len(whole) >= (9 if reads else 4)
    for number, when in product(one_of_each([commit.kind for commit in whole], every=every), ("before", "after")):
        directory = tmp_path / f"{number}-{when}"
        life = run(sleeping, directory, number, when, reads)
        assert life.signal == signal.SIGKILL
        with open_memory(directory, life=3, core=None) as memory:
            assert memory.check() == []
            assert memory.ledger(events=["epoch"]) == []
            states = {edit.state for proposal in memory.sleeps.proposals() for edit in proposal.edits}
            assert len(states) <= 1, "all of it, or nothing"
            true = {row.fact.text for row in memory.inspect.facts("current").rows}
            assert (true == LATE) is (states != {"applied"})
            assert ["applied"] not in life.said or states != {"open"}
            again = sleep(memory, reads)
            assert len(memory.sleeps.proposals()) <= 2
            texts = [fact.text for each in memory.sleeps.proposals() for edit in each.edits for fact in edit.after]
            new = [text for text in texts if text.startswith("Dana has")]
            noted = {text.replace("I have", "Dana has") for text in SAID} if reads else set[str]()
            assert sorted(new) == sorted(noted), "no turn is read twice"
            assert again is None or memory.sleeps.proposal(again).finished
