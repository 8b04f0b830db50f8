"""One connection to an MCP server, over stdio or streamable HTTP. Its event loop runs in a thread of its own.

A link is used until it is closed or its server goes away. It never reconnects: `agents.mcp.client` opens another one.
What the server writes to its standard error goes to the log, and so does what the library logs, both without secrets.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import traceback
from collections import deque
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, cast

from agents.config.tool_sections import ServerConfig
from agents.logs import log
from agents.tools.functions import Json, describe_error
from pager.errors import PagerError

if TYPE_CHECKING:
    import httpx2
    from mcp import Client, types

CLOSE_SECONDS = 10.0
LAST_LINES_SECONDS = 1.0  # to read the last output of a server that has ended; its own children may keep the pipe open
MAX_PAGES = 100  # of its list of tools
MAX_LAST_LINES = 5  # of its standard error, quoted when it cannot be used
GONE_CODES = frozenset({-32000, -32600})  # connection closed; unknown session


class _LibraryLog(logging.Handler):
    """Passes on what the library logs in the thread of a link. It quotes what the server sent."""

    servers: ClassVar[dict[int | None, ServerConfig]] = {}  # by their link's thread

    def emit(self, record: logging.LogRecord) -> None:
        if server := self.servers.get(record.thread):
            log.log(record.levelno, "%s: %s", server, server.redacted(self.format(record)))


for _name in ("mcp", "client"):  # the second is what its session calls its logger
    logging.getLogger(_name).addHandler(_LibraryLog())


class LinkLostError(PagerError):
    """The server went away during a call, which may have run."""


class Link:
    """A connected server. `tools` are those that it offers."""

    def __init__(self, server: ServerConfig) -> None:
        self._server = server
        self._opened: Future[list[types.Tool]] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._incoming: Any = None
        self._lines = deque[str](maxlen=MAX_LAST_LINES)
        self._log_thread: threading.Thread | None = None
        self._lost = False
        self._thread = threading.Thread(target=self._run, name=f"mcp {server}", daemon=True)
        self.tools: list[types.Tool] = []

    def open(self, seconds: float) -> None:
        """Connect and list the tools. Raises TimeoutError, ImportError, or what the transport raised."""
        self._thread.start()
        try:
            self.tools = self._opened.result(seconds)
        except BaseException:
            self.close()
            raise

    @property
    def gone(self) -> bool:
        """Return True if the server went away or a call was given up: nothing can be called any more."""
        hung_up = self._incoming is not None and self._incoming.statistics().open_send_streams == 0
        return self._lost or hung_up or not self._thread.is_alive()

    @property
    def last_lines(self) -> str:
        """Return the last lines of the server's standard error, or the last HTTP errors."""
        return " | ".join(self._lines)

    def call(self, name: str, arguments: Json, seconds: float) -> types.CallToolResult:
        """Call a tool. Raises LinkLostError if the server goes away meanwhile, TimeoutError if it does not answer."""
        from mcp import MCPError

        assert self._loop is not None
        assert self._client is not None

        try:
            future = asyncio.run_coroutine_threadsafe(self._client.call_tool(name, arguments), self._loop)
        except RuntimeError as error:  # its loop has ended
            raise self._lost_by(error) from error
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            self._lost = True
            raise
        except MCPError as error:
            raise (self._lost_by(error) if error.code in GONE_CODES else error) from error
        except Exception as error:
            raise self._lost_by(error) from error

    def _lost_by(self, error: BaseException) -> LinkLostError:
        self._lost = True
        return LinkLostError(self._server.redacted(describe_error(error)))

    def close(self) -> None:
        """Disconnect, and end a server that was started by this link."""
        task, loop = self._task, self._loop
        if task is not None and loop is not None:
            with suppress(RuntimeError):  # its loop has ended by itself
                loop.call_soon_threadsafe(task.cancel)
        self._thread.join(CLOSE_SECONDS)
        if self._log_thread is not None:
            self._log_thread.join(LAST_LINES_SECONDS)

    def _run(self) -> None:
        _LibraryLog.servers[threading.get_ident()] = self._server
        try:
            asyncio.run(self._live())
        except Exception as error:  # noqa: BLE001 - it is logged, and raised by `open`
            trace = self._server.redacted("".join(traceback.format_exception(error)))
            log.error("the connection to %s ended\n%s", self._server, trace)
            if not self._opened.done():
                self._opened.set_exception(error)
        finally:
            del _LibraryLog.servers[threading.get_ident()]

    async def _live(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            async with AsyncExitStack() as stack:
                from mcp import Client, types

                self._client = await stack.enter_async_context(Client(self._transport()))
                self._client.session.validate_tool_result = _accept
                tools, cursor = list[types.Tool](), None
                for _ in range(MAX_PAGES):
                    page = await self._client.list_tools(cursor=cursor)
                    tools += page.tools
                    if not (cursor := page.next_cursor):
                        break
                self._opened.set_result(tools)
                await self._loop.create_future()  # until it is cancelled
        except asyncio.CancelledError:
            self._opened.cancel()

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Any]:
        if self._server.url:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            async def add_status(response: httpx2.Response) -> None:
                if response.is_error:  # the library reports only that there was an error
                    self._lines.append(f"{response.status_code} {response.reason_phrase}")

            timeout, hooks = httpx2.Timeout(30.0, read=300.0), {"response": [add_status]}
            headers = dict(self._server.headers)
            async with (
                httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as http,
                streamable_http_client(self._server.url, http_client=http) as streams,
            ):
                yield streams
            return
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        program, *arguments = self._server.command
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(self._server.env))
        read_end, write_end = os.pipe()

        def log_lines() -> None:
            with os.fdopen(read_end, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    text = self._server.redacted(line.strip())
                    self._lines.append(text)
                    log.info("%s: %s", self._server, text)

        self._log_thread = threading.Thread(target=log_lines, daemon=True)
        self._log_thread.start()
        with os.fdopen(write_end, "w") as errors:
            async with stdio_client(parameters, errlog=errors) as (incoming, outgoing):
                self._incoming = incoming
                yield incoming, outgoing


async def _accept(name: str, result: types.CallToolResult) -> None:
    """Do not check a result against its tool's own schema: a regular expression of the server's in it could hold every
    thread of this process for ever, and its structure is not used."""


def first_cause(error: BaseException) -> str:
    """Return the text of the first error in the exception groups in which the transports wrap it."""
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return first_cause(inner[0]) if inner else describe_error(error)
