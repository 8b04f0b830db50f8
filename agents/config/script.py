"""Read the script of `provider: scripted`: a YAML file of entries, or a function that is named `module:function`.

```yaml
- when: order (\\d+)                # a regular expression; the entry answers a message in which it is found
  call: {fetch_order: {number: 17}}
- say: "It says: {{result}}"        # what the call before answered; {{result.2}} is the second call's result
- otherwise: true                   # answers as often as needed when no other one does; may have a `when`, too
  say: I do not know about {{said}}.
```

A mistake in it is a ConfigError with file, line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, cast

from agents.config import yaml_file
from agents.config.errors import ConfigError, Place, Problem
from agents.models.scripted import PLACEHOLDER, QUOTED, Entries, Entry, FunctionScript, Script
from agents.tools import functions
from agents.tools.functions import ToolConfigError
from pager import blocks
from pager.types import Json

KEYS = ("when", "say", "call", "otherwise")
NO_REPLY = "this entry has no reply. Give it 'say: text', 'call: {tool: {argument: value}}', or both."
At = Callable[..., Place]


def load(script: str, named_at: Place) -> Script:
    """Return the script that an agent's file names at this place. Raise ConfigError with all that is wrong in it."""
    folder = named_at.file.parent.absolute()
    if ":" in script:
        try:
            return FunctionScript(script, functions.find(script, folder, "script"))
        except ToolConfigError as error:
            raise ConfigError([Problem(named_at, str(error))]) from error
    file = named_at.file.parent / script
    document = yaml_file.read_list(file, named_at)

    def at(*path: str | int) -> Place:
        return document.at(*path).value

    problems: list[Problem] = []
    entries = [_entry(item, at, index, problems) for index, item in enumerate(document.data)]
    last = next((index for index in reversed(range(len(entries))) if entries[index].otherwise), None)
    if last is not None and entries[last].calls:
        message = "the last 'otherwise' entry answers with a call, and none its result. Add one with 'say'."
        problems.append(Problem(at(last, "call"), message))
    if problems:
        raise ConfigError(problems)
    return Entries(str(file), entries)


def check_tools(script: Script, tools: Iterable[str]) -> None:
    """Raise ConfigError for calls of tools that the agent does not have."""
    tools = list(tools)
    if not isinstance(script, Entries):
        return
    problems: list[Problem] = []
    for place, tool in script.calls:
        if tool not in tools:
            near = get_close_matches(tool, tools, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(tools) or 'none'}."
            problems.append(Problem(cast(Place, place), f"the agent has no tool {tool!r}. {hint}"))
    if problems:
        raise ConfigError(problems)


def _entry(item: Any, at: At, index: int, problems: list[Problem]) -> Entry:
    def wrong(message: str, *path: str | int) -> None:
        problems.append(Problem(at(index, *path), message))

    if not isinstance(item, dict):
        wrong("an entry of a script is a mapping, such as '- say: Hello.'.")
        return Entry(at(index))
    entry = cast(Json, item)
    for key in entry:
        if key not in KEYS:
            near = get_close_matches(key, KEYS, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(KEYS)}."
            problems.append(Problem(at(index, key), f"unknown key {key!r} in an entry of a script. {hint}"))
    say, otherwise = entry.get("say"), entry.get("otherwise")
    checks: list[tuple[bool, str, tuple[str, ...]]] = [
        (not isinstance(say, str | None), f"say is a text, not {say!r}. Put it in quotes.", ("say",)),
        (otherwise not in (None, True), "otherwise can only be true. Leave it out in other entries.", ("otherwise",)),
        ("say" not in entry and "call" not in entry, NO_REPLY, ()),
    ]
    for is_wrong, message, path in checks:
        if is_wrong:
            wrong(message, *path)
    for key in ("say", "call"):
        for found in (found for text in blocks.strings(entry.get(key)) for found in PLACEHOLDER.finditer(text)):
            if not QUOTED.fullmatch(found["name"]):
                wrong(f"{found[0]} is not known. There are {{{{said}}}}, {{{{result}}}} and {{{{result.2}}}}.", key)
    calls = _calls(entry.get("call"), wrong)
    return Entry(at(index), _pattern(entry.get("when"), wrong), str(say or ""), calls, otherwise is True)


def _pattern(when: Any, wrong: Callable[..., None]) -> re.Pattern[str] | None:
    if when is None:
        return None
    if not isinstance(when, str):
        wrong(f"when is a regular expression, not {when!r}. Put it in quotes.", "when")
        return None
    try:
        return re.compile(when)
    except re.error as error:
        wrong(f"when: {when!r} is not a regular expression: {error}. Escape special characters with \\.", "when")
        return None


def _calls(value: Any, wrong: Callable[..., None]) -> tuple[tuple[str, Json], ...]:
    """The calls of an entry: one mapping of tools to their arguments, or a list of them."""
    if value is None:
        return ()
    calls: list[tuple[str, Json]] = []
    for mapping in cast("list[Any]", value) if isinstance(value, list) else [value]:
        if not isinstance(mapping, dict):
            wrong("call names tools and their arguments, such as 'call: {fetch_order: {number: 17}}'.", "call")
            continue
        for tool, arguments in cast(Json, mapping).items():
            if arguments is not None and not isinstance(arguments, dict):
                wrong(f"the arguments of {tool!r} are a mapping, not {arguments!r}. Write {{argument: value}}.", "call")
                continue
            calls.append((tool, cast(Json, arguments or {})))
    return tuple(calls)
