"""MCP servers that go, that answer oddly and that ask for a password: what the agent makes of them."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from agents.agent import Agent
from agents.config.errors import ConfigError
from agents.mcp.client import Connection, Server, connected
from agents.tools.functions import Tool, ToolCallError, ToolConfigError
from pager import BlockSpec, Memory
from tests.standin import call
from tests.support.cli import TIMEOUT_S, environment
from tests.support.stage import Stage, results

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
ODD = Server((sys.executable, "-m", "tests.support.mcp_servers"), {"PYTHONPATH": str(ROOT)})
STRUCTURED = Server((*ODD.command, "structured"), ODD.env)


@pytest.fixture
def odd() -> Generator[dict[str, Tool]]:
    with connected(ODD) as connection:
        yield {tool.name: tool for tool in connection.tools()}


def test_a_server_that_went_between_two_calls_is_connected_again(odd: dict[str, Tool]) -> None:
    before = int(str(odd["process"].run({})))
    os.kill(before, signal.SIGKILL)
    assert int(str(odd["process"].run({}))) != before


def test_a_call_that_it_cut_off_is_told_and_not_made_again(odd: dict[str, Tool]) -> None:
    with pytest.raises(
        ToolCallError, match=r"went away during the call of go, which may have run \(.*Connection closed\)"
    ):
        odd["go"].run({"reason": "tired"})
    assert odd["echo"].run({"text": "here again"}) == "here again"


def test_a_call_that_does_no_harm_is_made_again_once(odd: dict[str, Tool], tmp_path: Path) -> None:
    assert odd["stumble"].run({"marker": str(tmp_path / "marker")}) == "done at the second call"


def test_a_server_that_stays_away_is_an_error_result_and_not_the_end(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(f"import runpy, sys\nsys.path.insert(0, {str(ROOT)!r})\nsys.argv = ['x']\n"
                       "runpy.run_module('tests.support.mcp_servers', run_name='__main__')\n")  # fmt: skip
    with connected(Server((sys.executable, str(program)))) as connection:
        tools = {tool.name: tool for tool in connection.tools()}
        with pytest.raises(ToolCallError):
            tools["go"].run({"reason": "x"})
        kept = program.read_text()
        program.write_text("raise SystemExit('the disk is full')")
        with pytest.raises(
            ToolCallError, match=r"cannot be used: .*The call was not made; a later one tries to connect"
        ):
            tools["echo"].run({"text": "x"})
        program.write_text(kept)
        assert tools["echo"].run({"text": "x"}) == "x"


def test_what_it_writes_to_standard_error_goes_to_the_log(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "selfpager")
    failing = Server((sys.executable, "-c", "raise SystemExit('no key is set')"))
    with pytest.raises(ToolConfigError, match="it said: no key is set"), connected(failing):
        raise AssertionError("it cannot be connected")
    with connected(ODD) as connection, pytest.raises(ToolCallError):
        next(tool for tool in connection.tools() if tool.name == "go").run({"reason": "tired"})
    assert "I go: tired" in caplog.text
    assert {record.name.split(".")[0] for record in caplog.records} <= {"selfpager", "mcp"}
    assert capfd.readouterr() == ("", "")


def test_a_call_without_an_answer_is_given_up_and_the_next_one_meets_another_process() -> None:
    with connected(ODD) as connection:
        slow, quick = (
            next(tool for tool in connection.tools(timeout_seconds=limit) if tool.name == name)
            for name, limit in (("sleep", 0.5), ("process", 60.0))
        )
        before = quick.run({})
        with pytest.raises(ToolCallError, match=r"sleep did not finish within 0\.5 s; it may still be running\."):
            slow.run({})
        assert quick.run({}) != before


def test_half_a_character_harms_no_connection(odd: dict[str, Tool]) -> None:
    assert odd["echo"].run({"text": "a\ud800b"}) == "a\ufffdb"


def with_structured(stage: Stage, home: Path) -> Agent:
    text = f"""\
name: x
model: {{id: m, base_url: "{stage.base_url}"}}
archival: {{embedder: none}}
tools: [{{mcp: {{command: {json.dumps(STRUCTURED.command)}, env: {json.dumps(dict(STRUCTURED.env))}}}}}]
"""
    (home / "x.yaml").write_text(text, encoding="utf-8")
    return Agent.load(home / "x.yaml", home=home, environ={})


def test_a_choice_at_the_root_and_an_answer_without_text_work(stage: Stage, tmp_path: Path) -> None:
    stage.says(call("either", {"name": "Dana"}), "Found.")
    with with_structured(stage, tmp_path) as agent:
        assert agent.turn("Where is Dana?").text == "Found."
    (sent,) = (tool for tool in stage.requests[0]["tools"] if tool["name"] == "either")
    assert sent["input_schema"]["properties"] == {"number": {"type": "integer"}, "name": {"type": "string"}}
    assert sent["description"] == "Find it. Give one of: number; name."
    assert results(stage.last) == [('{"asked": {"name": "Dana"}}', False)]


def test_names_that_the_api_refuses_get_others_and_the_server_sees_its_own(stage: Stage, tmp_path: Path) -> None:
    stage.says(call("odata_list", {"_top_2": 5, "_top": "x", "_odata.id": 1}), "Listed.")
    with with_structured(stage, tmp_path) as agent:
        assert agent.turn("List them.").text == "Listed."
    sent = {tool["name"]: tool["input_schema"] for tool in stage.requests[0]["tools"]}
    assert sent["odata_list"]["properties"].keys() == {"_top_2", "_top", "_odata.id"}
    assert sent["odata_list"]["required"] == ["_top_2"]
    assert sent["_"] == {"type": "object"}
    assert results(stage.last) == [('{"asked": {"$top": 5, "_top": "x", "@odata.id": 1}}', False)]


def test_headers_are_sent_from_the_environment(tmp_path: Path) -> None:
    seen: list[str | None] = []

    class Guarded(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_error(401)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Guarded) as guarded:
        Thread(target=guarded.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{guarded.server_port}/mcp"
        entry = f"{{url: '{url}', headers: {{Authorization: 'Bearer ${{KEY}}'}}}}"
        (tmp_path / "x.yaml").write_text(f"name: x\nwindow: {{limit_tokens: 20000}}\ntools: [{{mcp: {entry}}}]\n")
        with pytest.raises(ConfigError, match=r"cannot be used: .*; it said: .*401 Unauthorized"):
            Agent.load(tmp_path / "x.yaml", home=tmp_path, environ={"KEY": "very-secret"})
        guarded.shutdown()
    assert set(seen) == {"Bearer very-secret"}
    assert "very-secret" not in repr(Server(url=url, headers={"Authorization": "Bearer very-secret"}))


def test_a_client_that_writes_is_given_the_text_that_the_agent_has_in_view(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home" / "alice", embedder=None, core={"human": BlockSpec()}) as memory:
        memory.save_value("embedder", "null")
        memory.append_user("The oven is repaired on Friday.")
        memory.request()
        memory.append_assistant("Good.")
    command = (sys.executable, "-m", "agents", "mcp", "alice", "--write", "--home", str(tmp_path / "home"))
    with connected(Server(command, environment())) as connection:
        assert "The oven is repaired on Friday." in str(_named(connection, "page_in").run({"page_id": "s1"}))


def _named(connection: Connection, name: str) -> Tool:
    return next(tool for tool in connection.tools() if tool.name == name)


def test_what_was_asked_before_the_end_of_the_input_is_answered(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "alice", embedder=None) as memory:
        memory.save_value("embedder", "null")
    command = [sys.executable, "-m", "agents", "mcp", "alice", "--home", str(tmp_path)]
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    done = subprocess.run(command, env=environment(), input=asked, capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ({"jsonrpc": "2.0", "id": 1, "result": {}}, "")


@pytest.mark.parametrize("options", [(), ("--write",)])
def test_ctrl_c_ends_a_server_on_standard_input(tmp_path: Path, options: tuple[str, ...]) -> None:
    with Memory.open(tmp_path / "alice", embedder=None) as memory:
        memory.save_value("embedder", "null")
    command = [sys.executable, "-m", "agents", "mcp", "alice", "--home", str(tmp_path), *options]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
        assert process.stderr is not None
        assert "Traceback" not in (said := process.stderr.read())
        assert said.strip() == "interrupted; what was done is on disk and the work resumes."
    with Memory.open(tmp_path / "alice", embedder=None) as memory:
        assert memory.check() == []
