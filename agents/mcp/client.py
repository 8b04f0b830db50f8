"""The tools of MCP servers, for an agent: with the names, descriptions and schemas that the server gives them.

The connection is opened with the agent. If the server goes away, the next call of one of its tools connects again. A
call that was interrupted is repeated once if the server says that this does no harm; otherwise the model gets an error
which says that the call may have run.

The Messages API takes only an object as an input schema, without oneOf, anyOf, allOf or $ref at its root and with plain
names of properties. Any other schema is sent unchanged one level down: the tool then has one argument, `arguments`.

    >>> with connected(ServerConfig(command=("mcp-server-time",))) as server:
    ...     server.tools()[0].run({"timezone": "Europe/Lisbon"})
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

from agents.config.tool_sections import ServerConfig
from agents.mcp.link import Link, LinkLostError, first_cause
from agents.tools import functions
from agents.tools.functions import Json, Output, Tool, ToolCallError, ToolConfigError, describe_error
from pager import one_line

if TYPE_CHECKING:
    from mcp import types

CONNECT_SECONDS = 60.0  # `npx` and `uvx` may have to fetch the server first
MISSING = "MCP servers need the package mcp: pip install 'selfpager[mcp]'."
MAX_NAME_CHARS = 64
WRAPPED = "arguments"
NOT_AT_ROOT = frozenset({"oneOf", "anyOf", "allOf", "$ref"})
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_PROPERTY_NAME = re.compile(rf"[a-zA-Z0-9_.-]{{1,{MAX_NAME_CHARS}}}")


class Connection:
    """A server and the present link to it."""

    def __init__(self, server: ServerConfig, seconds: float) -> None:
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
            existing = one_line(", ".join(names)) or "none"
            raise ToolConfigError(f"{self._server} has no tool {missing[0]!r}; there are: {existing}.")
        return [self._tool(tool, options) for tool in self._tools if not only or tool.name in only]

    def close(self) -> None:
        """Disconnect."""
        self._link.close()

    def _tool(self, tool: types.Tool, options: dict[str, Any]) -> Tool:
        hints = tool.annotations
        repeatable = bool(hints and (hints.read_only_hint or hints.idempotent_hint))
        name = _NOT_IN_NAMES.sub("_", tool.name)[:MAX_NAME_CHARS] or "_"
        schema, is_wrapped = api_schema(tool.input_schema)
        description = tool.description or tool.title or tool.name
        seconds = options.get("timeout_seconds", functions.DEFAULT_TIMEOUT_SECONDS)

        def call(arguments: Json) -> Output:
            given = arguments.get(WRAPPED, arguments) if is_wrapped else arguments
            return self._call(tool.name, given, repeatable=repeatable, seconds=seconds)

        return Tool(name, description, schema, call, idempotent=repeatable, **options)

    def _call(self, name: str, arguments: Json, *, repeatable: bool, seconds: float) -> Output:
        try:
            with self._reconnecting:
                if self._link.gone:
                    self._link.close()
                    self._link = _open(self._server, self._seconds)
                link = self._link
            return _output(name, link.call(name, clean(arguments), seconds))
        except ToolConfigError as error:
            text = f"{error} The call was not made; the next one tries to connect again."
            raise ToolCallError(text) from None
        except LinkLostError as error:
            if repeatable:
                return self._call(name, arguments, repeatable=False, seconds=seconds)
            way = "Check before you call it again; the next call connects again"
            what = f"{self._server} went away during the call of {name}, which may have run ({error})"
            raise ToolCallError(f"{what}. {way}.") from None
        except TimeoutError:
            raise ToolCallError(f"{name} did not finish within {seconds:g} s; it may still be running.") from None
        except ToolCallError as error:  # the server's own words
            raise ToolCallError(self._server.redacted(str(error))) from None
        except Exception as error:  # noqa: BLE001 - whatever it is, it may quote secrets, its chain too
            why = self._server.redacted(describe_error(error))
            raise ToolCallError(f"{self._server} refused the call of {name}: {why}") from None


def connected(server: ServerConfig, *, seconds: float = CONNECT_SECONDS) -> closing[Connection]:
    """Connect to a server until the `with` block ends. Raises ToolConfigError if it cannot be used."""
    return closing(Connection(server, seconds))


def _open(server: ServerConfig, seconds: float) -> Link:
    link = Link(server)
    try:
        link.open(seconds)
    except ImportError:
        raise ToolConfigError(MISSING) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, it may quote secrets, its chain too
        slow, why = isinstance(error, TimeoutError), server.redacted(first_cause(error))
        what = f"did not answer within {seconds:g} s" if slow else f"cannot be used: {why}"
        output = f"; its last output: {link.last_lines}" if link.last_lines else ""
        # Its cause is in the log, without secrets.
        raise ToolConfigError(f"the MCP server {server} {what}{output}.") from None
    return link


def api_schema(schema: Json) -> tuple[Json, bool]:
    """Return an input schema as the Messages API takes it, and True if it had to be moved below `WRAPPED`."""
    plain = {key: value for key, value in schema.items() if key not in ("$schema", "$id", "type")}
    names: Json = plain.get("properties") or {}
    if NOT_AT_ROOT.isdisjoint(plain) and all(map(_PROPERTY_NAME.fullmatch, names)):
        return {"type": "object", **plain}, False
    references = re.compile(r'"\$ref": "#(?=[/"])')  # to the root, which is one level down now
    text = references.sub(f'"$ref": "#/properties/{WRAPPED}', json.dumps({"type": "object", **plain}))
    return {"type": "object", "properties": {WRAPPED: json.loads(text)}, "required": [WRAPPED]}, True


def _output(name: str, result: types.CallToolResult) -> Output:
    """Return a tool's result as content of the Messages API; what that does not take is replaced by its kind and
    address. Raise ToolCallError with the tool's own text if it is an error."""
    blocks = [_block(content) for content in result.content]
    if not blocks and result.structured_content is not None:
        blocks = [{"type": "text", "text": json.dumps(result.structured_content, ensure_ascii=False)}]
    if result.is_error:
        raise ToolCallError("\n".join(block["text"] for block in blocks if "text" in block) or f"{name} failed.")
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks) or "done"
    return blocks


def clean(value: Any) -> Any:
    """Return a JSON value without lone surrogates, which no connection can carry."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _block(content: types.ContentBlock) -> Json:
    if content.type == "image" and content.mime_type in IMAGES:
        source = {"type": "base64", "media_type": content.mime_type, "data": content.data}
        return {"type": "image", "source": source}
    inner = getattr(content, "resource", content)  # a text, or an embedded text
    words = [content.type, getattr(content, "name", ""), getattr(inner, "mime_type", ""), getattr(inner, "uri", "")]
    text = getattr(inner, "text", None)
    return {"type": "text", "text": f"({' '.join(str(word) for word in words if word)})" if text is None else text}
