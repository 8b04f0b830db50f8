"""The tools of MCP servers, for an agent: with the names, descriptions and schemas that the server gives them.

The connection is opened with the agent. If the server goes away, the next call of one of its tools connects again. A
call that was interrupted is repeated once if the server says that this does no harm; otherwise the model gets an error
which says that the call may have run.

    >>> with connected(Server(command=("mcp-server-time",))) as server:
    ...     server.tools()[0].run({"timezone": "Europe/Lisbon"})
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agents.mcp import results as mcp_results
from agents.mcp import schemas as mcp_schemas
from agents.mcp.link import Link, LinkLostError, Server, first_cause
from agents.tools.functions import (
    DEFAULT_TIMEOUT_SECONDS,
    Json,
    Output,
    Tool,
    ToolCallError,
    ToolConfigError,
    describe_error,
)

if TYPE_CHECKING:
    from mcp import types

CONNECT_SECONDS = 60.0  # `npx` and `uvx` may have to fetch the server first
MISSING = "MCP servers need the package mcp: pip install 'selfpager[mcp]'."
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class Connection:
    """A server and the present link to it."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._seconds = seconds
        self._reconnecting = threading.Lock()  # so that two calls do not both reconnect
        self._link = _open(server, seconds)
        self._tools = self._link.tools

    def tools(self, only: tuple[str, ...] = (), **options: Any) -> list[Tool]:
        """Return all tools of the server, or those named in `only`. `options` are those of `Tool`."""
        names = [tool.name for tool in self._tools]
        missing = [name for name in only if name not in names]
        if missing:
            raise ToolConfigError(
                f"{self._server} has no tool {missing[0]!r}; there are: {', '.join(names) or 'none'}."
            )
        return [self._tool(tool, options) for tool in self._tools if not only or tool.name in only]

    def close(self) -> None:
        """Disconnect."""
        self._link.close()

    def _tool(self, tool: types.Tool, options: dict[str, Any]) -> Tool:
        hints = tool.annotations
        repeatable = bool(hints and (hints.read_only_hint or hints.idempotent_hint))
        name = _NOT_IN_NAMES.sub("_", tool.name)[: mcp_schemas.MAX_NAME_CHARS] or "_"
        flat, alternatives = mcp_schemas.for_api(tool.input_schema)
        schema, renamed = mcp_schemas.with_plain_names(flat)
        description = " ".join(filter(None, (tool.description or tool.title or tool.name, alternatives)))
        seconds = options.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)

        def call(arguments: Json) -> Output:
            own_names = {renamed.get(name, name): value for name, value in arguments.items()}
            return self._call(tool.name, own_names, repeatable=repeatable, seconds=seconds)

        return Tool(name, description, schema, call, idempotent=repeatable, **options)

    def _call(self, name: str, arguments: Json, *, repeatable: bool, seconds: float) -> Output:
        try:
            return mcp_results.output(name, self._connected_link().call(name, mcp_results.clean(arguments), seconds))
        except LinkLostError as error:
            if repeatable:
                return self._call(name, arguments, repeatable=False, seconds=seconds)
            raise ToolCallError(
                f"{self._server} went away during the call of {name}, which may have run ({error}). Check before you "
                "call it again; the next call connects again."
            ) from error
        except TimeoutError:
            raise ToolCallError(f"{name} did not finish within {seconds:g} s; it may still be running.") from None
        except ToolCallError:
            raise
        except Exception as error:
            raise ToolCallError(f"{self._server} refused the call of {name}: {describe_error(error)}") from error

    def _connected_link(self) -> Link:
        with self._reconnecting:
            if self._link.gone:
                self._link.close()
                try:
                    self._link = _open(self._server, self._seconds)
                except ToolConfigError as error:
                    raise ToolCallError(
                        f"{error} The call was not made; the next one tries to connect again."
                    ) from error
            return self._link


@contextmanager
def connected(server: Server, *, seconds: float = CONNECT_SECONDS) -> Generator[Connection]:
    """Connect to a server until the block ends. Raises ToolConfigError if it cannot be used."""
    connection = Connection(server, seconds)
    try:
        yield connection
    finally:
        connection.close()


def _open(server: Server, seconds: float) -> Link:
    link = Link(server)
    try:
        link.open(seconds)
    except ImportError:
        raise ToolConfigError(MISSING) from None
    except TimeoutError:
        raise ToolConfigError(
            f"the MCP server {server} did not answer within {seconds:g} s{_last_output(link)}."
        ) from None
    except Exception as error:
        raise ToolConfigError(
            f"the MCP server {server} cannot be used: {first_cause(error)}{_last_output(link)}."
        ) from error
    return link


def _last_output(link: Link) -> str:
    return f"; its last output: {link.last_lines}" if link.last_lines else ""
