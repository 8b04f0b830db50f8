"""`selfpager chat`: in a process, with a script on its input, in a terminal, interrupted."""

import os
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.testing import Reply, call, http_error, stall
from tests.support.cli import COMMAND, Running, Terminal, command_line, environment, selfpager, write_agent
from tests.support.shop import Gate, Shop


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_answers_are_on_stdout_and_nothing_else(place: Shop, options: tuple[str, ...]) -> None:
    place.model.script("Hello you.", call("archive", text="likes hats"), "Noted.")
    done = place.chat("hello", "", "I like hats.", "/quit", "never said", options=options)
    assert (done.code, done.out) == (0, "Hello you.\nNoted.\n")
    if options:
        assert done.err == ""
    else:
        assert "archive(text='likes hats')" in done.err
        assert "archived f1" in done.err
        assert "· new epoch (first request)\n" in done.err


def test_json_is_a_line_for_each_event(place: Shop) -> None:
    place.model.script(call("archive", text="likes hats"), "Noted.")
    events = place.chat("I like hats.", options=("--json",)).events
    assert (events[-1]["event"], events[-1]["reason"]) == ("stopped", "answered")
    assert {"toolstarted", "toolfinished", "replied"} <= {event["event"] for event in events}
    assert "".join(event["text"] for event in events if event["event"] == "text") == "Noted."
    moved = [event["movement"] for event in events if event["event"] == "paged"]
    assert {movement["event"] for movement in moved} >= {"epoch", "archive"}
    assert moved[-1] in command_line("show", "x", "--home", place.home, "--json").json["movements"]


def test_what_a_tool_prints_is_no_line_of_json(place: Shop) -> None:
    place.more += 'tools: [{use: "shop:talk"}]\n'
    place.model.script(call("talk"), "Done.")
    done = selfpager("chat", place.file, "--home", place.home, "--json", said="Talk.\n")
    assert done.events[-1]["event"] == "stopped"
    assert ("I am at work" in done.err, "so am I" in done.err) == (True, True)


def test_it_goes_on_after_a_restart_and_instances_are_apart(place: Shop) -> None:
    place.model.script("Noted.", "Noted.", "Blue.")
    for name, colour in (("ann", "blue"), ("bob", "purple")):
        assert place.chat(f"My favourite colour is {colour}.", options=("--as", name)).code == 0
    assert place.chat("Which is it?", options=("--as", "ann")).out == "Blue.\n"
    assert "blue" in str(place.model.requests[-1])
    assert "purple" not in str(place.model.requests[-1])
    assert sorted(path.name for path in place.home.iterdir()) == ["ann", "bob"]


def test_history_from_elsewhere_is_imported_once(place: Shop) -> None:
    history = place.folder / "history.jsonl"
    message = '{"role": "user", "text": "I moved to Porto.", "at": "2026-05-03T14:30:00+01:00", "name": "Dana"}\n'
    history.write_text(message + '{"role": "assistant", "text": "How nice."}\n', encoding="utf-8")
    options = ("--import", str(history))
    place.model.script("Hello.", "Hello.")
    for count in (2, 0):
        assert f"imported {count} messages" in place.chat("hello", options=options).err
    with place.memory() as memory:
        assert memory.search_recall("moved to Porto")[0].who == "Dana"
    history.write_text('{"role": "user", "text": "x"}\nnot json\n', encoding="utf-8")
    wrong = place.chat("hello", options=options)
    assert (wrong.code, f"{history}:2: this line is not JSON" in wrong.err) == (1, True)


def test_a_failed_call_is_reported_and_the_turn_stays_open(place: Shop) -> None:
    place.model.script(*2 * [http_error(403, "no such key")])
    failed = place.chat("hello")
    assert (failed.code, failed.out) == (1, "")
    assert ("no such key" in failed.err, "Traceback" in failed.err) == (True, False)
    assert "Traceback" in place.chat(options=("--debug",)).err
    place.model.script("Here I am again.")
    resumed = place.chat()
    assert (resumed.code, resumed.out) == (0, "Here I am again.\n")
    assert "continuing the open turn" in resumed.err
    with place.memory() as memory:
        assert not memory.turn_is_open
        assert memory.search_recall("hello")[0].page_id == "s1"


def test_no_key_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    done = command_line("chat", write_agent(tmp_path, model="id: m"), "--home", tmp_path / "home", said="hello\n")
    assert not [*(tmp_path / "home").glob("*")]
    assert (done.code, "ANTHROPIC_API_KEY" in done.err, "Traceback" in done.err) == (1, True, False)


@pytest.mark.parametrize(
    ("more", "last_word", "message"),
    [
        ("limits: {max_steps: 1}", ["I could not."], "stopped (steps): max_steps 1 is reached"),
        ('tools: [{use: "shop:refund", approve: always}]', [], "refund waits for approval and was not run"),
    ],
)
def test_what_stops_a_turn_is_exit_code_3(place: Shop, more: str, last_word: list[str], message: str) -> None:
    place.more += f"{more}\n"
    place.model.script(call("refund", order=17), *last_word)
    done = place.chat("Give me my money back.")
    assert (done.code, message in done.err) == (3, True)


@contextmanager
def chat_on_terminal(place: Shop) -> Generator[Terminal]:
    """A conversation that is at its prompt before and behind the block, and ends with Ctrl-D."""
    with Terminal("chat", place.file, "--home", place.home) as terminal:
        terminal.until("you> ")
        yield terminal
        terminal.until("you> ")
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0


@pytest.mark.parametrize(("typed", "result"), [("y\r", "order 17 was refunded"), ("\r", "A person refused this call")])
def test_in_a_terminal_a_person_is_asked(place: Shop, typed: str, result: str) -> None:
    place.more += 'tools: [{use: "shop:refund", approve: always}]\n'
    place.model.script(Reply("One moment.", call("refund", order=17)), "There you go.")
    with chat_on_terminal(place) as terminal:
        terminal.type("Give me my money back.\r")
        terminal.until("One moment.\r\n")
        terminal.until('refund({"order": 17})\r\nAllow refund? [y/N]: ')
        terminal.type(typed)
        terminal.until("There you go.")
    assert result in str(place.model.requests[-1]["messages"][-1])


def test_in_a_terminal_a_person_is_told_what_the_agent_had_read(place: Shop) -> None:
    place.more += 'core: {blocks: {money: {untrusted_writes: ask}}}\ntools: [{use: "shop:refund", trust: untrusted}]\n'
    write = Reply("I note it.", call("core_append", block="money", text="66"))
    place.model.script(Reply("One moment.", call("refund", order=17)), write, "There you go.")
    with chat_on_terminal(place) as terminal:
        terminal.type("Give me my money back.\r")
        terminal.until("after untrusted text was read (tool:refund)")
        terminal.until('core_append({"block": "money", "text": "66"})\r\nAllow core_append? [y/N]: ')
        terminal.type("\r")
        terminal.until("There you go.")


@pytest.mark.parametrize("key", ["\x03", "/quit\r"])
def test_in_a_terminal_it_talks_until_ctrl_c_at_the_prompt(place: Shop, key: str) -> None:
    with Terminal("chat", place.file, "--home", place.home) as terminal:
        terminal.until("you> ")
        terminal.type(key)
        assert terminal.end(insist=key)[0] == 0


def test_a_typed_line_may_be_longer_than_a_terminals(place: Shop) -> None:
    place.model.script("I see.")
    text = " ".join(f"w{number}" for number in range(1_500))
    with chat_on_terminal(place) as terminal:
        for start in range(0, len(text), 1_000):
            terminal.type(text[start : start + 1_000])
            terminal.until(text[start : start + 1_000][-5:])
        terminal.type("\r")
        terminal.until("I see.")
    with place.memory() as memory:
        assert memory.page_text("s1") == text


def test_bytes_that_are_no_text_end_no_conversation(place: Shop) -> None:
    place.model.script("Hello.", "Still here.")
    done = subprocess.run(
        [*COMMAND, "chat", str(place.file), "--home", str(place.home)], input=b"caf\xe9\nand tea\n",
        env=environment(PYTHONIOENCODING="utf-8:strict"), capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"Hello.\nStill here.\n")
    with place.memory() as memory:
        assert memory.page_text("s1") == "caf\N{REPLACEMENT CHARACTER}"


def test_ctrl_c_keeps_what_came_of_an_answer(place: Shop) -> None:
    place.model.script(stall("One two three. " * 40, after=0.6), "Something else.")
    with Running("chat", place.file, "--home", place.home) as chat:
        chat.say("Count.")
        assert chat.read(len("One two three.")) == "One two three."
        chat.interrupt()
        chat.tells("cut off; what came is kept as the answer")
        chat.say("Never mind. What else is there?")
        done = chat.end()
    assert done.code == 0
    assert done.out.endswith("Something else.\n")
    sent = str(place.model.requests[-1]["messages"])
    assert "One two three." in sent
    assert "the person cut the answer off here" in sent
    with place.memory() as memory:
        assert not memory.check()
        assert [row.kind for row in memory.inspect.steps(0, 9).rows] == ["assistant", "user"] * 2


def test_ctrl_c_before_the_first_word_ends_the_turn(place: Shop) -> None:
    gate = Gate(call("search_archive", query="hats"))
    place.model.script(gate, "Something else.")
    with Running("chat", place.file, "--home", place.home) as chat:
        chat.say("What do I like?")
        assert gate.asked.wait(60)
        chat.interrupt()
        chat.tells("stopped before the answer began")
        gate.may.set()
        chat.say("Never mind. What else is there?")
        done = chat.end()
    assert (done.code, done.out) == (0, "Something else.\n")
    with place.memory() as memory:
        assert not memory.check()


def test_while_a_tool_runs_the_first_ctrl_c_waits_for_its_result(place: Shop) -> None:
    place.more += 'tools: [{use: "shop:wait_for"}]\n'
    pipe = place.folder / "pipe"
    os.mkfifo(pipe)
    place.model.script(call("wait_for", path=str(pipe)), "I saw it.")
    with Running("chat", place.file, "--home", place.home) as chat:
        chat.say("Wait.")
        with pipe.open("w") as there:  # the tool reads by now
            chat.interrupt()
            chat.tells("stopping when wait_for is done; Ctrl-C again stops now")
            there.write("x")
        chat.tells("stopped (cancelled)")
        chat.say("Go on.")
        done = chat.end()
    assert (done.code, done.out) == (0, "I saw it.\n")
    assert "it is there" in str(place.model.requests[-1]["messages"])


def with_helper(place: Shop) -> None:
    model = f"model: {{id: m, base_url: '{place.model.base_url}'}}"
    (place.folder / "reader.yaml").write_text(f"name: reader\n{model}\narchival: {{embedder: none}}\n")
    place.more += "tools: [{agent: reader.yaml}]\n"


@pytest.mark.parametrize("said", ["/resume", "Something else."])
def test_after_ctrl_c_a_helper_goes_on_or_is_dropped_and_both_are_said(place: Shop, said: str) -> None:
    with_helper(place)
    gate = Gate(call("recall_search", query="hats"))
    place.model.script(call("reader", task="Read."), gate)
    with Running("chat", place.file, "--home", place.home) as chat:
        chat.say("Let it read.")
        assert gate.asked.wait(60)
        chat.interrupt()
        chat.tells("stopping when reader")
        gate.may.set()
        chat.tells("/resume goes on where it was; a message drops what was not done")
        if said == "/resume":
            place.model.script(call("task_done", summary="It says: hats."), "Hats.")
        else:
            place.model.script("As you like.")
        chat.say(said)
        done = chat.end()
    answered = str(place.model.requests[-1]["messages"])
    if said == "/resume":
        assert (done.out, "It says: hats." in answered, len(place.model.requests)) == ("Hats.\n", True, 4)
    else:
        assert (done.out, "reader was stopped before it had answered" in answered) == ("As you like.\n", True)


def test_a_second_ctrl_c_drops_a_helpers_work_and_the_agent_is_told(place: Shop) -> None:
    with_helper(place)
    gate = Gate(call("recall_search", query="hats"))
    place.model.script(call("reader", task="Read."), gate)
    with Running("chat", place.file, "--home", place.home) as chat:
        chat.say("Let it read.")
        assert gate.asked.wait(60)
        chat.interrupt()
        chat.tells("Ctrl-C again stops now, and drops what it has not done")
        chat.interrupt()
        gate.may.set()
        chat.tells("stopped before the answer began")
        place.model.script("As you like.")
        chat.say("Something else.")
        done = chat.end()
    assert done.out == "As you like.\n"
    assert "before this call was answered. It may have been begun." in str(place.model.requests[-1]["messages"])


@pytest.mark.parametrize("typed", ["/quit\r", "\x04"])
def test_who_leaves_while_a_helper_works_leaves_at_its_next_step(place: Shop, typed: str) -> None:
    with_helper(place)
    gate = Gate(call("recall_search", query="hats"))
    place.model.script(call("reader", task="Read."), gate)
    with drawn_chat(place) as terminal:
        terminal.type("Let it read.\r")
        assert gate.asked.wait(60)
        terminal.type(f"to nobody\r{typed}")
        terminal.until("leaving when reader has come to its next step")
        gate.may.set()
        code, shown = terminal.end()
    assert (code, "/resume" in shown, "you>" in shown) == (130, False, False)
    place.model.script(call("task_done", summary="It says: hats."), "Hats.")
    with drawn_chat(place) as terminal:  # it goes on with the turn before it shows its prompt
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0
    assert "It says: hats." in str(place.model.requests[-1]["messages"])
    assert "to nobody" not in str(place.model.requests)


def test_commands_never_reach_the_model(place: Shop) -> None:
    place.model.script("Hello you.")
    done = place.chat(
        "/facts", "/nothing", "/search", "/trace hats", " /etc/hosts is a file", "/core", "Exit", "never said"
    )
    assert done.code == 0
    assert "there is no command /nothing; /help lists them" in done.out
    assert "No fact is stored yet." in done.out
    [request] = place.model.requests
    assert [block["text"] for block in request["messages"][-1]["content"]] == [" /etc/hosts is a file"]


def test_undo_takes_back_what_was_said_last(place: Shop) -> None:
    place.more += 'tools: [{use: "shop:refund"}]\n'
    place.model.script("Hello.", call("archive", text="likes hats"), call("refund", order=17), "Noted.", "Good day.")
    done = place.chat("hello", "I like hats.", "/undo", "/trace I like hats", "good day", "/undo", "/undo", "/undo")
    assert done.code == 0
    for line in (
        "withdrawn: I like hats.", "facts that ended: f1", "tools that ran; what they did stays done: refund",
        "s3 was withdrawn after s6: a person took the turn of s3 back", "withdrawn: good day", "withdrawn: hello",
        "there is no turn to withdraw",
    ):  # fmt: skip
        assert line in done.out
    assert "hats" not in str(place.model.requests[-1]["messages"])
    assert "hello" in str(place.model.requests[-1]["messages"])
    assert "forgot f1" not in done.err


def test_a_server_that_does_not_answer_is_named_while_the_prompt_stands(place: Shop) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        file = write_agent(place.folder, place.more, model=f"id: m, base_url: '{address}'")
        with Terminal("chat", file, "--home", place.home, TERM="xterm-256color") as terminal:
            terminal.until(f"the connection to the model at {address}")
            terminal.type("\x04")
            assert terminal.end(insist="\x04")[0] == 0
    assert not [*place.home.glob("*")]


def test_of_a_new_agent_nothing_stays_if_nothing_was_said(place: Shop) -> None:
    assert place.chat("/core", "/nothing").code == 0
    assert not [*place.home.glob("*")]
    with place.memory():
        pass  # somebody else has made it
    assert place.chat("/core").code == 0
    assert [path.name for path in place.home.iterdir()] == ["x"]


def test_looking_leaves_no_trace(place: Shop) -> None:
    done = place.chat("/search hats", "/trace hats", "/trace hats")
    assert "searched" not in done.out
    place.model.script("Hello.")
    assert place.chat("hello", "/search hats", "/trace hats").code == 0
    with place.memory() as memory:
        assert "search" not in memory.inspect.events()


def test_help_has_its_columns(place: Shop) -> None:
    listed = place.chat("/help").out.partition("\n\n")[0].splitlines()
    assert {line[:1] for line in listed} == {"/"}
    assert max(map(len, listed)) < 80


@contextmanager
def drawn_chat(place: Shop) -> Generator[Terminal]:
    with Terminal(
        "chat", place.file, "--home", place.home, TERM="xterm-256color", COLUMNS="100", LINES="40"
    ) as terminal:
        terminal.until("you>")
        yield terminal


def test_behind_an_error_nothing_moves_beside_the_prompt(place: Shop) -> None:
    place.model.script(http_error(403, "no such key"))
    with drawn_chat(place) as terminal:
        terminal.type("hello\r")
        terminal.until("no such key")
        assert "thinking" not in terminal.until("you>")
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0


def test_on_a_terminal_ctrl_c_while_a_tool_runs_is_answered_on_a_line_of_its_own(place: Shop) -> None:
    place.more += 'tools: [{use: "shop:wait_for"}]\n'
    pipe = place.folder / "pipe"
    os.mkfifo(pipe)
    place.model.script(call("wait_for", path=str(pipe)))
    with drawn_chat(place) as terminal:
        terminal.type("Wait.\r")
        with pipe.open("w") as there:
            terminal.until(" wait_for \x1b")  # the clock
            terminal.type("\x03")
            shown = terminal.until("stopping when wait_for is done")
            there.write("x")
        terminal.until("/resume goes on where it was")
        terminal.until("you>")
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0
    assert shown.endswith("\r\x1b[2Kstopping when wait_for is done")


def test_in_a_narrow_window_the_status_has_two_lines(place: Shop) -> None:
    with Terminal("chat", place.file, "--home", place.home, TERM="xterm-256color") as terminal:
        terminal.resize(40, 20)
        terminal.until("\x1b[6n")  # it asks where the cursor is: the status stands below that
        terminal.type("\x1b[3;1R")
        terminal.until("session")
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0


def test_pasted_lines_are_one_message_and_come_back_after_a_restart(place: Shop) -> None:
    place.model.script("Both.", "Again.")
    with drawn_chat(place) as terminal:
        terminal.type("\x1b[200~first line\nsecond line\x1b[201~\r")
        terminal.until("Both.")
        terminal.until("you>")
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0
    assert place.model.requests[0]["messages"][-1]["content"][-1]["text"] == "first line\nsecond line"
    with drawn_chat(place) as terminal:
        terminal.type("\x1b[A\r")
        terminal.until("Again.")
        terminal.until("you>")
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0
    assert place.model.requests[1]["messages"][-1]["content"][-1]["text"] == "first line\nsecond line"


def test_an_answer_is_drawn_as_markdown_and_moves_no_cursor(place: Shop) -> None:
    place.model.script("Some *text*.\n\n```\nx = 1\n```\n\nRed: \x1b[31mred &#x202e;evil")
    with drawn_chat(place) as terminal:
        terminal.type("Draw.\r")
        shown = terminal.until("evil")
        assert "*text*" not in shown
        assert "\x1b[31mred" not in shown
        assert "\u202e" not in shown
        terminal.until("you>")
        terminal.type("\x03")
        terminal.until("so does another Ctrl-C")
        terminal.until("you>")
        terminal.type("\x03")
        assert terminal.end()[0] == 0


def test_the_first_ctrl_c_cuts_an_answer_off_and_the_second_leaves(place: Shop) -> None:
    place.model.script(stall("One two three. " * 40, after=0.6))
    with drawn_chat(place) as terminal:
        terminal.type("Count.\r")
        terminal.until("One two three.")
        terminal.type("\x03")
        terminal.until("another Ctrl-C leaves")
        terminal.until("you>")
        terminal.type("\x03")
        assert terminal.end()[0] == 0


def test_what_is_typed_into_an_answer_is_not_shown_and_not_sent(place: Shop) -> None:
    gate = Gate("The answer.")
    place.model.script(gate)
    with drawn_chat(place) as terminal:
        terminal.type("Ask.\r")
        assert gate.asked.wait(60)
        terminal.type("typed ahead\r")
        gate.may.set()
        shown = terminal.until("The answer.")
        terminal.until("you>")
        assert "typed ahead" not in shown
        terminal.type("\x04")
        assert terminal.end(insist="\x04")[0] == 0
    assert len(place.model.requests) == 1
