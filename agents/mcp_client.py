"""Tools of MCP servers, over stdio or streamable HTTP. With `agents.mcp_server` the only files that import `mcp`.

A server is connected once, when the agent is opened, and lives in an event loop of its own thread until `close`. Its
tools are the agent's like any others: named as the server names them, with its descriptions and schemas.

    >>> with connected(Server(command=("mcp-server-time",))) as server:
    ...     server.tools()[0].run({"timezone": "Europe/Lisbon"})
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents.logs import log
from agents.tools import Json, Tool, ToolError, ToolFailed, told

if TYPE_CHECKING:
    from mcp import Client, types

CONNECT_SECONDS = 60.0  # `npx` and `uvx` may have to fetch the server first
CLOSE_SECONDS = 10.0
MOST_PAGES = 100
MISSING = "MCP servers need the package mcp: pip install 'selfpager[mcp]'."
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 64  # what the Messages API takes


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is: a command to start, or the address of one that runs."""

    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str | None = None

    def __str__(self) -> str:
        return self.url or " ".join(self.command)


class Connection:
    """A server that is connected."""

    def __init__(
        self, server: Server, client: Client, loop: asyncio.AbstractEventLoop, known: list[types.Tool]
    ) -> None:
        self._server = server
        self._client = client
        self._loop = loop
        self._known = known

    def tools(self, only: tuple[str, ...] = (), **options: Any) -> list[Tool]:
        """Its tools, or those that are named. `options` are those of a `Tool`."""
        names = [tool.name for tool in self._known]
        missing = [name for name in only if name not in names]
        if missing:
            there = ", ".join(names) or "none"
            raise ToolError(f"{self._server} has no tool {missing[0]!r}; there are: {there}.")
        return [self._tool(tool, options) for tool in self._known if not only or tool.name in only]

    def _tool(self, tool: types.Tool, options: dict[str, Any]) -> Tool:
        about = tool.annotations
        harmless = bool(about and (about.read_only_hint or about.idempotent_hint))
        name = _NOT_IN_NAMES.sub("_", tool.name)[:LONGEST_NAME]
        schema = {**tool.input_schema, "type": "object"}
        schema.pop("$schema", None)
        call = partial(self._call, tool.name)
        return Tool(name, tool.description or tool.title or tool.name, schema, call, idempotent=harmless, **options)

    def _call(self, name: str, arguments: Json) -> str | list[Json]:
        try:
            result = asyncio.run_coroutine_threadsafe(self._client.call_tool(name, arguments), self._loop).result()
        except Exception as error:
            raise ToolFailed(f"{self._server} did not answer the call of {name}: {told(error)}") from error
        blocks = [_block(content) for content in result.content]
        if result.is_error:
            raise ToolFailed("\n".join(block.get("text", "") for block in blocks) or f"{name} failed.")
        if all(block["type"] == "text" for block in blocks):
            return "\n".join(block["text"] for block in blocks)
        return blocks


@contextmanager
def connected(server: Server, *, seconds: float = CONNECT_SECONDS) -> Generator[Connection]:
    """Connect and ask what there is; whatever goes wrong is a `ToolError`. The connection ends with the block."""
    opened: Future[Connection] = Future()
    end: list[Callable[[], object]] = []

    async def live() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        end.append(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(seconds):
                    client = await stack.enter_async_context(_client(server))
                    known = await _all_tools(client)
                opened.set_result(Connection(server, client, loop, known))
                await loop.create_future()  # until it is cancelled
        except asyncio.CancelledError:
            opened.cancel()
        except Exception as error:
            if opened.done():
                log.exception("the connection to %s ended", server)
            else:
                opened.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(live()), name=f"mcp {server}", daemon=True)
    thread.start()
    try:
        yield _opened(opened, server, seconds)
    finally:
        for stop in end:
            with suppress(RuntimeError):  # its loop has ended by itself
                stop()
        thread.join(CLOSE_SECONDS)


def _opened(opened: Future[Connection], server: Server, seconds: float) -> Connection:
    try:
        return opened.result(seconds + CLOSE_SECONDS)
    except ImportError:
        raise ToolError(MISSING) from None
    except TimeoutError:
        raise ToolError(f"the MCP server {server} did not answer within {seconds:g} s.") from None
    except Exception as error:
        raise ToolError(f"the MCP server {server} cannot be used: {_first(error)}") from error


def _first(error: BaseException) -> str:
    """What went wrong first, out of the groups in which the transports wrap it."""
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return _first(inner[0]) if inner else told(error)


def _client(server: Server) -> Client:
    from mcp import Client, StdioServerParameters

    if server.url:
        return Client(server.url)
    program, *arguments = server.command
    return Client(StdioServerParameters(command=program, args=arguments, env=dict(server.env)))


async def _all_tools(client: Client) -> list[types.Tool]:
    known: list[types.Tool] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        known += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return known


def _block(content: types.ContentBlock) -> Json:
    """A piece of a result as the Messages API takes it; of what it does not take, the kind and the address."""
    if content.type == "text":
        return {"type": "text", "text": content.text}
    if content.type == "image":
        source = {"type": "base64", "media_type": content.mime_type, "data": content.data}
        return {"type": "image", "source": source}
    if content.type == "resource" and hasattr(content.resource, "text"):
        return {"type": "text", "text": str(getattr(content.resource, "text", ""))}
    uri = getattr(content, "uri", None) or getattr(getattr(content, "resource", None), "uri", "")
    return {"type": "text", "text": f"({content.type} {uri})".replace(" )", ")")}
