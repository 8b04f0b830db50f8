"""One connection to an MCP server, over stdio or streamable HTTP, in an event loop of its own thread. With
`agents.mcp.server` the only files that import `mcp`.

A link lives until it is closed or its server goes; then it is `gone` for good, and whoever needs the server opens
another one (`agents.mcp.client`). What the server writes to its standard error goes to the log.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agents.logs import adopt, log
from agents.tools.functions import Json, describe_error

if TYPE_CHECKING:
    import httpx2
    from mcp import Client, types

CLOSE_SECONDS = 10.0
LAST_LINES_SECONDS = 1.0  # what a server that has ended said last is on its way; one that it started may go on
MOST_PAGES = 100
MOST_LINES = 5  # of what the server said last on its standard error, told when it cannot be used
GONE_CODES = frozenset({-32000, -32600})  # the connection is closed; the session is one that the server does not know


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is: a command to start, or the address of one that runs."""

    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __str__(self) -> str:
        return self.url or " ".join(self.command)


class LinkLost(Exception):
    """The server went while it was asked: what was asked may have been done."""


class Link:
    """A server that is connected. `known` are its tools."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._opened: Future[list[types.Tool]] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._incoming: Any = None
        self._lines = deque[str](maxlen=MOST_LINES)
        self._noting: threading.Thread | None = None
        self._lost = False
        self._thread = threading.Thread(target=self._run, name=f"mcp {server}", daemon=True)
        self.known: list[types.Tool] = []

    def open(self, seconds: float) -> None:
        """Connect and ask what there is; a TimeoutError, an ImportError or whatever went wrong comes out."""
        self._thread.start()
        try:
            self.known = self._opened.result(seconds)
        except BaseException:
            self.close()
            raise

    @property
    def gone(self) -> bool:
        hung_up = self._incoming is not None and self._incoming.statistics().open_send_streams == 0
        return self._lost or hung_up or not self._thread.is_alive()

    @property
    def last_lines(self) -> str:
        """What the server said last on its standard error, or by the status of its answers."""
        return " | ".join(self._lines)

    def call(self, name: str, arguments: Json, seconds: float) -> types.CallToolResult:
        """Call a tool. `LinkLost` when the server goes meanwhile, TimeoutError when it does not answer."""
        from mcp import MCPError

        assert self._loop is not None
        assert self._client is not None

        try:
            asked = asyncio.run_coroutine_threadsafe(self._client.call_tool(name, arguments), self._loop)
        except RuntimeError as error:  # its loop has ended
            raise self._losing(error) from error
        try:
            return asked.result(seconds)
        except TimeoutError:
            asked.cancel()
            self._lost = True
            raise
        except MCPError as error:
            raise (self._losing(error) if error.code in GONE_CODES else error) from error
        except Exception as error:
            raise self._losing(error) from error

    def _losing(self, error: BaseException) -> LinkLost:
        self._lost = True
        return LinkLost(describe_error(error))

    def close(self) -> None:
        """Hang up; a server that was started is ended."""
        task, loop = self._task, self._loop
        if task is not None and loop is not None:
            with suppress(RuntimeError):  # its loop has ended by itself
                loop.call_soon_threadsafe(task.cancel)
        self._thread.join(CLOSE_SECONDS)
        if self._noting is not None:
            self._noting.join(LAST_LINES_SECONDS)

    # in its own thread

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except Exception as error:
            log.exception("the connection to %s ended", self._server)
            if not self._opened.done():
                self._opened.set_exception(error)

    async def _live(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            async with AsyncExitStack() as stack:
                from mcp import Client

                adopt("mcp")
                self._client = await stack.enter_async_context(Client(self._transport()))
                self._opened.set_result(await _all_tools(self._client))
                await self._loop.create_future()  # until it is cancelled
        except asyncio.CancelledError:
            self._opened.cancel()

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Any]:
        if self._server.url:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            patience = httpx2.Timeout(30.0, read=300.0)
            async with (
                httpx2.AsyncClient(
                    headers=dict(self._server.headers), timeout=patience, event_hooks={"response": [self._note_status]}
                ) as http,
                streamable_http_client(self._server.url, http_client=http) as streams,
            ):
                yield streams
            return
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        program, *arguments = self._server.command
        known = StdioServerParameters(command=program, args=arguments, env=dict(self._server.env))
        written, end = os.pipe()
        self._noting = threading.Thread(target=self._note, args=(written,), daemon=True)
        self._noting.start()
        with os.fdopen(end, "w") as errors:
            async with stdio_client(known, errlog=errors) as (incoming, outgoing):
                self._incoming = incoming
                yield incoming, outgoing

    async def _note_status(self, response: httpx2.Response) -> None:
        if response.is_error:  # the library says only that there was one
            self._lines.append(f"{response.status_code} {response.reason_phrase}")

    def _note(self, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._lines.append(line.strip())
                log.info("%s: %s", self._server, line.rstrip())


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


def first(error: BaseException) -> str:
    """What went wrong first, out of the groups in which the transports wrap it."""
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return first(inner[0]) if inner else describe_error(error)
