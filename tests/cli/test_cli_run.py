"""`selfpager run`: a task to its end, to a limit, to a question, interrupted, killed, told something."""

import json
import os
import shlex
import socket
from pathlib import Path

import pytest

from agents.testing import call
from tests.support.cli import Running, Terminal, command_line, write_agent
from tests.support.shop import Gate, Shop

DONE = call("task_done", summary="all is well")
LOOK = call("search_archive", query="hats")
REFUND = 'tools: [{use: "shop:refund", approve: always}]\n'


def commands(text: str) -> list[list[str]]:
    """The command lines that a text names, without the program's name."""
    return [shlex.split(line[line.index("selfpager ") :])[1:] for line in text.splitlines() if "selfpager run" in line]


def last_said(place: Shop) -> str:
    return json.dumps(place.model.requests[-1]["messages"][-1])


def test_a_task_is_worked_on_until_it_is_done(place: Shop) -> None:
    place.more += "prices: {input: 1000, output: 1000}\n"
    place.model.script("Let me look.", LOOK, DONE)
    done = place.run("Find the hats.")
    assert (done.code, done.out) == (0, "Let me look.\ndone after 3 steps: all is well\n")
    assert all(part in done.err for part in ("step 2 · asking the model · ", "tokens · $", " · window "))
    assert "0 evictions · 0 facts stored" in done.err
    assert f"talk about it: selfpager chat {place.file} --home {place.home}\n" in done.err
    assert place.run("--resume").code == 0


def test_the_summary_counts_all_runs_of_a_task_and_names_its_files(place: Shop) -> None:
    place.more += 'tools: [{builtin: files, root: "notes", write: true}]\nlimits: {max_steps: 2}\n'
    (place.folder / "notes").mkdir()
    write, again = (call("write_file", path=name, text="hats") for name in ("hats.md", "hats.md"))
    place.model.script(write, call("archive", text="likes hats"), "I have begun.")
    stopped = place.run("Write down the hats.")
    assert stopped.code == 3
    assert "3 steps · " in stopped.err
    assert stopped.err.count("asking the model") == 3  # the third is its last word
    assert f"files: {place.folder / 'notes' / 'hats.md'}" in stopped.err
    [line] = commands(stopped.err)
    place.more = place.more.replace("max_steps: 2", "max_steps: 9")
    place.model.script(again, call("write_file", path="../evil.md", text="x"), DONE)
    assert place.file.exists()
    done = command_line(*line)
    assert done.code == 0
    assert "6 steps · " in done.err
    assert "0 evictions · 1 fact stored" in done.err
    assert f"files: {place.folder / 'notes' / 'hats.md'}\n" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Usage:"),
        ([" "], 2, "Usage:"),
        (["a task", "--resume"], 2, "Usage:"),
        (["--resume", "--new"], 2, "Usage:"),
        (["a task", "--approve"], 2, "Usage:"),
        (["--resume"], 1, "there is no task to resume"),
        (["--resume", "--approve"], 1, "no call waits for approval"),
    ],
)
def test_a_task_or_resume_and_not_both(place: Shop, arguments: list[str], code: int, message: str) -> None:
    done = place.run(*arguments)
    assert (done.code, message in done.err) == (code, True)


def test_one_task_at_a_time_and_new_drops_the_open_one(place: Shop) -> None:
    place.more += "limits: {max_steps: 1}\n"
    place.model.script(LOOK, "I have begun.")
    assert place.run("Find the hats.").code == 3
    refused = place.run("Find the caps.")
    assert refused.code == 1
    assert "'Find the hats.'" in refused.err
    resume, new = commands(refused.err)
    assert resume[-1] == "--resume"
    place.model.script(LOOK, "I have begun.")
    assert command_line(*new).code == 3
    assert "Find the caps." in json.dumps(place.model.requests[-1]["messages"])


def test_an_agent_that_never_says_that_it_is_done_is_stopped(place: Shop) -> None:
    place.model.script(*["I am thinking."] * 4)
    done = place.run("Find the hats.")
    assert done.code == 1
    assert "did not say that the task is done" in done.err


@pytest.mark.parametrize(
    ("answer", "result"), [("--approve", "order 17 was refunded"), ("--deny", "A person refused this call")]
)
def test_without_a_terminal_it_pauses_and_says_how_to_answer(place: Shop, answer: str, result: str) -> None:
    place.more += REFUND
    place.model.script(call("refund", order=17))
    paused = place.run("Refund order 17.")
    assert paused.code == 3
    assert 'refund waits for approval and was not run. It is refund({"order": 17}).' in paused.err
    assert f"Answer with: selfpager run {place.file} --home {place.home} --resume --approve (or --deny)" in paused.err
    assert place.run("--resume").code == 3  # nobody has answered yet, and no request was made
    place.model.script(DONE)
    assert place.run("--resume", answer).code == 0
    assert result in json.dumps(place.model.requests[1]["messages"][-1])


def test_one_answer_is_for_one_call(place: Shop) -> None:
    place.more += REFUND
    place.model.script(call("refund", order=17), call("refund", order=18))
    assert place.run("Refund two orders.").code == 3
    assert place.run("--resume", "--approve").code == 3
    assert "order 17 was refunded" in last_said(place)


def test_what_it_is_told_reaches_it_at_the_next_step(place: Shop) -> None:
    gate = Gate(LOOK)
    place.model.script(gate, DONE)
    with Running("run", place.file, "Find the hats.", "--home", place.home) as running:
        assert gate.asked.wait(60)
        assert command_line("tell", "x", "Look in the attic.", "--from", "Dana", "--home", place.home).code == 0
        gate.may.set()
        assert running.end().code == 0
    assert "Look in the attic." in json.dumps(place.model.requests[1]["messages"][-1])
    with place.memory() as memory:
        assert memory.search_recall("attic")[0].who == "Dana"


def test_ctrl_c_once_stops_at_the_step_and_resume_goes_on(place: Shop) -> None:
    gate = Gate(LOOK)
    place.model.script(gate)
    with Terminal("run", place.file, "Find the hats.", "--home", place.home) as terminal:
        assert gate.asked.wait(60)
        terminal.type("\x03")
        terminal.until("stopping at the next step; Ctrl-C again stops now")
        gate.may.set()
        terminal.until("stopped (cancelled)")
        code, rest = terminal.end()
    assert (code, "resume" in rest, "Traceback" in rest) == (130, True, False)
    place.model.script(DONE)
    assert place.run("--resume").out.endswith("done after 2 steps: all is well\n")


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
        done = running.end()
    assert (done.code, done.out) == (130, "")
    assert ("saved" in done.err, "Traceback" in done.err) == (True, False)
    place.model.script(DONE)
    assert command_line(*commands(done.err)[0]).code == 0
    assert "interrupted, may have run" in json.dumps(place.model.requests[1]["messages"][-1])


def test_the_plan_and_the_limits_are_shown(place: Shop) -> None:
    plan = call("core_append", block="plan", text="- [x] look\n- [ ] go home")
    place.model.script(plan, DONE)
    done = place.run("Find the hats.")
    assert "no limits: it works until it is done" in done.err
    assert "plan: 1 of 2 done, next: go home" in done.err
    shown = command_line("show", "x", "--home", place.home)
    assert "1 of 2 done" in shown.out
    as_data = json.loads(command_line("show", "x", "--home", place.home, "--json").out)
    assert as_data["core"]["plans"] == {"plan": {"done": 1, "total": 2, "current": "go home"}}
    place.more += "limits: {max_steps: 7, max_minutes: 30}\n"
    place.model.script(DONE)
    assert "limits: max_steps 7, max_minutes 30" in place.run("Again.").err


def test_a_result_is_printed_or_what_is_wrong_with_it(place: Shop) -> None:
    (place.folder / "hats.json").write_text('{"type": "integer"}', encoding="utf-8")
    place.more += "output: hats.json\n"
    place.model.script(call("task_done", summary="counted", result=2))
    assert place.run("Count.").out == "done after 1 step: counted\n2\n"
    place.model.script(call("task_done", summary="counted", result=3))
    last = json.loads(place.run("Count again.", "--json").out.splitlines()[-1])
    assert last == {"event": "stopped", "reason": "done", "text": "counted", "result": 3}
    place.model.script(*3 * [call("task_done", summary="many", result="many")])
    failed = place.run("And again.")
    assert failed.code == 1
    assert "failed after 3 steps, its result does not fit what is asked for: many" in failed.err
    assert "'many' is not of type 'integer'" in failed.err


def test_a_skill_can_be_traced(place: Shop) -> None:
    folder = place.folder / "skills" / "hats"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: hats\ndescription: Look for hats.\n---\nLook up.", encoding="utf-8")
    place.more += "skills: ./skills\n"
    place.model.script(call("page_in", page_id="k1"), DONE)
    assert place.run("Find the hats.").code == 0
    traced = command_line("trace", "x", "k1", "--home", place.home).out
    assert "It is in the prompt now" in traced
    assert "The agent paged k1 in" in traced
    assert "k1 (hats)" in command_line("trace", "x", "k2", "--home", place.home).out


def test_a_helper_is_printed_indented_and_short_and_its_question_is_answered_from_here(place: Shop) -> None:
    model = f"model: {{id: m, base_url: '{place.model.base_url}'}}"
    reader = f"name: reader\n{model}\narchival: {{embedder: none}}\n{REFUND}"
    (place.folder / "reader.yaml").write_text(reader)
    place.more += "tools: [{agent: reader.yaml}]\n"
    place.model.script(call("reader", task="Refund order 17."), call("refund", order=17))
    paused = place.run("See to the refunds.")
    assert paused.code == 3
    assert "refund waits for approval and was not run: the helper reader asks." in paused.err
    assert "    · reader > approval" in paused.err.splitlines()
    place.model.script(DONE, DONE)
    done = place.run("--resume", "--approve")
    assert (done.code, "    · reader > refund(order=17)" in done.err.splitlines()) == (0, True)
    assert "order 17 was refunded" in json.dumps(place.model.requests[2]["messages"])
    listed = command_line("list", "--json", "--home", place.home).json["agents"]
    assert [(agent["name"], agent["helpers"]) for agent in listed] == [("x", 1)]
    place.model.script(call("reader", task="Again."), DONE, DONE)
    events = place.run("More.", options=("--json",)).events
    inside = [event["inner"] for event in events if event["event"] == "helperevent"]
    assert inside[-1] == {"event": "stopped", "reason": "done", "text": "all is well", "result": None}


def test_a_server_that_does_not_answer_is_said_before_a_task_begins(place: Shop) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        for provider in ("anthropic", "openai"):
            file = write_agent(place.folder, model=f"provider: {provider}, id: m, base_url: '{address}'")
            done = command_line("run", file, "Count.", "--home", place.home)
            assert done.code == 1
            assert f"the connection to the model at {address}" in done.err
            assert f"nothing is stored. Mend it, or `model` in {file}" in done.err
            assert "trying again" not in done.err
            assert not [*place.home.glob("*")]


def test_without_a_key_no_task_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    done = command_line("run", write_agent(tmp_path, model="id: m"), "Count.", "--home", tmp_path / "home")
    assert (done.code, "ANTHROPIC_API_KEY" in done.err) == (1, True)
    assert not [*(tmp_path / "home").glob("*")]
