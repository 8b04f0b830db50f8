"""Serve an agent's memory to any MCP client over stdio or streamable HTTP. Imports `mcp`: import it only when needed.

The tools are the agent's own, and `core`, for which the agent needs none. A reader runs beside the agent and offers
those that only read; a `Memory` needs the agent's directory for itself and offers all.
"""

import asyncio
import json
import os
import re
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from contextvars import ContextVar
from hmac import compare_digest
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, cast

import anyio
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from agents.httpd import HOST, ForbiddenError, HttpServer, Scope, check_caller
from agents.logs import adopt, log
from agents.mcp.client import clean
from agents.tools.functions import Output, Tool, describe_error
from agents.tools.memory_tools import MemoryTools, ReadingTools
from pager import one_line
from pager.clock import Clock
from pager.errors import PagerError, RejectedError
from pager.memory import Memory
from pager.reader import MemoryReader

TOKEN = re.compile(r"[!-~]{16,}")  # as a header can carry it, and long enough not to be guessed
PIECE_BYTES = 65_536
LAST_ANSWER_SECONDS = 0.3
CORE_FIELDS = ("name", "description", "value", "used_tokens", "limit_tokens", "read_only", "via")
ACTOR = "mcp"  # not the agent, which is told of what is written here
_client = ContextVar("client", default="")  # the name that the calling client has given itself
INSTRUCTIONS = (
    "The memory of the agent {name}. search_archive finds facts, search_recall finds what was said, page_in reads "
    "either by its id, core shows what the agent always has in view."
)


def memory_tools(memory: Memory | MemoryReader, clock: Clock) -> list[Tool]:
    """Return all that the agent itself can do with its memory; of a reader what changes nothing, no ledger either."""
    writes = isinstance(memory, Memory)
    tools = (
        MemoryTools(memory, clock, actor=ACTOR, source=lambda: f"mcp-client:{_client.get()}")
        if writes
        else ReadingTools(memory, clock, actor=ACTOR)
    )
    return [_core_tool(memory), *tools.tools()]


def _core_tool(memory: Memory | MemoryReader) -> Tool:
    def core() -> str:
        """Read the core blocks: what the agent always has in view."""
        blocks = memory.core()
        if isinstance(memory, Memory):
            memory.show_sources({name for block in blocks for name in block.via}, actor=ACTOR)
        shown = [{name: getattr(block, name) for name in CORE_FIELDS} for block in blocks]
        return "\n".join(map(one_line, json.dumps(shown, ensure_ascii=False, indent=1).split("\n")))

    return Tool.of(core)


def serve_stdio(name: str, tools: list[Tool]) -> None:
    """Serve one client on standard input and output, until the client closes the input."""

    async def run() -> None:
        server = _server(name, tools)
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", _lines_of_input())) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


async def _lines_of_input() -> AsyncGenerator[str]:
    """Yield the lines of standard input. A daemon thread reads them, so that Ctrl-C ends the program at once; the
    library's own reader would block until the input ends."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    descriptor = os.dup(sys.stdin.fileno())

    def read() -> None:
        with suppress(RuntimeError):  # the loop is closed
            while piece := os.read(descriptor, PIECE_BYTES):
                loop.call_soon_threadsafe(lines.put_nowait, piece)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, name="standard input", daemon=True).start()
    rest = b""
    while piece := await lines.get():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
    await asyncio.sleep(LAST_ANSWER_SECONDS)  # the end of the input ends the server, also while it still answers


def serve_http(name: str, tools: list[Tool], port: int, token: str, on_ready: Callable[[str], object]) -> None:
    """Serve clients that send the token, on a port of this machine (0: a free one), until Ctrl-C. `on_ready` gets the
    address."""
    if not TOKEN.fullmatch(token):
        way = "give at least 16, of ASCII and without spaces; `openssl rand -hex 24` makes one"
        raise RejectedError(f"the token has {len(token)} characters, or some that no header can carry: {way}.")
    server = HttpServer(_Guarded(_server(name, tools).streamable_http_app(host=HOST), token), port=port)
    on_ready(f"{server.url}/mcp")
    server.run()


class _Guarded:
    """An ASGI application behind the token, for callers that `check_caller` lets in. Nothing else is read."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or (refused := self._refused(scope)) is None:
            await self._app(scope, receive, send)
            return
        status, text = refused
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        headers += [(b"www-authenticate", b"Bearer")] if status == HTTPStatus.UNAUTHORIZED else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    def _refused(self, scope: Scope) -> tuple[HTTPStatus, str] | None:
        try:
            check_caller(scope)
        except ForbiddenError as error:
            return HTTPStatus.FORBIDDEN, str(error)
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if compare_digest(f"{kind.lower()} {token}".encode(), self._expected):
            return None
        return HTTPStatus.UNAUTHORIZED, "send `Authorization: Bearer TOKEN` with the token of this `selfpager mcp`."


def _server(name: str, tools: list[Tool]) -> Server[Any]:
    adopt("mcp")
    by_name = {tool.name: tool for tool in tools}
    definitions = [types.Tool(name=each.name, description=each.description, input_schema=each.schema) for each in tools]

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=definitions)

    async def call_tool(context: Any, request: types.CallToolRequestParams) -> types.CallToolResult:
        client = context.session.client_params
        _client.set(client.client_info.name if client else "")
        tool = by_name.get(request.name)
        if tool is None:
            return _result(f"There is no tool {request.name!r}. There are: {', '.join(by_name)}.", is_error=True)
        try:
            return _result(await anyio.to_thread.run_sync(tool.run, request.arguments or {}))
        except PagerError as error:
            return _result(str(error), is_error=True)
        except Exception as error:
            log.exception("the tool %s failed", tool.name)
            return _result(f"{tool.name} failed: {describe_error(error)}", is_error=True)

    instructions = INSTRUCTIONS.format(name=name)
    return Server(
        f"selfpager {name}", version=version("selfpager"), instructions=instructions, on_list_tools=list_tools,
        on_call_tool=call_tool,
    )  # fmt: skip


def _result(output: Output, *, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = []
    for block in clean([{"type": "text", "text": output}] if isinstance(output, str) else output):
        source = cast("dict[str, Any]", block.get("source") or {})
        if block["type"] == "image" and source.get("type") == "base64":
            content.append(types.ImageContent(type="image", data=source["data"], mime_type=source["media_type"]))
        else:
            text = block["text"] if block["type"] == "text" else f"({block['type']})"
            content.append(types.TextContent(type="text", text=text))
    return types.CallToolResult(content=content, is_error=is_error)
