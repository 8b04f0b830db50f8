"""Tools of MCP servers in an agent: named as the server names them, with its descriptions and schemas.

A server is connected when the agent is opened. One that goes is connected again when the next of its tools is called,
once for each call. A call that its going cut off is made again only if the server says that this does no harm;
otherwise the model is told that it may have run.

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
from agents.mcp.link import Link, LinkLost, Server, first
from agents.tools.functions import (
    DEFAULT_TIMEOUT_SECONDS,
    Json,
    Output,
    Tool,
    ToolCallError,
    ToolConfigError,
    describe_error,
)
from pager.blocks import clean

if TYPE_CHECKING:
    from mcp import types

CONNECT_SECONDS = 60.0  # `npx` and `uvx` may have to fetch the server first
MISSING = "MCP servers need the package mcp: pip install 'selfpager[mcp]'."
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class Connection:
    """A server, and the link to it that is in use."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._seconds = seconds
        self._one_at_a_time = threading.Lock()  # two calls that find it gone connect once
        self._link = _opened(server, seconds)
        self._known = self._link.known

    def tools(self, only: tuple[str, ...] = (), **options: Any) -> list[Tool]:
        """Its tools, or those that are named. `options` are those of a `Tool`."""
        names = [tool.name for tool in self._known]
        missing = [name for name in only if name not in names]
        if missing:
            there = ", ".join(names) or "none"
            raise ToolConfigError(f"{self._server} has no tool {missing[0]!r}; there are: {there}.")
        return [self._tool(tool, options) for tool in self._known if not only or tool.name in only]

    def close(self) -> None:
        self._link.close()

    def _tool(self, tool: types.Tool, options: dict[str, Any]) -> Tool:
        about = tool.annotations
        harmless = bool(about and (about.read_only_hint or about.idempotent_hint))
        name = _NOT_IN_NAMES.sub("_", tool.name)[: mcp_schemas.LONGEST_NAME] or "_"
        flat, ways = mcp_schemas.for_api(tool.input_schema)
        schema, renamed = mcp_schemas.with_plain_names(flat)
        description = " ".join(filter(None, (tool.description or tool.title or tool.name, ways)))
        seconds = options.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)

        def call(arguments: Json) -> Output:
            given = {renamed.get(each, each): value for each, value in arguments.items()}
            return self._call(tool.name, given, again=harmless, seconds=seconds)

        return Tool(name, description, schema, call, idempotent=harmless, **options)

    def _call(self, name: str, arguments: Json, *, again: bool, seconds: float) -> Output:
        try:
            return mcp_results.output(name, self._live().call(name, clean(arguments), seconds))
        except LinkLost as error:
            if again:
                return self._call(name, arguments, again=False, seconds=seconds)
            raise ToolCallError(
                f"{self._server} went away during the call of {name}, which may have run ({error}). Check before you "
                "call it again; the next call connects to it anew."
            ) from error
        except TimeoutError:
            raise ToolCallError(f"{name} did not finish within {seconds:g} s; it may still be running.") from None
        except ToolCallError:
            raise
        except Exception as error:
            raise ToolCallError(f"{self._server} refused the call of {name}: {describe_error(error)}") from error

    def _live(self) -> Link:
        with self._one_at_a_time:
            if self._link.gone:
                self._link.close()
                try:
                    self._link = _opened(self._server, self._seconds)
                except ToolConfigError as error:
                    raise ToolCallError(
                        f"{error} The call was not made; a later one tries to connect again."
                    ) from error
            return self._link


@contextmanager
def connected(server: Server, *, seconds: float = CONNECT_SECONDS) -> Generator[Connection]:
    """Connect and ask what there is; whatever goes wrong is a `ToolConfigError`. The connection ends with the block."""
    connection = Connection(server, seconds)
    try:
        yield connection
    finally:
        connection.close()


def _opened(server: Server, seconds: float) -> Link:
    link = Link(server)
    try:
        link.open(seconds)
    except ImportError:
        raise ToolConfigError(MISSING) from None
    except TimeoutError:
        raise ToolConfigError(f"the MCP server {server} did not answer within {seconds:g} s{_said(link)}.") from None
    except Exception as error:
        raise ToolConfigError(f"the MCP server {server} cannot be used: {first(error)}{_said(link)}.") from error
    return link


def _said(link: Link) -> str:
    return f"; it said: {link.last_lines}" if link.last_lines else ""
