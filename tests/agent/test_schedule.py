"""What a schedule begins, it begins once: after a kill, after a long time away, and never in the middle of a turn."""

from datetime import UTC, datetime, timedelta

import pytest

from agents.agent import Agent
from agents.config.sections import ScheduleConfig, SleepConfig
from agents.events import Stopped
from agents.schedule import begin_due, next_due, sleep_if_due
from tests.standin import Reply, call
from tests.support import HandClock
from tests.support.stage import Stage, last, said_to

NIGHT = datetime(2026, 5, 3, 2, tzinfo=UTC)
MORNING = ScheduleConfig(at="0 8 * * * UTC", say="Good morning.")
REPORT = ScheduleConfig(at="0 * * * *", task="Write the report.")
DONE = call("task_done", {"summary": "written"})


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NIGHT)


def opened(stage: Stage, clock: HandClock, *entries: ScheduleConfig) -> Agent:
    agent = stage.agent(task=True, clock=clock)
    agent.config = agent.config.model_copy(update={"schedule": entries})
    return agent


def run(agent: Agent) -> list[Stopped]:
    found: list[Stopped] = []
    while events := begin_due(agent):
        found.append(last(events))
    return found


def is_later(agent: Agent, clock: HandClock) -> bool:
    due = next_due(agent)
    return due is not None and clock.now() < due < clock.now() + timedelta(minutes=10)


def test_a_run_is_begun_when_it_is_due_and_once(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage.says("Morning!", "Morning!"), clock, MORNING)
    assert run(agent) == []
    assert next_due(agent) == NIGHT.replace(hour=8)
    for day in range(2):
        clock.set(NIGHT.replace(hour=8) + timedelta(days=day))
        assert [each.reason for each in run(agent)] == ["answered"]
        assert run(agent) == []
        assert next_due(agent) == NIGHT.replace(hour=8) + timedelta(days=day + 1)
    assert said_to(stage) == ["Good morning."] * 2


def test_missed_runs_are_made_up_for_once(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage.says("Morning!"), clock, MORNING)
    assert run(agent) == []
    clock.set(NIGHT + timedelta(days=40))
    assert len(run(agent)) == 1
    assert next_due(agent) == NIGHT.replace(hour=8) + timedelta(days=40)


def test_a_new_entry_makes_up_for_nothing(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage, clock, MORNING)
    clock.set(NIGHT.replace(hour=9))
    assert run(agent) == []
    assert next_due(agent) == NIGHT.replace(hour=8) + timedelta(days=1)
    agent.config = agent.config.model_copy(update={"schedule": (MORNING, REPORT)})
    assert run(agent) == []
    assert next_due(agent) == NIGHT.replace(hour=10)


def test_the_one_that_has_waited_longest_comes_first(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage.says(DONE, "Morning!"), clock, MORNING, REPORT)
    assert run(agent) == []
    clock.set(NIGHT.replace(hour=8, minute=30))
    assert sorted(each.reason for each in run(agent)) == ["answered", "done"]
    assert run(agent) == []


def test_it_waits_for_an_open_turn_and_for_an_open_task(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage.says("I shall.", "I shall.", "I shall.", "I shall.", DONE, DONE), clock, REPORT)
    assert run(agent) == []
    assert last(agent.tasks().start("Something else.")).reason == "answered"  # it stays open
    clock.set(NIGHT.replace(hour=5))
    assert begin_due(agent) is None
    assert last(agent.tasks().resume()).reason == "done"
    agent.memory.append_user("One moment.")
    assert begin_due(agent) is None
    agent.memory.leave_turn("Never mind.")
    assert [each.reason for each in run(agent)] == ["done"]


def test_what_waits_for_an_open_turn_or_task_is_not_due_at_once(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage.says("I shall.", "I shall.", "I shall.", "I shall."), clock, REPORT)
    agent.config = agent.config.model_copy(update={"sleep": SleepConfig(when="0 3 * * *", model="none")})
    assert (run(agent), sleep_if_due(agent)) == ([], False)
    assert last(agent.tasks().start("Something else.")).reason == "answered"  # it stays open
    clock.set(NIGHT.replace(hour=5))
    assert sleep_if_due(agent)
    assert is_later(agent, clock)
    agent.config = agent.config.model_copy(update={"schedule": (MORNING, REPORT)})
    assert run(agent) == []
    clock.set(NIGHT.replace(hour=7, minute=59))
    assert next_due(agent) == NIGHT.replace(hour=8)  # a message waits for no task
    clock.set(NIGHT.replace(hour=8, minute=30))
    agent.memory.append_user("One moment.")
    assert is_later(agent, clock)
    agent.memory.leave_turn("Never mind.")
    assert next_due(agent) == NIGHT.replace(hour=8)


def test_a_run_that_was_cut_off_after_its_message_is_not_begun_again(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage.says(Reply("Morning!")), clock, MORNING)
    assert run(agent) == []
    clock.set(NIGHT.replace(hour=8))
    events = begin_due(agent)
    assert events is not None
    next(events)  # said, and not answered: here the process ends
    events.close()
    assert agent.memory.turn_is_open
    agent.resume()
    assert run(agent) == []


def test_a_message_that_was_not_stored_is_said_the_next_time(
    stage: Stage, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = opened(stage.says("Morning!"), clock, MORNING)
    assert run(agent) == []
    clock.set(NIGHT.replace(hour=8))
    with monkeypatch.context() as patched:
        patched.setattr(agent.memory, "save_value", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(agent)
    assert not agent.memory.turn_is_open
    assert len(run(agent)) == 1


def test_a_sleep_at_a_time_comes_once(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage, clock)
    agent.config = agent.config.model_copy(update={"sleep": SleepConfig(when="0 3 * * *", model="none")})
    assert not sleep_if_due(agent)
    assert next_due(agent) == NIGHT.replace(hour=3)
    clock.set(NIGHT.replace(hour=4))
    assert [sleep_if_due(agent), sleep_if_due(agent)] == [True, False]
    assert next_due(agent) == NIGHT.replace(hour=3) + timedelta(days=1)


def test_an_idle_agent_sleeps_once_after_each_conversation(stage: Stage, clock: HandClock) -> None:
    agent = opened(stage.says("Hello.", "Hello."), clock)
    agent.config = agent.config.model_copy(update={"sleep": SleepConfig(when="idle 30m", model="none")})
    assert not sleep_if_due(agent)
    assert next_due(agent) is None
    for hour in (3, 5):
        clock.set(NIGHT.replace(hour=hour))
        agent.turn("Hello?")
        assert not sleep_if_due(agent)
        due = next_due(agent)
        assert due is not None
        clock.set(due)
        assert sleep_if_due(agent, stop=lambda: True)  # a message has come: it goes on later
        assert [sleep_if_due(agent), sleep_if_due(agent)] == [True, False]
        assert next_due(agent) is None
