"""SIGKILL while a helper works, then resumed: its effects once, no answered step asked for again, counted once."""

import signal
from pathlib import Path

import pytest

from agents import tasks
from agents.events import Stopped
from pager import AgentFiles, MemoryReader
from pager.memory import INTERRUPTED
from tests.crash.children import Life, run
from tests.crash.commit_points import EVERY
from tests.crash.helper_load import FACT, STEPS, TASK, asked, die_at_the_second, live, open_agent
from tests.crash.loop_load import standin
from tests.crash.test_loop_kills import killed_at, results_of
from tests.support.helping import effects
from tests.support.stage import last, stage_in


def finish(directory: Path, life: Life) -> list[str]:
    """As `run --resume` does; or as `run` again, when nothing of the task was kept. Payments that are in doubt."""
    with stage_in(directory, standin()) as stage, open_agent(stage, life=2) as agent:
        begun = tasks.current(agent.memory)
        runner = agent.tasks()
        assert last(runner.resume() if begun else runner.start(TASK)) == Stopped("done", "all is bought")
        for name, kind in (("x", "replied"), ("reader", "helper replied")):
            answered = sum(said[0] == kind for said in life.said)
            assert all(number >= answered for number in asked(stage, name))
            assert len(set(asked(stage, name))) == len(asked(stage, name))
        ended = tasks.current(agent.memory)
        assert ended is not None
        assert (ended.state, ended.steps) == ("done", STEPS)
        [fact] = agent.memory.inspect.newest_facts()
        assert (fact.text, [str(each) for each in fact.sources]) == (FACT, ["helper:reader"])
        assert agent.memory.check() == []
        steps = [stay.page_id for stay in agent.memory.history.resident()]
        answer, _ = results_of(agent.memory, steps).values()
        assert answer == "two hats\n\nIn your archive now, from reader: f1."
    [files] = AgentFiles(directory / "home" / "x").of_helpers()
    with MemoryReader.open(files.directory) as reader:
        results = results_of(reader, [stay.page_id for stay in reader.history.resident()])
    hat, _, ribbon, _ = results.values()
    done = effects(directory)
    for text, item in ((hat, "hat"), (ribbon, "ribbon")):
        assert (
            done.count(f"paid {item}") <= 1
            if text == INTERRUPTED
            else (done.count(f"paid {item}"), text) == (1, f"paid {item}")
        )
    stage.assert_over()
    return [text for text in (hat, ribbon) if text == INTERRUPTED]


@EVERY
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_commits(tmp_path: Path, when: str, every: bool) -> None:
    doubts = [
        doubt for directory, life in killed_at(tmp_path, live, when, every=every) for doubt in finish(directory, life)
    ]
    assert len(doubts) <= 2  # between the intent and the result of a payment


def test_killed_in_the_middle_of_its_second_call(tmp_path: Path) -> None:
    life = run(die_at_the_second, tmp_path)
    assert life.signal == signal.SIGKILL
    # The helper works in a thread of its own: whoever reads its events may be behind it when it dies.
    told = [said[0] for said in life.said]
    assert told == ["replied", "helper replied", "helper finished", "helper replied"][: len(told)]
    assert finish(tmp_path, life)
    assert effects(tmp_path) == ["paid hat", "paid ribbon"]
