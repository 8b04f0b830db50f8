"""MCP servers that go away, answer oddly or ask for a password."""

import json
import logging
import os
import signal
import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from agents.config.errors import ConfigError
from agents.config.sections import ServerConfig
from agents.mcp.client import connected
from agents.tools.functions import Tool, ToolCallError, ToolConfigError
from tests.mcp.conftest import agent_with
from tests.standin import call
from tests.support.stage import Stage, results

ROOT = Path(__file__).parents[2]
ODD = ServerConfig(command=(sys.executable, "-m", "tests.support.mcp_servers"), env={"PYTHONPATH": str(ROOT)})
STRUCTURED = ServerConfig(command=(*ODD.command, "structured"), env=ODD.env)


@pytest.fixture
def odd() -> Generator[dict[str, Tool]]:
    with connected(ODD) as connection:
        yield {tool.name: tool for tool in connection.tools()}


def test_a_server_that_died_between_two_calls_is_connected_again(odd: dict[str, Tool]) -> None:
    before = int(str(odd["process"].run({})))
    os.kill(before, signal.SIGKILL)
    assert int(str(odd["process"].run({}))) != before


def test_an_interrupted_call_is_an_error_and_is_not_repeated(odd: dict[str, Tool]) -> None:
    error = r"went away during the call of go, which may have run \(.*Connection closed\)"
    with pytest.raises(ToolCallError, match=error):
        odd["go"].run({"reason": "tired"})
    assert odd["echo"].run({"text": "here again, a\ud800b"}) == "here again, a\ufffdb"  # nor does a surrogate harm it


def test_a_harmless_call_is_repeated_once(odd: dict[str, Tool], tmp_path: Path) -> None:
    assert odd["stumble"].run({"marker": str(tmp_path / "marker")}) == "done at the second call"


def test_a_server_that_stays_away_is_an_error_result(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    text = f"import runpy, sys\nsys.path.insert(0, {str(ROOT)!r})\nsys.argv = ['x']\n"
    text += "runpy.run_module('tests.support.mcp_servers', run_name='__main__')\n"
    program.write_text(text)
    with connected(ServerConfig(command=(sys.executable, str(program)))) as connection:
        tools = {tool.name: tool for tool in connection.tools()}
        with pytest.raises(ToolCallError):
            tools["go"].run({"reason": "x"})
        program.write_text("raise SystemExit('the disk is full')")
        error = r"cannot be used: .*The call was not made; the next one tries to connect"
        with pytest.raises(ToolCallError, match=error):
            tools["echo"].run({"text": "x"})
        program.write_text(text)
        assert tools["echo"].run({"text": "x"}) == "x"


def test_standard_error_goes_to_the_log(
    odd: dict[str, Tool], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "selfpager")
    failing = ServerConfig(command=(sys.executable, "-c", "raise SystemExit('no key is set')"))
    with pytest.raises(ToolConfigError, match="its last output: no key is set"), connected(failing):
        raise AssertionError("it cannot be connected")
    with pytest.raises(ToolCallError):
        odd["go"].run({"reason": "tired"})
    assert "I go: tired" in caplog.text
    assert {record.name.split(".")[0] for record in caplog.records} <= {"selfpager", "mcp"}
    assert capfd.readouterr() == ("", "")


def test_a_call_without_an_answer_is_given_up_and_the_next_one_uses_another_process() -> None:
    with connected(ODD) as connection:
        slow, quick = (
            next(tool for tool in connection.tools(timeout_seconds=limit) if tool.name == name)
            for name, limit in (("sleep", 0.5), ("process", 60.0))
        )
        before = quick.run({})
        with pytest.raises(ToolCallError, match=r"sleep did not finish within 0\.5 s; it may still be running\."):
            slow.run({})
        assert quick.run({}) != before


def test_schemas_and_results_that_the_api_refuses_are_converted(stage: Stage, tmp_path: Path) -> None:
    odata = call("odata_list", {"arguments": {"$top": 5, "_top": "x", "@odata.id": 1}})
    stage.says(call("either", {"arguments": {"name": "Dana"}}), odata, "Done.")
    entry = {"mcp": {"command": STRUCTURED.command, "env": dict(STRUCTURED.env)}}
    with agent_with(tmp_path, json.dumps(entry), stage.base_url) as agent:
        assert agent.turn("Where is Dana?").text == "Done."
    sent = {tool["name"]: tool for tool in stage.requests[0]["tools"]}
    either, listed = (sent[name]["input_schema"]["properties"]["arguments"] for name in ("either", "odata_list"))
    assert either["oneOf"][1] == {"$ref": "#/properties/arguments/$defs/named"}
    assert (listed["properties"].keys(), listed["required"]) == ({"$top", "_top", "@odata.id"}, ["$top"])
    assert sent["_"]["input_schema"] == {"type": "object"}
    assert results(stage.requests[1]["messages"][-1]["content"]) == [('{"asked": {"name": "Dana"}}', False)]
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
        entry = f"{{mcp: {{url: '{url}', headers: {{Authorization: 'Bearer ${{KEY}}'}}}}}}"
        with pytest.raises(ConfigError, match=r"cannot be used: .*; its last output: .*401 Unauthorized"):
            agent_with(tmp_path, entry, KEY="very-secret")
        guarded.shutdown()
    assert set(seen) == {"Bearer very-secret"}
    assert "very-secret" not in repr(ServerConfig(url=url, headers={"Authorization": "Bearer very-secret"}))
