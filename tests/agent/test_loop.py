"""The loop's tool calls: in order, each answered once, whatever a tool does."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.events import Replied, Stopped, ToolFinished, ToolStarted
from agents.loop import MALFORMED
from agents.tools.functions import Tool
from pager import StorageError
from pager.types import Json
from tests.standin import Reply, Standin, call, thinking
from tests.support.hands import Hands
from tests.support.stage import Stage, results, stage_in, until


def test_parallel_calls_run_in_order_and_are_answered_together(stage: Stage, hands: Hands) -> None:
    stage.says(
        Reply(
            thinking("hm"), "Let me look.", call("fetch", {"order": "one"}), call("archive", {"text": "likes hats"}),
            call("fetch", {"order": "two"}),
        ),
        "All there.",
    )  # fmt: skip
    agent = stage.agent(hands.fetch)
    events = list(agent.stream("where are my orders?"))
    assert hands.done == ["one", "two"]
    assert [type(event) for event in events if isinstance(event, ToolStarted | ToolFinished)] == 3 * [
        ToolStarted, ToolFinished,
    ]  # fmt: skip
    (first, _), (fact, _), (second, _) = results(stage.last)
    assert (first, second) == ("order one is on its way", "order two is on its way")
    assert "f1" in fact
    assert [each.text for each in agent.memory.inspect.newest_facts()] == ["likes hats"]
    assert events[-1] == Stopped("answered")


def test_what_a_turn_comes_to(stage: Stage, hands: Hands) -> None:
    stage.says(Reply("Let me look.", call("fetch", {"order": "one"})), "All there.")
    turn = stage.agent(hands.fetch).turn("where?")
    assert (turn.text, turn.steps, turn.stopped.reason) == ("All there.", ("s2", "s3"), "answered")
    replies = [message["usage"] for message in stage.service.standin.replies]
    assert turn.usage.output_tokens == sum(usage["output_tokens"] for usage in replies)
    assert turn.usage.whole_input == sum(
        usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        for usage in replies
    )


def fail() -> str:
    """Fail."""
    raise KeyError("no such order")


def leave() -> str:
    """Leave the program."""
    sys.exit("I am off")


async def cancelled() -> str:
    """Cancel itself."""
    raise asyncio.CancelledError


def broken_blocks() -> list[Json]:
    """Answer with a block that the provider would refuse."""
    return [{"type": "image", "source": "nowhere"}]


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        (fail, "fail failed: KeyError: 'no such order'"),
        (leave, "leave failed: SystemExit: I am off"),
        (cancelled, "cancelled failed: CancelledError"),
        (broken_blocks, "no image"),
    ],
)
def test_a_failing_tool_is_an_error_result_without_a_trace(stage: Stage, tool: Any, says: str) -> None:
    stage.says(call(tool.__name__), "A pity.")
    assert stage.agent(tool).turn("go").text == "A pity."
    ((text, is_error),) = results(stage.last)
    assert is_error
    assert says in text
    assert "Traceback" not in text
    assert __file__ not in text


def test_the_trace_of_a_failing_tool_is_in_the_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.says(call("fail"), "A pity.")
    with caplog.at_level(logging.ERROR, logger="selfpager"):
        stage.agent(fail).turn("go")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


def test_a_failing_memory_tool_changes_nothing_and_does_not_end_the_agent(stage: Stage) -> None:
    stage.says(call("half"), "A pity.")

    def half() -> str:
        """Archive, then fail."""
        agent.memory.archive("half done")
        raise ZeroDivisionError

    agent = stage.agent(Tool.of(half, memory=True))
    assert agent.turn("go").text == "A pity."
    assert results(stage.last)[0] == ("half failed: ZeroDivisionError: ", True)
    assert agent.memory.inspect.newest_facts() == []


def test_when_the_disk_refuses_nothing_is_answered_and_the_call_runs_later(stage: Stage) -> None:
    full = [True]

    def keep() -> str:
        """Keep a fact, if the disk lets it."""
        agent.memory.archive("kept")
        if full:
            raise StorageError(f"the disk is full: {full.pop()}")
        return "kept"

    agent = stage.says(call("keep"), "Good.").agent(Tool.of(keep, memory=True))
    with pytest.raises(StorageError):
        agent.turn("go")
    assert [(each.name, each.begun) for each in agent.memory.open_calls] == [("keep", False)]
    assert agent.resume().text == "Good."
    assert results(stage.last) == [("kept", False)]
    assert [fact.text for fact in agent.memory.inspect.newest_facts()] == ["kept"]


def test_what_memory_tools_answer_is_not_found_by_searches(stage: Stage) -> None:
    def bark() -> str:
        """Fail."""
        raise ValueError("barking aardvark")

    fine = call("archive", {"text": "armadillo"})
    stage.says(Reply(fine, call("core_append", {"block": "anteater", "text": "x"}), call("bark")), "Good.")
    agent = stage.agent(bark)
    agent.turn("go")
    assert "anteater" in str(stage.last)
    found = [agent.memory.search_recall(words) for words in ("armadillo", "anteater", "aardvark")]
    assert [bool(hits) for hits in found] == [False, False, True]


def test_what_a_memory_tool_refuses_is_an_error_result(stage: Stage) -> None:
    stage.says(call("core_append", {"block": "humam", "text": "Dana"}), call("archive", {"txt": "x"}), "A pity.")
    stage.agent().turn("go")
    refused = [results(message["content"])[0] for message in stage.requests[-1]["messages"][2::2]]
    assert all(is_error for _, is_error in refused)
    assert "human" in refused[0][0]
    assert "txt" in refused[1][0]


def test_an_unknown_tool_is_answered_with_those_there_are(stage: Stage, hands: Hands) -> None:
    stage.says(call("fetsh", {"order": "one"}), "I see.")
    stage.agent(hands.fetch).turn("go")
    ((text, is_error),) = results(stage.last)
    assert is_error
    assert "'fetsh'" in text
    assert "fetch" in text
    assert hands.done == []


def test_a_tool_that_takes_too_long_is_left_behind(stage: Stage) -> None:
    release = threading.Event()

    def wait() -> str:
        """Wait."""
        release.wait()
        return "too late"

    stage.says(Reply(call("wait"), call("archive", {"text": "waited"})), "Moving on.")
    assert stage.agent(Tool.of(wait, timeout_seconds=0.01)).turn("go").text == "Moving on."
    release.set()
    (late, late_is_error), (_, fact_is_error) = results(stage.last)
    assert (late_is_error, fact_is_error) == (True, False)
    assert "did not finish within 0.01 s" in late


async def slowly(order: str) -> str:
    """Fetch slowly."""
    await asyncio.sleep(0)
    return f"{order}, at last"


def test_async_tools(stage: Stage) -> None:
    stage.says(call("slowly", {"order": "one"}), "Good.")

    async def main() -> str:
        return (await agent.aturn("go")).text

    agent = stage.agent(slowly)
    assert asyncio.run(main()) == "Good."
    assert results(stage.last) == [("one, at last", False)]


def test_results_may_be_blocks_nothing_or_data(stage: Stage) -> None:
    def blocks() -> list[Json]:
        """Two texts."""
        return [{"type": "text", "text": "one"}, {"type": "text", "text": " two"}]

    def nothing() -> None:
        """Nothing."""

    def data() -> dict[str, int]:
        """Data."""
        return {"count": 2}

    stage.says(Reply(call("blocks"), call("nothing"), call("data")), "Good.")
    stage.agent(blocks, nothing, data).turn("go")
    assert results(stage.last) == [("one two", False), ("done", False), ('{"count": 2}', False)]


@pytest.mark.parametrize("raw", ['{"order": "on', '["one"]', '"one"'])
@pytest.mark.filterwarnings("error")
def test_input_that_is_no_json_object_is_answered_and_never_run(stage: Stage, hands: Hands, raw: str) -> None:
    whole, torn = call("fetch", {"order": "one"}), {**call("fetch", {}), "raw_json": raw}
    stage.says(Reply(thinking("hm"), whole, torn, whole), "Again, then.")
    events = list(stage.agent(hands.fetch).stream("go"))
    assert hands.done == ["one", "one"]
    by_id = {block["tool_use_id"]: block.get("is_error", False) for block in stage.last}
    called = [block["id"] for block in stage.requests[-1]["messages"][-2]["content"] if block["type"] == "tool_use"]
    assert [by_id[each] for each in called] == [False, True, False]
    assert (MALFORMED, True) in results(stage.last)
    assert events[-1] == Stopped("answered")


def test_which_call_was_torn_is_known_when_all_have_one_id(tmp_path: Path, hands: Hands) -> None:
    torn = {**call("fetch", {"order": "torn"}), "raw_json": '{"order": "to'}
    with stage_in(tmp_path, Standin(limit_tokens=60_000, duplicate_ids=True)) as stage:
        stage.says(Reply.same_ids(call("fetch", {"order": "one"}), torn, call("fetch", {"order": "two"})), "Good.")
        stage.agent(hands.fetch).turn("go")
        assert hands.done == ["one", "two"]
        by_id = {block["tool_use_id"]: block for block in stage.last}
        called = [block for block in stage.requests[-1]["messages"][-2]["content"] if block["type"] == "tool_use"]
        assert [by_id[block["id"]].get("is_error", False) for block in called] == [False, True, False]
        stage.assert_over()


def test_a_call_that_was_torn_is_not_run_after_a_crash_either(stage: Stage, hands: Hands) -> None:
    stage.says({**call("fetch", {}), "raw_json": '{"order": "o'})
    agent = stage.agent(hands.fetch)
    events = agent.stream("go")
    until(events, Replied)
    events.close()
    assert agent.memory.open_calls == []
    agent.close()
    assert stage.says("Again, then.").agent(hands.fetch).resume().text == "Again, then."
    assert hands.done == []
