"""`init` and `tools`: write a first agent's YAML file, and try its own tools without a model or a key."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import click

from agents.cli.common import FAILED, Shared, agent_file, command
from agents.cli.visible import say
from pager.errors import PagerError, RejectedError, StorageError
from pager.home import check_name
from pager.types import Json

HERE = Path(__file__).parents[1]
READY = HERE / "configs" if (HERE / "configs").is_dir() else HERE.parent / "configs"  # of the wheel, or of the source
KEYS = {"ANTHROPIC_API_KEY": "assistant", "OPENAI_API_KEY": "openai"}  # the first that is set decides
INDENT = 15  # of what a ready agent is for
TOOLS_FILE = "tools.py"
TOOLS = '''\
"""The agent's own tools. Each is a function: its docstring and its type hints are what the agent is told of it.

    selfpager tools {file}                                       list them
    selfpager tools {file} count_words '{{"text": "one two"}}'     run one, without a model
"""


def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: The text, as it is.
    """
    return len(text.split())
'''
TOOLS_SECTION = """
# Functions of tools.py, beside this file. `approve: always` would ask you before each call.
tools:
  - use: tools:count_words
"""


def ready() -> dict[str, Path]:
    """Return the YAML files that come with selfpager, by name."""
    return {path.stem: path for path in sorted(READY.glob("*.yaml"))}


@command("init", home=None, as_name=None)
@click.argument("name", required=False, default="agent")
@click.option("--like", metavar="KIND", help=f"Begin with one of {', '.join(ready())}.")
@click.option("--tools", is_flag=True, help="Write a tools.py, too, with a first function as a tool.")
def init_command(_: Shared, name: str, like: str | None, tools: bool) -> None:
    """Write NAME.yaml, the commented file of a first agent, into this directory. Default: agent.yaml.

    On a terminal it asks which of the ready agents to begin with, unless --like says it. It overwrites nothing.
    """
    name = check_name(name.removesuffix(".yaml"))  # of whoever gave the file's name
    kinds = ready()
    if like is not None and like not in kinds:
        raise click.UsageError(f"there is no ready agent {like!r}; there are {', '.join(kinds)}.")
    file, functions = Path(f"{name}.yaml"), Path(TOOLS_FILE)
    _refuse_existing(name, file, [functions] if tools else [])
    kind = like or _choose(kinds)
    text = _adapted(kinds[kind].read_text(encoding="utf-8"), kind, name, file)
    if tools:
        if re.search(r"(?m)^tools:", text):
            raise RejectedError(f"{kind} has tools already, so --tools is for the others; nothing was written.")
        text += TOOLS_SECTION
    with _removed_if_failed(file, functions if tools else file):
        if tools:
            functions.write_text(TOOLS.format(file=file), encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        for folder in re.findall(r"(?m)^skills: \./(\w+)", text):
            if not Path(folder).exists():
                shutil.copytree(READY / folder, folder)
    say(f"wrote {file}{f' and {functions}' if tools else ''}, an agent like {kind!r}. Next:")
    for line in _next_commands(file, text, tools=tools):
        say(f"  {line}")


@contextmanager
def _removed_if_failed(file: Path, *others: Path) -> Generator[None]:
    """Delete files that could not be written whole. Raises StorageError then."""
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            for path in (file, *others):
                path.unlink(missing_ok=True)
        why = f"{error.strerror or error}. Change to a directory that you may write to, on a disk with free space"
        raise StorageError(f"{file} cannot be written into {Path.cwd()}: {why}.") from None


def _refuse_existing(name: str, file: Path, others: list[Path]) -> None:
    """Raise RejectedError if a file exists that would be written."""
    for path in (file, *others):
        if path.exists():
            way = f"Talk to it: selfpager chat {path}\nOr give another name: selfpager init my-{name}"
            way = way if path == file else "Move it away, or leave out --tools."
            raise RejectedError(f"{path} exists already; nothing was written. {way}")


def _choose(kinds: dict[str, Path]) -> str:
    known = next((kind for key, kind in KEYS.items() if os.environ.get(key)), "assistant")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return known
    columns = shutil.get_terminal_size().columns - 1  # some terminals put the next line break behind a full line
    for kind, path in kinds.items():
        line = f"  {kind:<12} {_purpose(path)}"
        say("\n".join(textwrap.wrap(line, columns, subsequent_indent=" " * INDENT)))
    return click.prompt("begin with", type=click.Choice(list(kinds)), default=known, show_choices=False)


def _purpose(path: Path) -> str:
    """Return the beginning of the comment at a file's top, up to the end of its line or its first statement."""
    lines = path.read_text(encoding="utf-8").splitlines()
    said = (line.removeprefix("#").strip() for line in lines if not line.startswith("# yaml-language-server"))
    return next((re.split(r"[.:](?: |$)", line)[0] for line in said if line), "")


def _adapted(text: str, kind: str, name: str, file: Path) -> str:
    """Return a ready agent's text under another name."""
    text = re.sub(r"\A# yaml-language-server.*\n#\n", "", text)
    text = text.replace(f"configs/{kind}.yaml", str(file))
    text = re.sub(rf"(?m)^name: {kind}\b", f"name: {name}", text)
    return re.sub(rf"(?m)^(#.*selfpager (?:tell|show|view|trace) ){kind}\b", rf"\g<1>{name}", text)


def _next_commands(file: Path, text: str, *, tools: bool) -> list[str]:
    key = "OPENAI_API_KEY" if re.search(r"(?m)^ +provider: openai", text) else "ANTHROPIC_API_KEY"
    is_local = re.search(r"(?m)^ +base_url: .*127\.0\.0\.1", text)  # such a server asks for none
    package = key == "OPENAI_API_KEY" and find_spec("openai") is None
    lines = ["pip install 'selfpager[openai]'"] if package else []
    lines += [] if is_local or os.environ.get(key) else [f"export {key}=...   # your key"]
    if tools:
        lines.append(f"selfpager tools {file}   # try your functions, without a model")
    chats = re.search(rf"selfpager (chat|run) {re.escape(str(file))}.*", text)
    lines.append(chats[0] if chats else f"selfpager chat {file}")
    return lines


@command("tools", home=None, as_name=None)
@agent_file
@click.argument("tool", required=False)
@click.argument("arguments", metavar="[JSON]", required=False, default="{}")
def tools_command(_: Shared, file: Path, tool: str | None, arguments: str) -> int | None:
    """List the tools that AGENT.yaml names, or run TOOL with arguments given as JSON. No model is needed, and no key.

    The tool really runs: what it writes or sends is written or sent.
    """
    from agents.assembly import own_tools
    from agents.config.agent_config import load

    with ExitStack() as opened:
        tools = {each.name: each for each in own_tools(load(file, os.environ), opened)}
        if tool is None:
            for each in tools.values():
                described = each.description.partition("\n")[0]  # a server's tool may have none
                say(f"{each.name}({', '.join(each.schema.get('properties', {}))}): {described}")
            if not tools:
                say(f"{file} names no tools; `selfpager init --tools` shows how it is done.")
            return None
        if tool not in tools:
            raise click.UsageError(f"there is no tool {tool!r}; there are {', '.join(tools) or 'none'}.")
        try:
            given = json.loads(arguments)
        except ValueError as error:
            raise click.UsageError(
                f'the arguments are no JSON ({error}); write them like \'{{"text": "a b"}}\'.'
            ) from None
        if not isinstance(given, dict):
            raise click.UsageError(f"the arguments are {arguments:.60}; give a JSON object by their names.")
        try:
            output, sources = tools[tool].run_limited(cast(Json, given))
        except PagerError as error:
            say(str(error), err=True)
            return FAILED
        except Exception as error:  # noqa: BLE001 - whatever the function raises is what its author wants to see
            say(f"{tool} raised {type(error).__name__}: {error}", err=True)
            return FAILED
    say(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2))
    if sources:
        say(f"untrusted: {', '.join(sorted(sources))}", err=True)
    return None
