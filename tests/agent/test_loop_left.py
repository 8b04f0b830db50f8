"""A turn may be left at any moment, and goes on from there; limits hold, and what was opened is closed."""

import asyncio
import signal
import threading
from typing import Any

import pytest

from agents.agent import Agent, Turn
from agents.events import Replied, Text
from agents.meter import RunLimits
from agents.tools.functions import Tool
from pager import RejectedError
from pager.memory import INTERRUPTED
from pager.types import Call
from tests.standin import Reply, call
from tests.support.hands import look
from tests.support.stage import Stage, last, results, until


class Waiting:
    """A tool that waits until it is released."""

    def __init__(self) -> None:
        self.began, self.released = threading.Event(), threading.Event()

    def wait(self) -> str:
        """Wait."""
        self.began.set()
        self.released.wait()
        return "waited"


async def cancel(task: asyncio.Task[Turn]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


def texts(content: list[Any]) -> list[str]:
    return [text for text, _ in results(content)]


def test_a_cancelled_await_stops_at_the_step(stage: Stage, waiting: Waiting) -> None:
    async def main() -> None:
        turn = asyncio.create_task(agent.aturn("go"))
        await asyncio.to_thread(waiting.began.wait)
        await cancel(turn)
        waiting.released.set()

    agent = stage.says(Reply(call("wait"), call("look"))).agent(waiting.wait, look)
    asyncio.run(main())  # waits for its threads
    assert [(each.name, each.begun) for each in agent.memory.open_calls] == [("look", False)]
    stage.says("Fine.")
    assert agent.resume().text == "Fine."


def test_a_cancelled_await_that_has_not_begun_stops_no_other_turn_and_says_nothing(
    stage: Stage, waiting: Waiting
) -> None:
    async def main() -> None:
        first = asyncio.create_task(agent.aturn("the first"))
        await asyncio.to_thread(waiting.began.wait)
        second = asyncio.create_task(agent.aturn("the second"))
        await asyncio.sleep(0)  # its thread is started, and waits for the first one's turn to end
        await cancel(second)
        waiting.released.set()
        assert (await first).text == "Fine."

    agent = stage.says(call("wait"), "Fine.").agent(waiting.wait)
    asyncio.run(main())  # waits for its threads
    assert not agent.memory.turn_is_open
    assert agent.memory.search_recall("second") == []


def test_stopped_in_the_middle_of_a_stream_the_reply_is_kept(stage: Stage) -> None:
    agent = stage.says(Reply("Let me see. " * 20, call("look")), "Fine.").agent(look)
    events = agent.stream("go")
    until(events, Text)
    agent.stop()
    rest = list(events)
    assert any(isinstance(event, Replied) for event in rest)
    assert last(rest).reason == "cancelled"
    assert agent.resume().text == "Fine."


def test_a_stop_that_came_too_late_does_not_stop_what_is_said_next(stage: Stage) -> None:
    agent = stage.says("Hello.", "Again.").agent()
    assert agent.turn("hello").stopped.reason == "answered"
    agent.stop()
    assert agent.turn("hello?").stopped.reason == "answered"


def test_an_interruption_in_a_tool_may_have_run(stage: Stage, waiting: Waiting) -> None:
    agent = stage.says(Reply(call("wait"), call("look")), "I see.").agent(waiting.wait, look)
    interrupt(agent, waiting)
    assert agent.resume().text == "I see."
    assert texts(stage.last) == [INTERRUPTED, "the sea is calm"]


def test_an_interrupted_call_that_may_run_again_was_approved_already(stage: Stage, waiting: Waiting) -> None:
    asked: list[str] = []

    def approve(call: Call) -> bool:
        asked.append(call.name)
        return True

    tool = Tool.of(waiting.wait, idempotent=True, approve="always")
    agent = stage.says(call("wait"), "I see.").agent(tool, approve=approve)
    interrupt(agent, waiting)
    waiting.released.set()
    assert agent.resume().text == "I see."
    assert texts(stage.last) == ["waited"]
    assert asked == ["wait"]


def interrupt(agent: Agent, waiting: Waiting) -> None:
    """Press Ctrl-C while the tool is at work: Python raises it in the main thread, wherever that waits."""
    main = threading.get_ident()

    def press() -> None:
        waiting.began.wait()
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        agent.turn("go")
    thread.join()


def test_two_turns_in_one_thread_say_so_instead_of_waiting_for_ever(stage: Stage) -> None:
    agent = stage.says("Hello.", "Again.").agent()
    events = agent.stream("hello")
    until(events, Replied)
    with pytest.raises(RejectedError, match="in the middle of a turn"):
        agent.turn("hello?")
    events.close()
    assert agent.turn("hello?").text == "Again."


def test_turns_of_threads_do_not_overlap(stage: Stage) -> None:
    agent = stage.agent()
    threads = [threading.Thread(target=agent.turn, args=[f"turn {number}"]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    roles = [message["role"] for message in stage.requests[-1]["messages"][1:]]
    assert roles == ["user", "assistant"] * 5 + ["user"]


def test_limits_hold_for_each_turn(stage: Stage) -> None:
    agent = stage.says(call("look"), call("look"), "So far.", call("look"), "Fine.")
    agent = agent.agent(look, limits=RunLimits(max_steps=2))
    turn = agent.turn("go")
    assert (turn.text, turn.stopped.reason, agent.memory.turn_is_open) == ("So far.", "steps", False)
    assert agent.turn("go on").text == "Fine."
