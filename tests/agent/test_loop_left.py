"""A turn may be left at any moment, and goes on from there; limits hold, and what was opened is closed."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.agent import Agent
from agents.events import Event, Replied, Text
from agents.loop import PASSED_OVER
from agents.meter import RunLimits
from agents.models.anthropic import AnthropicModel
from agents.tools.functions import Tool
from pager import RejectedError
from pager.memory import INTERRUPTED
from pager.types import Call
from tests.standin import Reply, call, thinking
from tests.support.hands import look
from tests.support.stage import Stage, stage_in, until


def said(stage: Stage) -> str:
    return str(stage.requests[-1]["messages"])


def looks_once(params: Any) -> Reply:
    """Calls tools when it is asked, and answers when they have run."""
    if params["messages"][-1]["content"][0]["type"] == "tool_result":
        return Reply(thinking("so"), "Calm. " * 20)
    return Reply(thinking("hm"), "Let me see.", call("look"), call("archive", {"text": "calm"}), call("look"))


@pytest.mark.slow
def test_closed_at_every_event_it_goes_on(tmp_path: Path) -> None:
    with stage_in(tmp_path) as stage:
        whole = list(stage.follows(looks_once).agent(look).stream("how is the sea?"))
    assert len(whole) > 12
    for count in range(1, len(whole)):
        with stage_in(tmp_path / str(count)) as stage:
            agent = stage.follows(looks_once).agent(look)
            events = agent.stream("how is the sea?")
            seen: list[Event] = [next(events) for _ in range(count)]
            events.close()
            assert agent.resume().stopped.reason == "answered"
            assert "how is the sea?" in str(stage.requests[-1]["messages"][0])
            assert len(agent.memory.inspect.newest_facts()) == 1, f"closed after {seen[-1]}"
            assert not agent.memory.turn_is_open
            agent.turn("and now?")
            stage.assert_over()
            assert agent.memory.check() == []


def test_stopped_in_a_tool_it_stops_at_the_step(stage: Stage) -> None:
    def stop() -> str:
        """Ask for the end."""
        agent.stop()
        return "asked"

    agent = stage.says(Reply(call("stop"), call("look")), "Fine.").agent(stop, look)
    turn = agent.turn("go")
    assert turn.stopped.reason == "cancelled"
    assert [each.name for each in agent.memory.open_calls] == ["look"]
    assert agent.resume().text == "Fine."


def test_a_cancelled_await_stops_at_the_step(stage: Stage) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def wait() -> str:
        """Wait until the test has cancelled."""
        began.set()
        goes_on.wait()
        return "waited"

    async def main() -> None:
        turn = asyncio.create_task(agent.aturn("go"))
        await asyncio.to_thread(began.wait)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        goes_on.set()

    agent = stage.says(Reply(call("wait"), call("look"))).agent(wait, look)
    asyncio.run(main())  # waits for its threads
    assert [(each.name, each.begun) for each in agent.memory.open_calls] == [("look", False)]
    assert stage.says("Fine.").agent
    assert agent.resume().text == "Fine."


def test_a_cancelled_await_that_has_not_begun_stops_nobody_else_and_says_nothing(stage: Stage) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def wait() -> str:
        """Wait until the test has cancelled the other one."""
        began.set()
        goes_on.wait()
        return "waited"

    async def main() -> None:
        first = asyncio.create_task(agent.aturn("the first"))
        await asyncio.to_thread(began.wait)
        second = asyncio.create_task(agent.aturn("the second"))
        await asyncio.sleep(0)  # its thread is started, and waits for the first one's turn to end
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        goes_on.set()
        assert (await first).text == "Fine."

    agent = stage.says(call("wait"), "Fine.").agent(wait)
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
    assert rest[-1].reason == "cancelled"  # type: ignore[union-attr]
    assert agent.resume().text == "Fine."


def test_a_stop_that_came_too_late_does_not_stop_what_is_said_next(stage: Stage) -> None:
    agent = stage.says("Hello.", "Again.").agent()
    assert agent.turn("hello").stopped.reason == "answered"
    agent.stop()
    assert agent.turn("hello?").stopped.reason == "answered"


def test_an_interruption_in_a_tool_may_have_run(stage: Stage) -> None:
    began = threading.Event()

    def wait() -> str:
        """Wait for ever."""
        began.set()
        threading.Event().wait()
        return ""

    agent = stage.says(Reply(call("wait"), call("look")), "I see.").agent(wait, look)
    interrupted(agent, began)
    assert agent.resume().text == "I see."
    assert [block["content"][0]["text"] for block in stage.last] == [INTERRUPTED, "the sea is calm"]


def test_an_interrupted_call_that_may_run_again_was_approved_already(stage: Stage) -> None:
    began, asked, waits = threading.Event(), list[str](), [threading.Event(), threading.Event()]
    waits[1].set()

    def wait() -> str:
        """Wait for ever, the first time."""
        began.set()
        waits.pop(0).wait()
        return "waited"

    def approve(waiting: Call) -> bool:
        asked.append(waiting.name)
        return True

    tool = Tool.of(wait, idempotent=True, approve="always")
    agent = stage.says(call("wait"), "I see.").agent(tool, approve=approve)
    interrupted(agent, began)
    assert agent.resume().text == "I see."
    assert [block["content"][0]["text"] for block in stage.last] == ["waited"]
    assert asked == ["wait"]


def interrupted(agent: Agent, began: threading.Event) -> None:
    """Ctrl-C while a tool is at work: Python raises it in the main thread, wherever that waits."""
    main = threading.get_ident()

    def press() -> None:
        began.wait()
        signal.pthread_kill(main, signal.SIGINT)

    presses = threading.Thread(target=press)
    presses.start()
    with pytest.raises(KeyboardInterrupt):
        agent.turn("go")
    presses.join()


def test_something_new_said_in_an_open_turn_answers_its_calls_first(stage: Stage) -> None:
    agent = stage.says(Reply(call("look", {"at": "sea"}), call("archive", {"text": "calm"}))).agent(look)
    events = agent.stream("how is the sea?")
    until(events, Replied)
    events.close()
    assert stage.says("Calm, and so is the sky.").agent
    assert agent.turn("and the sky?").text == "Calm, and so is the sky."
    *_, results, said_next = stage.requests[-1]["messages"]
    assert [block["content"][0]["text"] for block in results["content"]] == [PASSED_OVER, PASSED_OVER]
    assert said_next["content"][0]["text"] == "and the sky?"
    assert agent.memory.inspect.newest_facts() == []


def test_what_was_stopped_is_not_run_because_something_else_is_said(stage: Stage) -> None:
    refunded: list[str] = []

    def wait() -> str:
        """Ask for the end."""
        agent.stop()
        return "waited"

    def refund() -> str:
        """Give the money back."""
        refunded.append("all of it")
        return "done"

    agent = stage.says(Reply(call("wait"), call("refund"))).agent(wait, refund)
    assert agent.turn("Wait, then give the money back.").stopped.reason == "cancelled"
    assert stage.says("I did not.").agent
    assert agent.turn("Do not give it back!").text == "I did not."
    assert refunded == []
    assert [block["content"][0]["text"] for block in stage.requests[-1]["messages"][-2]["content"]] == [
        "waited", PASSED_OVER
    ]  # fmt: skip


def test_two_turns_in_one_thread_say_so_instead_of_waiting_for_ever(stage: Stage) -> None:
    agent = stage.says("Hello.", "Again.").agent()
    events = agent.stream("hello")
    until(events, Replied)
    with pytest.raises(RejectedError, match="in the middle of a turn"):
        agent.turn("hello?")
    events.close()
    assert agent.turn("hello?").text == "Again."


def test_threads_take_turns(stage: Stage) -> None:
    agent = stage.agent()
    threads = [threading.Thread(target=agent.turn, args=[f"turn {number}"]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    roles = [message["role"] for message in stage.requests[-1]["messages"]]
    assert roles == ["user", "assistant"] * 5 + ["user"]


def test_limits_hold_for_each_turn(stage: Stage) -> None:
    agent = stage.says(call("look"), call("look"), call("look"), "Fine.").agent(look, limits=RunLimits(max_steps=2))
    assert agent.turn("go").stopped.reason == "steps"
    assert agent.resume().text == "Fine."


def test_the_model_is_closed_with_the_agent(tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[AnthropicModel] = []
    model = f"{{id: m, base_url: '{stage.base_url}'}}"
    (tmp_path / "agent.yaml").write_text(f"name: a\nmodel: {model}\narchival: {{embedder: none}}\n")
    init = AnthropicModel.__init__
    monkeypatch.setattr(AnthropicModel, "__init__", lambda self, *a, **k: (made.append(self), init(self, *a, **k))[1])
    with Agent.load(tmp_path / "agent.yaml", home=tmp_path / "home") as agent:
        agent.turn("hello")
        client = made[0]._client
        assert not client.is_closed()
    assert client.is_closed()
