"""The tools in an agent's YAML file: functions, MCP servers, built-in tools, the provider's own, and other agents."""

import os
import re
from itertools import pairwise
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from agents.config.error_messages import alternative
from agents.config.field_types import Flag, Function, HostAndPort, PositiveNumber, Text, Url
from agents.config.sections import Section
from pager.errors import brief
from pager.safety.redaction import HIDDEN, SHORTEST_PIECE, public_address, redacted

Trust = Literal["trusted", "untrusted"]


class ToolSection(Section):
    """An entry under `tools`."""

    kind: ClassVar[str]  # the key that says which tool it is


class ToolConfig(ToolSection):
    """Options of every tool that runs here."""

    approve: Literal["never", "always"] = "never"
    """always: a person is asked before each call."""
    timeout_seconds: PositiveNumber = 120.0
    """A call that takes longer is answered with an error."""


class FunctionTool(ToolConfig):
    """A Python function. Its type hints and docstring tell the agent how to call it."""

    kind = "use"
    use: Function
    """The function, as 'package.module:function'."""
    idempotent: Flag = False
    """Running it twice does no harm, so a call that a crash cut off is run again."""
    trust: Trust = "trusted"
    """untrusted: its results may be wrong on purpose, so what the agent writes after it has read one is labelled."""


_STARTERS = re.compile(r"npx|uvx|uv|pipx|run|node|bunx?|deno|python[\d.]*(\.exe)?")  # they start what is named next
_OPTION = re.compile(r"(?s)--?[\w.-]+(=.*)?")
_SHORT_OPTION = re.compile(r"(?s)^(-[a-zA-Z])(.+)")
_PLAIN = frozenset({"-m", "-q", "-y", "--yes"})  # options behind which a program is named


class ServerConfig(Section):
    """An MCP server: a command to start, or an address."""

    command: Annotated[tuple[Text, ...], Field(strict=False, repr=False)] = ()
    """The program and its arguments."""
    env: dict[str, str] = Field(default={}, repr=False)
    """Environment variables for the command."""
    url: Url | None = Field(default=None, repr=False)
    """The address of a server that runs already."""
    headers: dict[str, str] = Field(default={}, repr=False)
    """Sent with every request to the url; secrets best as ${VAR}."""
    name: Text | None = None
    """The server's name in sources, as in mcp:github. Default: the host of the url, or the name of the program."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either 'command: [program, argument, ...]' or 'url: http://...'.")
        if self.env and self.url:
            raise ValueError("has an env for a server at a url; env belongs to a command.")
        if self.headers and self.command:
            raise ValueError("has headers for a command; headers belong to a url.")
        return self

    @property
    def source(self) -> str:
        """Return the source of what this server says: without arguments and passwords."""
        if self.name or self.url:
            return f"mcp:{self.name or urlsplit(self.url or '').hostname}"
        # What follows another option may be secret.
        words = [word for option, word in pairwise(("", *self.command)) if option in _PLAIN or option[:1] != "-"]
        programs = [PurePath(word).name for word in words if word[:1] != "-"]
        return f"mcp:{next((each for each in programs if not _STARTERS.fullmatch(each)), self.program)}"

    def __str__(self) -> str:
        """Return what errors and logs call it: the host, or the name of the program."""
        return re.split("[/?#]", public_address(self.url).partition("://")[2])[0] if self.url else self.program

    @property
    def program(self) -> str:
        """Return the name of the program, without its directory."""
        return PurePath(self.command[0]).name

    @property
    def secrets(self) -> list[str]:
        """Return whatever may be secret: headers, variables, arguments that are no options or files, and the url, of
        which the host is none."""
        words = [word for option, word in pairwise(self.command) if option != "-m" and not _exists(word)]
        found = [value for word in words for value in _values(word)]
        tokens = [value.split()[-1] for value in self.headers.values() if value.strip()]  # behind Bearer, or the like
        return [*found, *self.env.values(), *self.headers.values(), *tokens, self.url or ""]

    def redacted(self, text: str) -> str:
        """Return a text from this server, or about it, without secrets."""
        paths = [path for value in self.env.values() for path in value.split(os.pathsep) if _exists(path)]
        return redacted(text, self.secrets, keep=(*self.command[:1], self.source, *paths))

    @property
    def public_command(self) -> list[str]:
        """Return the command with its secrets hidden."""
        hidden = set(self.secrets)
        shown = [HIDDEN if word in hidden else _SHORT_OPTION.sub(rf"\1{HIDDEN}", word) for word in self.command[1:]]
        return [*self.command[:1], *(re.sub("(?s)(?<==).+", HIDDEN, word) for word in shown)]


def _values(word: str) -> list[str]:
    """Return what may be secret in an argument: VALUE of --option=VALUE and -oVALUE, else all of it."""
    if short := _SHORT_OPTION.fullmatch(word):
        return [
            value for value in (short[2], word.partition("=")[2]) if len(value) >= SHORTEST_PIECE or not value.isalpha()
        ]
    name, _, value = word.partition("=")
    return [value] if _OPTION.fullmatch(word) else [word] if "://" in name else [word, value]


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - a Path raises for a long text


class ServerTools(ToolConfig):
    """The tools of an MCP server."""

    kind = "mcp"
    mcp: ServerConfig
    """The MCP server: {command: [...], env: {...}} or {url: ...}. Needs selfpager[mcp]."""
    only: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    """The names of those of its tools that the agent gets. Default: all."""
    trust: Trust = "untrusted"
    """untrusted: what the agent writes after it has read one of its results is labelled with the server's name."""


class FilesTool(ToolConfig):
    """Files below a directory: list_files, read_file, search_files, and with `write` write_file and edit_file."""

    kind = "builtin"
    builtin: Literal["files"]
    """files: read, search and write files."""
    root: Text
    """The directory, relative to this YAML file. Nothing outside of it is reachable."""
    write: Flag = False
    """true: the agent also writes and edits files there."""
    trust: Trust = "untrusted"
    """untrusted: what the agent writes after it has read a file is labelled with its path."""


class WebTool(ToolConfig):
    """Pages of the web as Markdown: fetch_page."""

    kind = "builtin"
    builtin: Literal["web"]
    """web: fetch pages."""
    allow_private: Annotated[tuple[HostAndPort, ...], Field(strict=False)] = ()
    """Hosts of this machine or of a private network that may be fetched all the same, with any port or with one:
    [intranet.example, "localhost:8080"]."""
    timeout_seconds: PositiveNumber = 60.0
    """A page that takes longer, with all redirects, is answered with an error."""


ANY = "*"  # at the end of a pattern of `allow`: any words


class ShellTool(ToolConfig):
    """Commands in a directory: run_command."""

    kind = "builtin"
    builtin: Literal["shell"]
    """shell: run commands."""
    directory: Text = "."
    """The directory in which commands run, relative to this YAML file."""
    trust: Trust = "untrusted"
    """untrusted: a command may print what others wrote, so what the agent writes after it has read that is labelled."""
    approve: Literal["never", "always"] = "always"
    """always: a person is asked before each command that `allow` does not name; never: no command is asked for."""
    allow: Annotated[tuple[Annotated[tuple[Text, ...], Field(strict=False)], ...], Field(strict=False)] = ()
    """Commands that run unasked, as lists of words: [[git, status], [pytest, "*"]]. "*" at the end means any words, and
    stands nowhere else. Such a command runs without a shell. A program that runs files of the directory, such as
    pytest, runs what the agent wrote there, too."""
    sandbox: Literal["if_available", "required", "off"] = "if_available"
    """Run commands inside of bubblewrap. if_available: where it works; required: nowhere else. Without it a command can
    do what you can: read your files, use the network, and end the process that would end it."""
    network: Flag = False
    """true: commands in the sandbox reach the network. Without a sandbox they always do."""

    @field_validator("allow")
    @classmethod
    def _any_at_the_end(cls, allow: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        for pattern in allow:
            shown = f"[{', '.join(pattern)}]"
            if not pattern:
                raise ValueError("has an empty list of words, which no command has; leave it out.")
            if ANY in pattern[:-1]:
                raise ValueError(f'{shown}: "*" stands for any words at the end of a list only; write the words there.')
        return allow


_DATED = re.compile(r"[a-z][a-z0-9_]*_\d{8}")
_RUN_HERE = {
    "memory": "it is 'memory: {tools: anthropic}'",
    "bash": "'builtin: shell' runs commands",
    "text_editor": "'builtin: files' with 'write: true' edits files",
    "computer": "there is none for that yet",
    "browser": "'builtin: web' fetches pages",
}


class ProviderTool(ToolSection):
    """A tool that the model's provider runs on its own servers."""

    kind = "server"
    server: Text
    """The type of the tool, such as web_search_20250305."""
    options: dict[str, Any] = Field(default={})
    """More keys of its definition, such as {max_uses: 5}."""

    @field_validator("server")
    @classmethod
    def _runs_there(cls, server: str) -> str:
        if not _DATED.fullmatch(server):
            raise ValueError(
                f"{brief(server, 80)} names no tool of a provider; write its type, as web_search_20250305."
            )
        if here := next((name for name in _RUN_HERE if server.startswith(name)), None):
            raise ValueError(f"{server} is a tool that runs here, not on the provider's servers; {_RUN_HERE[here]}.")
        return server

    @field_validator("options")
    @classmethod
    def _no_other_tool(cls, options: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted({"type", "name", "cache_control"} & set(options)):
            raise ValueError(f"has {', '.join(taken)}, which cannot be set here; leave it out.")
        return options

    @property
    def definition(self) -> dict[str, Any]:
        """Return the definition that a request carries. The provider has given each such tool one name."""
        return {"type": self.server, "name": self.server.rpartition("_")[0], **self.options}


class HelperTool(ToolConfig):
    """Another agent as a tool: it has a window of its own, and answers with its result."""

    kind = "agent"
    agent: Text
    """The YAML file of the other agent, relative to this one."""
    description: Text | None = None
    """What this agent is told of its helper. Default: the beginning of the helper's instructions."""
    archive: Literal["own", "read"] = "own"
    """own: the helper has only what it finds itself; read: it also searches the archive of this agent."""
    timeout_seconds: PositiveNumber = 3600.0
    """A helper that takes longer is stopped at its next step, and the call is answered with an error."""


_KINDS: dict[str, type[ToolSection]] = {
    "use": FunctionTool, "mcp": ServerTools, "server": ProviderTool, "agent": HelperTool
}  # fmt: skip
_BUILTINS: dict[str, type[ToolSection]] = {"files": FilesTool, "web": WebTool, "shell": ShellTool}
_NAMES = {kind: name for name, kind in {**_KINDS, **_BUILTINS}.items()}


def _tool_kind(value: Any) -> str | None:
    if not isinstance(value, dict):
        return alternative(_NAMES.get(cast("type[ToolSection]", type(value)), "use"))
    written = cast("dict[str, Any]", value)
    kinds = [kind for kind in (*_KINDS, "builtin") if kind in written]
    if kinds == ["builtin"]:
        kinds = [name for name in _BUILTINS if name == written["builtin"]]
    return alternative(kinds[0]) if len(kinds) == 1 else None


Tool = Annotated[
    Annotated[FunctionTool, Tag(alternative("use"))]
    | Annotated[ServerTools, Tag(alternative("mcp"))]
    | Annotated[FilesTool, Tag(alternative("files"))]
    | Annotated[WebTool, Tag(alternative("web"))]
    | Annotated[ShellTool, Tag(alternative("shell"))]
    | Annotated[ProviderTool, Tag(alternative("server"))]
    | Annotated[HelperTool, Tag(alternative("agent"))],
    Discriminator(
        _tool_kind,
        custom_error_type="one_of",
        custom_error_message="needs one of 'use: package.module:function', 'mcp: {...}', 'builtin: files' (or web, or "
        "shell), 'server: web_search_20250305' and 'agent: other.yaml'.",
    ),
]
