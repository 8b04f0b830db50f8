"""Secrets of servers, models and embedders reach no model, no error, no log, no file and no rendered configuration."""

import json
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agents import Agent
from agents.config.agent_config import AgentConfig
from agents.config.errors import ConfigError
from agents.config.render import render, render_json
from agents.config.tool_sections import ServerConfig
from agents.mcp.client import connected
from agents.models.anthropic import AnthropicModel
from agents.models.model import ModelError
from agents.testing.loopback import LoopbackHandler, LoopbackServer
from agents.tools.functions import ToolConfigError
from pager.safety.redaction import redacted
from tests.standin import call
from tests.support.cli import selfpager, write_agent
from tests.support.stage import Stage

SECRETS = [
    "Qu3ry-s3cret",
    "us3r-name",
    "passw0rd-of-it",
    "argum3nt-s3cret",
    "posit10nal",
    "var1able-s3cret",
    "b3arer-token",
]
LOGIN = "us3r-name:passw0rd-of-it"
ROOT = Path(__file__).parents[2]
# A server that says all that it knows when it is started, and when its tool is called; then it ends.
TELLTALE = """
import os, sys, traceback
print("started as", sys.argv, os.environ["KEY"], file=sys.stderr, flush=True)
if not os.path.exists(sys.argv[1]):
    sys.exit("cannot reach https://us3r-name:passw0rd-of-it@db.example/x?key=Qu3ry-s3cret with " + os.environ["KEY"])
from mcp.server.mcpserver import MCPServer
server = MCPServer("telltale")
@server.tool()
def tell() -> str:
    "Tell."
    raise ValueError(f"{sys.argv} {os.environ['KEY']} https://us3r-name:passw0rd-of-it@db.example/x?key=Qu3ry-s3cret")
@server.tool()
def leave() -> str:
    "Leave."
    print(sys.argv, os.environ["KEY"], file=sys.stderr, flush=True)
    os.remove(sys.argv[1])
    os._exit(3)
server.run()
"""


def clean(text: str) -> bool:
    return not [secret for secret in SECRETS if secret in text]


@pytest.fixture
def telltale(tmp_path: Path) -> dict[str, Any]:
    program, marker = tmp_path / "telltale.py", tmp_path / "marker"
    program.write_text(TELLTALE)
    marker.touch()
    words = ["--token=argum3nt-s3cret", "posit10nal", "--db", "postgres://us3r-name:passw0rd-of-it@db.example/x"]
    return {
        "command": [sys.executable, str(program), str(marker), *words],
        # Its traces are drawn in a box. Words that the box parts are not found.
        "env": {"KEY": "var1able-s3cret", "PYTHONPATH": str(ROOT), "COLUMNS": "5000"},
    }


def test_a_server_that_fails_tells_no_secret_to_the_model_the_log_or_the_disk(
    stage: Stage, telltale: dict[str, Any], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    stage.says(call("tell"), call("leave"), call("tell"), "It failed.")
    with stage.load(f"tools: [{json.dumps({'mcp': telltale})}]\n") as agent:
        assert agent.turn("Tell me.").text == "It failed."
        directory = stage.directory.with_name("home") / "x"
        agent.memory.export(tmp_path / "export")
        for file in [tmp_path / "export", *directory.rglob("*")]:
            assert not file.is_file() or clean(file.read_bytes().decode("latin-1")), file
    sent = json.dumps(stage.requests)
    assert clean(sent)
    assert "python" in sent
    assert "(hidden)" in sent
    logged = [record.getMessage() for record in caplog.records if record.name == "selfpager"]
    assert "(hidden)" in "".join(logged)
    assert clean("".join(logged))


def test_a_server_that_cannot_be_started_is_named_without_its_arguments(
    stage: Stage, telltale: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "marker").unlink()
    with pytest.raises(ConfigError, match=r"cannot reach https://db\.example/x\?\(hidden\)") as failed:
        stage.load(f"tools: [{json.dumps({'mcp': telltale})}]\n")
    assert clean(str(failed.value))
    write_agent(tmp_path, f"tools: [{json.dumps({'mcp': telltale})}]\n")
    for arguments in (
        ["chat", "x.yaml", "--debug"],
        ["render", "x.yaml"],
        ["render", "--json", "x.yaml"],
        ["validate", "x.yaml"],
    ):
        done = selfpager(*arguments, cwd=tmp_path, SELFPAGER_HOME=str(tmp_path / "h"))
        assert clean(done.out + done.err), done
        assert done.code == 0 or "cannot be used" in done.err


# One that sends what is no message, and a notification that is none, each with what it was started with.
BABBLER = """
import json, sys
print("I was started with", sys.argv[1], flush=True)
def send(**sent):
    print(json.dumps({"jsonrpc": "2.0", **sent}), flush=True)
for asked in map(json.loads, sys.stdin):
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "x", "version": "1"}
        send(id=asked["id"], result={"protocolVersion": version, "capabilities": {}, "serverInfo": info})
        send(method="notifications/message", params={"level": sys.argv[1] + chr(27) + "]0;mine" + chr(7), "data": 1})
    elif asked["method"] == "tools/list":
        send(id=asked["id"], result={"tools": []})
    elif "id" in asked:
        send(id=asked["id"], error={"code": -32601, "message": "no"})
"""


def test_what_the_library_says_of_a_malformed_answer_is_logged_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "babbler.py").write_text(BABBLER)
    server = {"command": [sys.executable, str(tmp_path / "babbler.py"), "--token=argum3nt-s3cret"]}
    write_agent(tmp_path, f"tools: [{json.dumps({'mcp': server})}]\n")
    for options in ([], ["--debug"]):
        done = selfpager("chat", "x.yaml", *options, cwd=tmp_path, SELFPAGER_HOME=str(tmp_path / "h"))
        assert clean(done.out + done.err), done
        assert "\x1b" not in done.err
        assert ("Failed to parse" in done.err) == ("Failed to validate" in done.err) == bool(options), done.err


def test_no_half_of_a_secret_is_left_in_what_pydantic_quotes() -> None:
    class Setting(BaseModel):
        key: int

    key = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz0123456789"
    with pytest.raises(ValidationError) as failed:
        Setting.model_validate({"key": f"{key} {key}"})
    assert "0123456789" in str(failed.value)
    assert "0123" not in redacted(str(failed.value), [key])
    assert "unable to parse string as an integer" in redacted(str(failed.value), [key])


BASIC = "YW5uOmh1bnRlcjJwdw=="  # ann:hunter2pw
ECHOES: list[tuple[dict[str, Any], str, str]] = [
    ({"command": ("npx", "srv", "postgresql://ann:hunter2pw@db.example/app")}, "hunter2pw", ""),
    ({"command": ("srv",), "env": {"DATABASE_URL": "x://ann:hunter2pw@db/app?sslmode=require"}}, "hunter2pw", ""),
    ({"command": ("srv",), "env": {"DSN": "Server=db;Uid=ann;Pwd=hunter2pw"}}, "hunter2pw", ""),
    ({"command": ("srv", '{"apiKey":"sk-live-12345"}')}, "sk-live-12345", ""),
    ({"url": "http://h/mcp", "headers": {"Authorization": "token ghp_secret99"}}, "ghp_secret99", ""),
    ({"url": "http://h/mcp", "headers": {"Authorization": "bearer abcd"}}, "abcd", ""),
    ({"url": "http://h/mcp", "headers": {"Authorization": f"Basic {BASIC}"}}, "hunter2pw", ""),
    ({"url": "http://h/mcp", "headers": {"Authorization": f"Basic {BASIC}"}}, BASIC, ""),
    ({"url": "http://ann:hunter2pw@h/mcp"}, BASIC, ""),
    ({"url": "http://h/mcp", "headers": {"Cookie": "session=abcdef123456; a=b"}}, "abcdef123456", ""),
    ({"url": "http://ann:p%40ssword1@h/mcp"}, "p@ssword1", ""),
    ({"url": "http://h/mcp?key=s3cr%2Ft0k3n"}, "s3cr/t0k3n", "s3cr%2ft0k3n"),
    ({"command": ("srv", "--key", "a/b+c=d")}, "/?k=a%2fb%2bc%3dd", ""),
    ({"command": ("srv", "--key", 'ab"cd\\ef')}, r"ab\"cd\\ef", ""),
    ({"command": ("srv", "-pSecretPw1")}, "SecretPw1", ""),
    ({"command": ("npx", "mcp-remote", "--header", "Authorization: Bearer hunterpass")}, "hunterpass", ""),
    ({"command": ("npx", "mcp-remote", "--header", "X-Api-Key:tok_12345")}, "tok_12345", ""),
    ({"command": ("npx", "mcp-remote", "--header=X-Api-Key: tok_12345")}, "tok_12345", ""),
    ({"command": ("bash", "-c", "API_KEY=tok_12345 exec srv --pw hunterpass")}, "tok_12345", "hunterpass"),
    ({"command": ("srv", json.dumps({"a" * 300: "tok_12345"}))}, "tok_12345", ""),
]  # fmt: skip


@pytest.mark.parametrize(("given", "secret", "other"), ECHOES, ids=range(len(ECHOES)))
def test_a_piece_of_a_secret_is_hidden_in_the_form_in_which_a_server_says_it(
    given: dict[str, Any], secret: str, other: str
) -> None:
    told = ServerConfig(**given).redacted(f"refused {secret!s}, and {other} too")
    assert secret not in told
    assert not other or other not in told


@pytest.mark.parametrize(
    "text",
    [
        "FATAL: password authentication failed for the database at db.example (the token has expired)",
        "ERROR: invalid header Authorization: Bearer; the API_KEY of this server and X-Api-Key are not set",
        "/opt/tools/mail-server: connection refused by localhost:5432 while it was reading the configuration",
        "postgresql://db.example/app: ssl is required, application/json was expected, timeout of 30 seconds",
    ],
)
def test_an_error_can_still_be_understood(text: str) -> None:
    script = 'export API_KEY=tok_12345 && echo "while it was reading" && exec /opt/tools/mail-server'
    local = ["/opt/tools/mail-server", "--db", "postgresql://ann:hunter2pw@db.example/app?sslmode=require"]
    words = ["--header", "Authorization: Bearer tok_12345", "--header=X-Api-Key: tok_12345", "-e", "API_KEY=tok_12345"]
    assert ServerConfig(command=(*local, *words), env={"PYTHONPATH": str(ROOT)}).redacted(text) == text
    assert ServerConfig(command=("bash", "-c", script)).redacted("the file was reading it") == "the file was reading it"


@contextmanager
def refusing(status: int) -> Generator[str]:
    class Refusing(LoopbackHandler):
        def answer(self, method: str) -> None:
            told = json.dumps({"type": "error", "error": {"type": "x", "message": f"{self.headers} {self.path}"}})
            self.send_whole(status, "application/json", told.encode(), {})

    with LoopbackServer(Refusing) as server:
        yield server.base_url.removeprefix("http://")


def test_a_server_at_an_address_is_named_by_its_host(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "selfpager")
    for status in (401, 404, 500):
        with refusing(status) as host:
            url = f"http://us3r-name:passw0rd-of-it@{host}/mcp/argum3nt-s3cret-in-path?key=Qu3ry-s3cret"
            server = ServerConfig(url=url, headers={"Authorization": "Bearer b3arer-token"})
            with (
                pytest.raises(ToolConfigError, match=f"the MCP server {host} cannot be used") as failed,
                connected(server),
            ):
                raise AssertionError("it lets nobody in")
            assert clean(f"{failed.value} {server!r} {server}")
    with pytest.raises(ToolConfigError, match=r"the MCP server 127\.0\.0\.1:9 cannot be used") as failed:
        connected(ServerConfig(url="http://us3r-name:passw0rd-of-it@127.0.0.1:9/mcp?key=Qu3ry-s3cret")).__enter__()
    logged = [record.getMessage() for record in caplog.records if record.name == "selfpager"]
    assert clean(f"{failed.value} {failed.value.__cause__} {logged}")


def test_a_models_errors_have_neither_its_login_nor_its_key() -> None:
    hello = {"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    with refusing(401) as host:
        for place in (host, "127.0.0.1:9"):
            url = f"http://us3r-name:passw0rd-of-it@{place}/v/?key=Qu3ry-s3cret"
            model = AnthropicModel("m", base_url=url, api_key="b3arer-token")
            with pytest.raises(ModelError) as failed:
                list(model.stream(hello))
            model.close()
            assert clean(str(failed.value))


def test_a_configuration_is_shown_without_secrets() -> None:
    config = AgentConfig.model_validate(
        {
            "name": "x",
            "model": {"base_url": f"https://{LOGIN}@h.example/v1?key=Qu3ry-s3cret", "api_key": "b3arer-token"},
            "archival": {
                "embedder": {"name": "ollama", "config": {"url": f"http://{LOGIN}@h:1/api", "model_name": "m"}},
                "index": {"host": "h", "headers": {"x": "b3arer-token"}},
            },
            "tools": [
                {"mcp": {"url": "https://us3r-name:passw0rd-of-it@h.example/mcp?key=Qu3ry-s3cret"}},
                {"mcp": {"command": ["npx", "-y", "posit10nal", "--key", "argum3nt-s3cret", "--t=argum3nt-s3cret"]}},
            ],
        }
    )  # fmt: skip
    assert clean(render(config) + render_json(config) + repr(config))
    shown = json.loads(render_json(config))
    assert shown["model"]["base_url"] == "https://h.example/v1?(hidden)"
    assert [tool["mcp"].get("url") or tool["mcp"]["command"] for tool in shown["tools"]] == [
        "https://h.example/mcp?(hidden)", ["npx", "-y", "(hidden)", "--key", "(hidden)", "--t=(hidden)"],
    ]  # fmt: skip
    assert shown["archival"]["embedder"]["config"] == {"url": "http://h:1/api", "model_name": "m"}


@pytest.mark.parametrize("place", ["model: {base_url: '%s'}", "tools: [{mcp: {url: '%s'}}]"])
def test_an_address_that_is_wrong_is_quoted_without_its_login(tmp_path: Path, place: str) -> None:
    (tmp_path / "x.yaml").write_text("name: x\n" + place % "htp://us3r-name:passw0rd-of-it@h.example/?key=Qu3ry-s3cret")
    with pytest.raises(ConfigError, match=r"htp://h\.example/\?\(hidden\)") as failed:
        Agent.load(tmp_path / "x.yaml", home=tmp_path / "home")
    assert clean(str(failed.value))


def test_hiding_takes_steps_in_proportion_to_the_text() -> None:
    for text in ("a" * 200_000, "a://" * 50_000, "http://" + "@" * 200_000, "http://h/" + "?" * 200_000):
        assert redacted(text, ["s3cret"]) != ""
