"""`selfpager run`: a task to its end, to a limit, to a question, interrupted, killed, told something."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.testing import call, http_error
from tests.support.cli import Running, Terminal, command_line
from tests.support.shop import Gate, Shop, shop_in

DONE = call("task_done", summary="all is well")
LOOK = call("search_archive", query="hats")
REFUND = 'tools: [{use: "shop:refund", approve: always}]\n'


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Shop]:
    with shop_in(tmp_path) as place:
        yield place


def last_said(place: Shop) -> str:
    return json.dumps(place.model.requests[-1]["messages"][-1])


def test_a_task_is_worked_on_until_it_is_done(place: Shop) -> None:
    place.model.script("Let me look.", LOOK, DONE, "Good bye.")
    done = place.run("Find the hats.")
    assert done.code == 0
    assert done.out == "Let me look.\nGood bye.\ndone after 4 steps: all is well\n"
    assert "step 2 · " in done.err
    assert "tokens · window " in done.err
    assert place.run("--resume").code == 0


def test_json_is_a_line_for_each_event(place: Shop) -> None:
    place.model.script(LOOK, DONE, "Good bye.")
    done = place.run("Find the hats.", options=("--json",))
    assert (done.code, done.err) == (0, "")
    assert done.events[-1] == {"event": "stopped", "reason": "done", "text": "all is well"}
    assert [event["name"] for event in done.events if event["event"] == "toolstarted"] == [
        "search_archive",
        "task_done",
    ]


def test_a_task_or_resume_and_not_both(place: Shop) -> None:
    assert place.run().code == place.run("a task", "--resume").code == place.run(" ").code == 2
    assert place.run("--resume", "--new").code == place.run("a task", "--approve").code == 2
    nothing = place.run("--resume")
    assert nothing.code == 1
    assert "there is no task to resume" in nothing.err
    none = place.run("--resume", "--approve")
    assert (none.code, "no call waits for approval" in none.err) == (1, True)


def test_a_limit_is_exit_code_3_and_resume_goes_on_when_it_is_raised(place: Shop) -> None:
    place.more += "limits: {max_steps: 2}\n"
    place.model.script(LOOK, call("search_archive", query="caps"))
    done = place.run("Find the hats.")
    assert done.code == 3
    assert "stopped (steps): max_steps 2 is reached; raise it and resume." in done.err
    assert place.run("--resume").code == 3
    place.more = place.more.replace("max_steps: 2", "max_steps: 10")
    place.model.script(DONE, "Good bye.")
    assert place.run("--resume").out.endswith("done after 4 steps: all is well\n")


def test_dollars_are_a_limit_too(place: Shop) -> None:
    place.more += "limits: {max_usd: 0.01}\nprices: {input: 1000, output: 1000}\n"
    place.model.script(LOOK)
    done = place.run("Find the hats.")
    assert done.code == 3
    assert "stopped (usd): $" in done.err
    assert " · $" in done.err


def test_one_task_at_a_time_and_new_drops_the_open_one(place: Shop) -> None:
    place.more += "limits: {max_steps: 1}\n"
    place.model.script(LOOK)
    assert place.run("Find the hats.").code == 3
    refused = place.run("Find the caps.")
    assert refused.code == 1
    assert "'Find the hats.'" in refused.err
    assert "--resume" in refused.err
    assert "--new" in refused.err
    place.model.script(LOOK)
    assert place.run("Find the caps.", "--new").code == 3
    assert "Find the caps." in last_said(place)


def test_an_agent_that_never_says_that_it_is_done_is_stopped(place: Shop) -> None:
    place.model.script(*["I am thinking."] * 4)
    done = place.run("Find the hats.")
    assert done.code == 1
    assert "did not say that the task is done" in done.err


def test_a_failed_call_is_exit_code_1_and_resume_goes_on(place: Shop) -> None:
    place.model.script(http_error(403, "no such key"))
    failed = place.run("Find the hats.")
    assert (failed.code, failed.out) == (1, "")
    assert "no such key" in failed.err
    assert "Traceback" not in failed.err
    place.model.script(http_error(403, "no such key"))
    assert "Traceback" in place.run("--resume", "--debug").err
    place.model.script(DONE, "Good bye.")
    assert place.run("--resume").code == 0


def test_history_and_instances(place: Shop) -> None:
    history = place.folder / "history.jsonl"
    history.write_text('{"role": "user", "text": "The hats are in the attic.", "name": "Dana"}\n', encoding="utf-8")
    place.model.script(call("search_recall", query="hats"), DONE, "Good bye.")
    assert place.run("Find the hats.", options=("--history", str(history), "--as", "ann")).code == 0
    assert "in the attic" in json.dumps(place.model.requests[1]["messages"])
    assert [path.name for path in place.home.iterdir()] == ["ann"]


@pytest.mark.parametrize(
    ("answer", "result"), [("--approve", "order 17 was refunded"), ("--deny", "A person refused this call")]
)
def test_without_a_terminal_it_pauses_and_says_how_to_answer(place: Shop, answer: str, result: str) -> None:
    place.more += REFUND
    place.model.script(call("refund", order=17))
    paused = place.run("Refund order 17.")
    assert paused.code == 3
    assert "refund waits for approval and was not run" in paused.err
    assert "--resume --approve (or --deny)" in paused.err
    assert place.run("--resume").code == 3  # nobody has answered yet, and no request was made
    place.model.script(DONE, "Good bye.")
    assert place.run("--resume", answer).code == 0
    assert result in json.dumps(place.model.requests[1]["messages"][-1])


def test_one_answer_is_for_one_call(place: Shop) -> None:
    place.more += REFUND
    place.model.script(call("refund", order=17), call("refund", order=18))
    assert place.run("Refund two orders.").code == 3
    assert place.run("--resume", "--approve").code == 3
    assert "order 17 was refunded" in last_said(place)


def test_in_a_terminal_a_person_is_asked(place: Shop) -> None:
    place.more += REFUND
    place.model.script(call("refund", order=17), DONE, "Good bye.")
    with Terminal("run", place.file, "Refund order 17.", "--home", place.home) as terminal:
        terminal.until('Allow refund({"order": 17})? [y/N]: ')
        terminal.type("y\r")
        terminal.until("done after 3 steps: all is well")
        assert terminal.end()[0] == 0
    assert "order 17 was refunded" in json.dumps(place.model.requests[1]["messages"][-1])


def test_what_it_is_told_reaches_it_at_the_next_step(place: Shop) -> None:
    gate = Gate(LOOK)
    place.model.script(gate, DONE, "Good bye.")
    with Running("run", place.file, "Find the hats.", "--home", place.home) as running:
        assert gate.asked.wait(60)
        told = command_line("tell", "x", "Look in the attic.", "--from", "Dana", "--home", place.home)
        assert told.code == 0
        gate.may.set()
        assert running.end().code == 0
    assert "Look in the attic." in json.dumps(place.model.requests[1]["messages"][-1])
    with place.memory() as memory:
        hit = memory.search_recall("attic")[0]
        assert (hit.who, hit.text) == ("Dana", "Look in the attic.")


def test_a_second_process_is_told_who_holds_the_agent(place: Shop) -> None:
    gate = Gate(DONE)
    place.model.script(gate, "Good bye.")
    with Running("run", place.file, "Find the hats.", "--home", place.home) as running:
        assert gate.asked.wait(60)
        for arguments in (["chat", place.file], ["check", "x"], ["purge", "x", "s1", "--yes"]):
            refused = command_line(*arguments, "--home", place.home)
            assert refused.code == 1
            assert str(running.pid) in refused.err
        assert command_line("show", "x", "--home", place.home).code == 0
        assert command_line("export", "x", place.folder / "x.db", "--home", place.home).code == 0
        gate.may.set()
        assert running.end().code == 0


def test_ctrl_c_once_stops_at_the_step_and_resume_goes_on(place: Shop) -> None:
    gate = Gate(LOOK)
    place.model.script(gate)
    with Running("run", place.file, "Find the hats.", "--home", place.home) as running:
        assert gate.asked.wait(60)
        running.interrupt()
        running.tells("stopping at the next step; Ctrl-C again stops now")
        gate.may.set()
        done = running.end()
    assert done.code == 130
    assert "stopped (cancelled)" in done.err
    assert "resume" in done.err
    assert "Traceback" not in done.err
    place.model.script(DONE, "Good bye.")
    assert place.run("--resume").out.endswith("done after 3 steps: all is well\n")


def test_ctrl_c_twice_stops_now_also_in_the_middle_of_a_reply(place: Shop) -> None:
    gate = Gate("never heard")
    place.model.script(gate)
    with Running("run", place.file, "Find the hats.", "--home", place.home) as running:
        assert gate.asked.wait(60)
        running.interrupt()
        running.tells("stopping")
        running.interrupt()
        done = running.end()
    gate.may.set()
    assert (done.code, done.out) == (130, "")
    assert "saved" in done.err
    assert "Traceback" not in done.err
    place.model.script(DONE, "Good bye.")
    assert place.run("--resume").code == 0


def test_ctrl_c_twice_stops_now_also_in_the_middle_of_a_tool(place: Shop) -> None:
    place.more += 'tools: [{use: "shop:wait_for"}]\n'
    pipe = place.folder / "pipe"
    os.mkfifo(pipe)
    place.model.script(call("wait_for", path=str(pipe)))
    # The pipe opens when the tool reads.
    with Running("run", place.file, "Wait.", "--home", place.home) as running, pipe.open("w", encoding="utf-8"):
        running.interrupt()
        running.tells("stopping")
        running.interrupt()
        assert running.end().code == 130
    place.model.script(DONE, "Good bye.")
    assert place.run("--resume").code == 0
    assert "interrupted, may have run" in json.dumps(place.model.requests[1]["messages"][-1])


def test_a_keyboard_says_it_as_a_signal_does(place: Shop) -> None:
    gate = Gate(LOOK)
    place.model.script(gate)
    with Terminal("run", place.file, "Find the hats.", "--home", place.home) as terminal:
        assert gate.asked.wait(60)
        terminal.type("\x03")
        terminal.until("stopping at the next step")
        gate.may.set()
        terminal.until("stopped (cancelled)")
        assert terminal.end()[0] == 130


def test_kill_9_and_resume(place: Shop) -> None:
    gate = Gate("never heard")
    place.model.script(call("archive", text="the hats are in the attic"), gate)
    with Running("run", place.file, "Find the hats.", "--home", place.home) as running:
        assert gate.asked.wait(60)
        os.kill(running.pid, signal.SIGKILL)
        assert running.end().code == -signal.SIGKILL
    gate.may.set()
    place.model.script(DONE, "Good bye.")
    done = place.run("--resume")
    assert done.out.endswith("done after 3 steps: all is well\n")
    with place.memory() as memory:
        assert [fact.text for fact in memory.inspect.newest_facts()] == ["the hats are in the attic"]
        assert not memory.check()
