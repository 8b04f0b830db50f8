"""MCP servers that go away, answer oddly or ask for a password."""

import json
import logging
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from agents.config.errors import ConfigError
from agents.config.tool_sections import ServerConfig
from agents.mcp.client import connected
from agents.testing.loopback import LoopbackHandler, LoopbackServer
from agents.tools.functions import Tool, ToolCallError, ToolConfigError
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


def test_schemas_and_results_that_the_api_refuses_are_converted(stage: Stage) -> None:
    odata = call("odata_list", {"arguments": {"$top": 5, "_top": "x", "@odata.id": 1}})
    stage.says(call("either", {"arguments": {"name": "Dana"}}), odata, "Done.")
    entry = {"mcp": {"command": STRUCTURED.command, "env": dict(STRUCTURED.env)}}
    with stage.load(f"tools: [{json.dumps(entry)}]\n") as agent:
        assert agent.turn("Where is Dana?").text == "Done."
    sent = {tool["name"]: tool for tool in stage.requests[0]["tools"]}
    either, listed = (sent[name]["input_schema"]["properties"]["arguments"] for name in ("either", "odata_list"))
    assert either["oneOf"][1] == {"$ref": "#/properties/arguments/$defs/named"}
    assert (listed["properties"].keys(), listed["required"]) == ({"$top", "_top", "@odata.id"}, ["$top"])
    assert sent["_"]["input_schema"] == {"type": "object"}
    assert results(stage.requests[1]["messages"][-1]["content"]) == [('{"asked": {"name": "Dana"}}', False)]
    assert results(stage.last) == [('{"asked": {"$top": 5, "_top": "x", "@odata.id": 1}}', False)]


def test_a_result_is_not_searched_with_the_regular_expressions_of_its_server() -> None:
    with connected(STRUCTURED) as connection:
        either = next(tool for tool in connection.tools() if tool.name == "either")
        for name in ("a" * 20 + "!", "a" * 60 + "!"):  # checked, the first would be refused, and the second take ages
            assert either.run({"arguments": {"name": name}}) == f'{{"asked": {{"name": "{name}"}}}}'


def test_headers_are_sent_from_the_environment(stage: Stage) -> None:
    seen: list[str | None] = []

    class Guarded(LoopbackHandler):
        def answer(self, method: str) -> None:
            seen.append(self.headers["Authorization"])
            self.send_whole(401, "text/plain", b"", {})

    with LoopbackServer(Guarded) as guarded:
        url = f"{guarded.base_url}/mcp"
        entry = f"{{mcp: {{url: '{url}', headers: {{Authorization: 'Bearer ${{KEY}}'}}}}}}"
        with pytest.raises(ConfigError, match=r"cannot be used: .*; its last output: .*401 Unauthorized"):
            stage.load(f"tools: [{entry}]\n", environ={"KEY": "very-secret"})
    assert set(seen) == {"Bearer very-secret"}
    assert "very-secret" not in repr(ServerConfig(url=url, headers={"Authorization": "Bearer very-secret"}))


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ({"command": ("npx", "-y", "@modelcontextprotocol/server-github", "--token=secret")}, "mcp:server-github"),
        ({"command": ("/usr/bin/python3.12", "-m", "mcp_server_time")}, "mcp:mcp_server_time"),
        ({"command": ("/opt/tools/mail", "secret")}, "mcp:mail"),
        ({"command": ("uvx", "mail"), "name": "post"}, "mcp:post"),
        ({"url": "https://user:secret@mcp.example.org/x?key=secret"}, "mcp:mcp.example.org"),
    ],
)
def test_a_server_is_named_in_sources_without_its_secrets(given: dict[str, Any], source: str) -> None:
    assert ServerConfig(**given).source == source
