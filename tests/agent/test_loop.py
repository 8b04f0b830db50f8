"""The loop's tool calls: in order, each answered once, whatever a tool does, and approved where that is needed."""

import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from agents.events import ApprovalNeeded, Replied, Stopped, ToolFinished, ToolStarted
from agents.loop import DENIED, MALFORMED, PASSED_OVER, UNAPPROVED, WITHOUT_IT
from agents.tools.functions import Tool
from pager import StorageError
from pager.types import Json
from tests.standin import Reply, Standin, call, thinking
from tests.support.hands import Hands
from tests.support.stage import Stage, leave_at, results, stage_in


def test_parallel_calls_run_in_order_and_are_answered_together(stage: Stage, hands: Hands) -> None:
    calls = [call("fetch", {"order": "one"}), call("archive", {"text": "likes hats"}), call("fetch", {"order": "two"})]
    stage.says(Reply(thinking("hm"), "Let me look.", *calls), "All there.")
    agent = stage.agent(hands.fetch)
    events = list(agent.stream("where are my orders?"))
    assert hands.done == ["one", "two"]
    kinds = [type(event) for event in events if isinstance(event, ToolStarted | ToolFinished)]
    assert kinds == 3 * [ToolStarted, ToolFinished]
    (first, _), (fact, _), (second, _) = results(stage.last)
    assert (first, second) == ("order one is on its way", "order two is on its way")
    assert "f1" in fact
    assert [each.text for each in agent.memory.inspect.newest_facts()] == ["likes hats"]
    assert events[-1] == Stopped("answered")


def test_a_turn_is_its_text_its_steps_and_their_usage(stage: Stage, hands: Hands) -> None:
    stage.says(Reply("Let me look.", call("fetch", {"order": "one"})), "All there.")
    turn = stage.agent(hands.fetch).turn("where?")
    assert (turn.text, turn.steps, turn.stopped.reason) == ("All there.", ("s2", "s3"), "answered")
    usages = [message["usage"] for message in stage.service.api.replies]
    inputs = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert turn.usage.output_tokens == sum(usage["output_tokens"] for usage in usages)
    assert turn.usage.whole_input == sum(usage[key] for usage in usages for key in inputs)


def fail() -> str:
    """Fail."""
    raise KeyError("no such order")


def leave() -> str:
    """Leave the program."""
    sys.exit("I am off")


def broken_blocks() -> list[Json]:
    """Answer with a block that the provider would refuse."""
    return [{"type": "image", "source": "nowhere"}]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (call("fail"), "fail failed: KeyError: 'no such order'"),
        (call("leave"), "leave failed: SystemExit: I am off"),
        (call("broken_blocks"), "no image"),
        (call("core_append", {"block": "humam", "text": "Dana"}), "human"),
        (call("archive", {"txt": "x"}), "txt"),
        (call("fial"), "There is no tool 'fial'"),
        (call("fial"), "leave"),
    ],
)
def test_what_fails_is_an_error_result_without_a_trace(stage: Stage, asked: Json, message: str) -> None:
    stage.says(asked, "A pity.")
    assert stage.agent(fail, leave, broken_blocks).turn("go").text == "A pity."
    ((text, is_error),) = results(stage.last)
    assert is_error
    assert message in text
    assert "Traceback" not in text
    assert __file__ not in text


def test_a_failing_memory_tool_changes_nothing_and_does_not_end_the_agent(stage: Stage) -> None:
    stage.says(call("half"), "A pity.")

    def half() -> str:
        """Archive, then fail."""
        agent.memory.archive("half done")
        raise ZeroDivisionError

    agent = stage.agent(Tool.of(half, memory=True))
    assert agent.turn("go").text == "A pity."
    assert results(stage.last)[0] == (f"half failed: ZeroDivisionError:  {WITHOUT_IT}", True)
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
    found = [[hit.text for hit in agent.memory.search_recall(word)] for word in ("armadillo", "anteater", "aardvark")]
    assert "armadillo" not in str(found[0])  # what is found is from where the fact was stored
    assert [bool(texts) for texts in found[1:]] == [False, True]


TORN = {**call("fetch", {"order": "torn"}), "raw_json": '{"order": "to'}


def errors(stage: Stage) -> list[bool]:
    """Whether each call of the last reply is answered with an error, in the order of the calls."""
    by_id = {block["tool_use_id"]: block.get("is_error", False) for block in stage.last}
    called = stage.requests[-1]["messages"][-2]["content"]
    return [by_id[block["id"]] for block in called if block["type"] == "tool_use"]


@pytest.mark.parametrize("raw", ['{"order": "on', '["one"]', '"one"'])
@pytest.mark.filterwarnings("error")
def test_input_that_is_no_json_object_is_answered_and_never_run(stage: Stage, hands: Hands, raw: str) -> None:
    whole = call("fetch", {"order": "one"})
    stage.says(Reply(thinking("hm"), whole, {**TORN, "raw_json": raw}, whole), "Again, then.")
    assert stage.agent(hands.fetch).turn("go").stopped == Stopped("answered")
    assert hands.done == ["one", "one"]
    assert errors(stage) == [False, True, False]
    assert (MALFORMED, True) in results(stage.last)


def test_which_call_was_torn_is_found_when_all_have_one_id(tmp_path: Path, hands: Hands) -> None:
    with stage_in(tmp_path, Standin(limit_tokens=60_000, duplicate_ids=True)) as stage:
        stage.says(Reply.same_ids(call("fetch", {"order": "one"}), TORN, call("fetch", {"order": "two"})), "Good.")
        stage.agent(hands.fetch).turn("go")
        assert hands.done == ["one", "two"]
        assert errors(stage) == [False, True, False]
        stage.assert_over()


def test_a_call_that_was_torn_is_not_run_after_a_crash_either(stage: Stage, hands: Hands) -> None:
    agent = stage.says(TORN).agent(hands.fetch)
    leave_at(agent.stream("go"), Replied)
    assert agent.memory.open_calls == []
    agent.close()
    assert stage.says("Again, then.").agent(hands.fetch).resume().text == "Again, then."
    assert hands.done == []


def test_approved_and_denied(stage: Stage, hands: Hands) -> None:
    asked: list[str] = []

    def approve(waiting: Any) -> bool:
        asked.append(waiting.input["order"])
        return asked == ["one"]

    stage.says(Reply(call("fetch", {"order": "one"}), call("fetch", {"order": "two"})), "I see.")
    stage.agent(Tool.of(hands.fetch, approve="always"), approve=approve).turn("go")
    assert (asked, hands.done) == (["one", "two"], ["one"])
    assert results(stage.last) == [("order one is on its way", False), (DENIED, True)]


@pytest.mark.parametrize("answer", [True, False])
def test_with_nobody_to_ask_it_waits_and_is_resumed(stage: Stage, hands: Hands, answer: bool) -> None:
    orders = [call("fetch", {"order": order}) for order in ("one", "2")]
    tool = Tool.of(hands.fetch, approve="always")
    agent = stage.says(Reply(call("archive", {"text": "before"}), *orders)).agent(tool)
    *_, needed, stopped = agent.stream("go")
    assert (type(needed), getattr(stopped, "reason", None)) == (ApprovalNeeded, "approval")
    waiting = [(each.input["order"], each.begun, each.awaits_approval) for each in agent.memory.open_calls]
    assert waiting == [("one", False, True), ("2", False, False)]
    assert agent.resume().stopped.reason == "approval"  # still nobody
    agent.close()
    again = stage.says("Done.").agent(tool, approve=lambda _: answer)
    assert again.resume().text == "Done."
    assert hands.done == (["one", "2"] if answer else [])
    assert results(stage.last)[1] == (("order one is on its way", False) if answer else (DENIED, True))
    assert [fact.text for fact in again.memory.inspect.newest_facts()] == ["before"]


def test_an_interruption_at_the_question_asks_again(stage: Stage, hands: Hands) -> None:
    approve = Mock(side_effect=[KeyboardInterrupt, True])
    stage.says(call("fetch", {"order": "one"}), "Done.")
    agent = stage.agent(Tool.of(hands.fetch, approve="always"), approve=approve)
    with pytest.raises(KeyboardInterrupt):
        agent.turn("go")
    assert agent.resume().text == "Done."
    assert hands.done == ["one"]


def test_something_new_said_while_a_call_waits(stage: Stage, hands: Hands) -> None:
    stage.says(Reply(call("fetch", {"order": "one"}), call("archive", {"text": "noted"})), "As you like.")
    agent = stage.agent(Tool.of(hands.fetch, approve="always"))
    agent.turn("go")
    assert agent.turn("never mind").text == "As you like."
    *_, answered, said = stage.requests[-1]["messages"]
    assert results(answered["content"]) == [(UNAPPROVED, True), (PASSED_OVER, True)]
    assert said["content"][0]["text"] == "never mind"
    assert (hands.done, agent.memory.inspect.newest_facts()) == ([], [])
