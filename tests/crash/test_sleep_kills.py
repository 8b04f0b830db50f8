"""SIGKILL at every kind of commit of a sleep: what is left is the proposal, or all of what was applied."""

import signal
from itertools import product
from pathlib import Path

from pager import Memory
from pager.sleep import Claim
from tests.crash.children import run, say
from tests.crash.commit_points import EVERY, CommitPoints, one_of_each
from tests.crash.load import open_memory

SAID = [f"I have painted tram {number} in {colour}." for number, colour in enumerate(("red", "green", "blue"))]
FACTS = ("prefers window seats", "Prefers window seats.", "the old boat", "The old boat!")
LATE = {"prefers window seats", "Prefers window seats.", "the old boat", "The old boat!"}


def sleep(memory: Memory) -> int | None:
    begun = memory.sleeps.begin()
    if begun is None:
        return None
    while turns := memory.sleeps.unread_turns(1):
        [step] = turns[0].steps
        memory.sleeps.add_facts(begun.number, [Claim(step.text.replace("I have", "Dana has"), (step.id,))], turns)
    memory.sleeps.judge(begun.number, {})
    return memory.sleeps.finish(begun.number, {"requests": 3}).number


def prepared(directory: Path) -> Memory:
    memory = open_memory(directory, life=1, core=None)
    for text in FACTS:
        memory.archive(text)
    memory.record_many([{"role": "user", "text": text, "name": "Dana"} for text in SAID])
    return memory


def sleeping(directory: Path, deadly: int, when: str) -> None:
    with prepared(directory):
        pass
    points = CommitPoints(deadly, after=when == "after", directory=directory)
    with open_memory(directory, life=2, core=None) as memory:
        number = sleep(memory)
        assert number
        memory.sleeps.apply(number)
        say("applied")
        memory.sleeps.undo(number)
        say("undone")
        memory.sleeps.refuse(number) if memory.sleeps.proposal(number).count("open") else None
    say("done", points.commits)


@EVERY
def test_killed_at_a_commit_of_a_sleep(tmp_path: Path, every: bool) -> None:
    life = run(sleeping, tmp_path / "whole", 0, "before")
    assert (life.signal, life.said[-1][0]) == (0, "done")
    whole = life.said[-1][1]
    assert len(whole) >= 7
    for number, when in product(one_of_each([commit.kind for commit in whole], every=every), ("before", "after")):
        directory = tmp_path / f"{number}-{when}"
        life = run(sleeping, directory, number, when)
        assert life.signal == signal.SIGKILL
        with open_memory(directory, life=3, core=None) as memory:
            assert memory.check() == []
            states = {edit.state for proposal in memory.sleeps.proposals() for edit in proposal.edits}
            assert len(states) <= 1, "all of it, or nothing"
            true = {row.fact.text for row in memory.inspect.facts("current").rows}
            assert (true == LATE) is (states != {"applied"})
            assert ["applied"] not in life.said or states != {"open"}
            again = sleep(memory)
            assert len(memory.sleeps.proposals()) <= 2
            texts = [fact.text for each in memory.sleeps.proposals() for edit in each.edits for fact in edit.after]
            new = [text for text in texts if text.startswith("Dana has")]
            assert sorted(new) == sorted({text.replace("I have", "Dana has") for text in SAID}), "no turn is read twice"
            assert again is None or memory.sleeps.proposal(again).finished
