"""MCP on both sides: an agent's memory for the official client, over stdio and streamable HTTP, and the tools of a
server that others wrote in an agent."""

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from agents.config.errors import ConfigError
from agents.config.tool_sections import ServerConfig
from agents.mcp import client as mcp_client
from agents.mcp import server
from agents.mcp.client import connected
from agents.tools.functions import ToolCallError, ToolConfigError
from pager import BlockSpec, Memory, MemoryReader
from pager.clock import SystemClock
from tests.standin import Reply, call
from tests.support.cli import Running, command_line, environment, selfpager
from tests.support.stage import Stage, results

TOKEN = "a-token-of-its-client"
SAID = datetime(2026, 5, 3, 14, 30, tzinfo=UTC)
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TIME = str(Path(sys.executable).with_name("mcp-server-time"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the agent alice lives, who has a past."""
    core = {"human": BlockSpec(value="Alice, a baker", limit_tokens=50)}
    with Memory.open(tmp_path / "home" / "alice", embedder=None, core=core) as memory:
        memory.save_value("embedder", "null")
        memory.archive("prefers aisle seats", key="seat")
        memory.record("user", "I moved to Porto. " * 3_000, at=SAID, name="Dana")
    return tmp_path / "home"


@contextmanager
def served(home: Path, *options: str) -> Generator[str]:
    """Run `selfpager mcp alice --http`; yield its address."""
    with Running("mcp", "alice", "--home", home, "--http", "0", *options, SELFPAGER_MCP_TOKEN=TOKEN) as running:
        line = running.tells("alice is served at")
        address = re.search(r"http://127\.0\.0\.1:\d+/mcp(?= until)", line)
        assert address, line
        yield address[0]


@asynccontextmanager
async def over_http(address: str) -> AsyncGenerator[Any]:
    """A transport to a server that asks for the token."""
    async with (
        httpx2.AsyncClient(headers=BEARER) as http,
        streamable_http_client(address, http_client=http) as streams,
    ):
        yield streams


def ask(server: Any, *calls: tuple[str, dict[str, object]]) -> tuple[list[str], list[str]]:
    """Over the official client: the names of the tools, and the answers to these calls."""

    async def run() -> tuple[list[str], list[str]]:
        async with Client(server) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            answers: list[str] = []
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                text = "".join(block.text for block in result.content if isinstance(block, TextContent))
                answers.append(f"ERROR {text}" if result.is_error else text)
            return tools, answers

    return asyncio.run(run())


def test_a_client_reads_beside_the_running_agent(home: Path) -> None:
    arguments = ["-m", "agents", "mcp", "alice", "--home", str(home)]
    stdio = StdioServerParameters(command=sys.executable, args=arguments, env=environment())
    with Memory.open(home / "alice", embedder=None) as memory:
        before = memory.ledger()
        tools, (found, said, page, end, behind, pinned, core, refused) = ask(
            stdio,
            ("search_archive", {"query": "aisle seats"}),
            ("search_recall", {"query": "Porto", "after": "2026-05-03"}),
            ("page_in", {"page_id": "s1"}),
            ("page_in", {"page_id": "s1", "offset": 53_990}),
            ("page_in", {"page_id": "s1", "offset": 54_001}),
            ("page_in", {"page_id": "s1", "pin": True}),
            ("core", {}),
            ("archive", {"text": "x"}),
        )
        assert memory.ledger() == before
    assert tools == ["core", "search_archive", "search_recall", "page_in"]
    assert re.fullmatch(r"f1 since \S+, stored just now: prefers aisle seats", found)
    assert said.startswith(f"s1 {SAID.astimezone().date()} ")
    assert re.match(r"s1, characters 0 to (\d+) of 54000; read on with offset \1:\nI moved to Porto\.", page)
    assert behind == "ERROR offset 54001 is outside of s1, which has 54000 characters from 0."
    assert end == "s1, characters 53990 to 54000 of 54000:\nto Porto. "
    assert pinned.startswith("ERROR this memory is read-only here")
    assert [(block["name"], block["value"]) for block in json.loads(core)] == [("human", "Alice, a baker")]
    assert refused == "ERROR There is no tool 'archive'. There are: core, search_archive, search_recall, page_in."


def test_with_write_a_client_can_do_all_that_the_agent_can(home: Path) -> None:
    with served(home, "--write") as address:
        tools, (stored, block, too_long, wrong) = ask(
            over_http(address),
            ("archive", {"text": "prefers window seats", "key": "seat"}),
            ("core_append", {"block": "human", "text": "has two cats"}),
            ("core_append", {"block": "human", "text": "word " * 80}),
            ("archive", {"txt": "x"}),
        )
    assert {"core", "archive", "core_append", "core_replace", "page_out", "forget"} < set(tools)
    assert stored == "Stored as f2.\nIt supersedes f1: prefers aisle seats"
    assert block == "Added. human holds 8 of 50 tokens."
    assert too_long.startswith("ERROR the block 'human' would hold")
    assert "there is no such argument" in wrong
    with Memory.open(home / "alice", embedder=None) as memory:
        fact = memory.fact("f2")
        assert (fact.actor, fact.via, fact.sources[0].kind) == ("mcp", (fact.sources[0].origin,), "mcp-client")
        assert memory.core()[0].via == fact.via
        memory.append_user("hello")
        assert "has two cats" in json.dumps(memory.request().params)


def test_what_cannot_be_served_is_an_error(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = command_line("mcp", "alice", "--home", home, "--http", str(port))
    message = f"selfpager: 127.0.0.1:{port} cannot be served: Address already in use. Choose another port"
    assert (busy.code, message in busy.err) == (1, True)
    with Memory.open(home / "alice", embedder=None):
        locked = command_line("mcp", "alice", "--home", home, "--write")
    assert (locked.code, "alice is in use by process" in locked.err) == (1, True)


def test_a_client_reads_the_text_that_the_agent_has_in_view(home: Path) -> None:
    with Memory.open(home / "alice", embedder=None) as memory, MemoryReader.open(home / "alice") as reader:
        step = memory.append_user("The oven is repaired on Friday.")
        memory.request()
        memory.append_assistant("Good.")
        clock = SystemClock()
        for tools in (server.memory_tools(memory, clock), server.memory_tools(reader, clock)):
            page_in = next(tool for tool in tools if tool.name == "page_in")
            assert "The oven is repaired on Friday." in str(page_in.run({"page_id": step}))


PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def test_a_request_before_the_end_of_the_input_is_answered(home: Path) -> None:
    done = selfpager("mcp", "alice", "--home", home, said=PING)
    assert (done.json, done.err) == ({"jsonrpc": "2.0", "id": 1, "result": {}}, "")


@pytest.mark.parametrize("options", [(), ("--write",)])
def test_ctrl_c_ends_a_server_on_standard_input(home: Path, options: tuple[str, ...]) -> None:
    with Running("mcp", "alice", "--home", home, *options) as running:
        running.say(PING)
        assert json.loads(running.line())["id"] == 1
        running.interrupt()
        done = running.end()
    assert done.code == 130
    assert re.fullmatch(r"\s*interrupted.*\n", done.err)
    with Memory.open(home / "alice", embedder=None) as memory:
        assert memory.check() == []


def test_an_agent_uses_the_tools_of_a_server(stage: Stage) -> None:
    converted = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"}
    calls = call("convert_time", converted), call("convert_time", {"time": "soon"}), call("get_current_time")
    stage.says(Reply(*calls), "Half past eight.")
    entry = f'{{mcp: {{command: ["{TIME}", --local-timezone, Europe/Lisbon]}}, only: [convert_time]}}'
    with stage.load(f"tools: [{entry}]\n") as agent:
        assert agent.turn("It is noon in Tokyo.").text == "Half past eight."
    sent = {tool["name"]: tool for tool in stage.requests[0]["tools"]}
    assert "get_current_time" not in sent
    assert sent["convert_time"]["input_schema"]["required"] == ["source_timezone", "time", "target_timezone"]
    right, wrong, unknown = results(stage.last)
    assert json.loads(right[0])["target"]["datetime"].endswith("T08:30:00+05:30")
    assert (right[1], wrong[1], unknown[1]) == (False, True, True)
    assert "There is no tool 'get_current_time'" in unknown[0]


def test_a_server_over_http_is_used_the_same_way(home: Path) -> None:
    with served(home) as address, connected(ServerConfig(url=address, headers=BEARER)) as server:
        (tool,) = server.tools(("search_archive",))
        assert "prefers aisle seats" in str(tool.run({"query": "aisle"}))
        with pytest.raises(ToolCallError, match="limit is 0"):
            tool.run({"query": "aisle", "limit": 0})
        with pytest.raises(ToolConfigError, match="has no tool 'fly'; there are: core, search_archive"):
            server.tools(("fly",))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{mcp: {command: [no-such-program]}}", "the MCP server no-such-program cannot be used: "),
        (f"{{mcp: {{command: [{sys.executable}, -c, 'raise SystemExit']}}}}", "cannot be used: "),
        ("{mcp: {url: 'http://127.0.0.1:9/mcp'}}", "the MCP server 127.0.0.1:9 cannot be used: "),
        (f"{{mcp: {{command: [{TIME}]}}, only: [fly]}}", "has no tool 'fly'; there are: get_current_time, convert_"),
        (f"{{mcp: &a {{command: [{TIME}]}}}}, {{mcp: *a}}", "there is a tool 'get_current_time' and"),
    ],
)
def test_what_cannot_be_used_is_reported_at_its_place(stage: Stage, entry: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        stage.load(f"tools: [{entry}]\n")
    assert re.search(r"x\.yaml:\d:\d+: ", str(refused.value))
    assert message in str(refused.value)


def test_a_server_that_does_not_answer_is_given_up() -> None:
    silent = ServerConfig(command=(sys.executable, "-c", "import sys; sys.stdin.read()"))
    with pytest.raises(ToolConfigError, match=r"did not answer within 0\.5 s"), connected(silent, seconds=0.5):
        raise AssertionError("it never answered")


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError('none')", encoding="utf-8")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from agents.config.tool_sections import ServerConfig
from agents.mcp.client import connected
try:
    connected(ServerConfig(command=("x",))).__enter__()
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{mcp_client.MISSING}\n"
