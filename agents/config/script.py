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

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, cast

from agents.config import yaml_file
from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
from agents.config.yaml_file import Document
from agents.models.scripted import QUOTED, Entries, Entry, FunctionScript, Script, placeholders
from agents.tools import functions
from agents.tools.functions import ToolConfigError
from pager.types import Json

QUOTABLE = "{{said}}, {{result}} and {{result.2}}"
NO_REPLY = "this entry has no reply. Give it 'say: text', 'call: {tool: {argument: value}}', or both."
NO_CALLS = "call names tools and their arguments, such as 'call: {fetch_order: {number: 17}}'."
UNANSWERED = "the last 'otherwise' entry answers with a call, and none its result. Add one with 'say'."
BAD_PATTERN = "when: {!r} is not a regular expression: {}. Escape special characters with \\."
# The type of each key, and what is said of another one.
KEYS: dict[str, tuple[type, str]] = {
    "when": (str, "when is a regular expression, not {!r}. Put it in quotes."),
    "say": (str, "say is a text, not {!r}. Put it in quotes."),
    "call": (object, ""),
    "otherwise": (bool, "otherwise can only be true. Leave it out in other entries."),
}


def load(script: str, named_at: ConfigPlace) -> Script:
    """Return the script that an agent's file names at this place. Raise ConfigError with all that is wrong in it."""
    folder = named_at.file.parent
    if ":" in script:
        try:
            return FunctionScript(script, functions.find(script, folder.absolute(), "script"))
        except ToolConfigError as error:
            raise ConfigError([ConfigProblem(named_at, str(error))]) from error
    reader = _Reader(yaml_file.read_list(folder / script, named_at))
    entries = reader.entries()
    if reader.problems:
        raise ConfigError(reader.problems)
    return Entries(str(folder / script), entries)


def check_tools(script: Script, tools: Iterable[str]) -> None:
    """Raise ConfigError for calls of tools that the agent does not have."""
    tools = list(tools)
    problems = [
        ConfigProblem(cast(ConfigPlace, place), f"the agent has no tool {tool!r}. {_hint(tool, tools, 'It has')}")
        for place, tool in (script.calls if isinstance(script, Entries) else ())
        if tool not in tools
    ]
    if problems:
        raise ConfigError(problems)


def _hint(name: str, allowed: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(name, allowed, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(allowed) or 'none'}."


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[ConfigProblem] = []

    def entries(self) -> list[Entry]:
        entries = [self._entry(item, index) for index, item in enumerate(self._document.data)]
        last = max((index for index, entry in enumerate(entries) if entry.otherwise), default=None)
        if last is not None and entries[last].calls:
            self._wrong(UNANSWERED, last, "call")
        return entries

    def _wrong(self, message: str, *path: str | int) -> None:
        self.problems.append(ConfigProblem(self._document.at(*path).value, message))

    def _entry(self, item: Any, index: int) -> Entry:
        place, pattern = self._document.at(index).value, None
        if not isinstance(item, dict):
            self._wrong("an entry of a script is a mapping, such as '- say: Hello.'.", index)
            return Entry(place)
        entry = {key: value for key, value in cast(Json, item).items() if value is not None}
        for key, value in entry.items():
            kind, message = KEYS.get(key, (object, ""))
            if key not in KEYS:
                self._wrong(f"unknown key {key!r} in an entry of a script. {_hint(key, KEYS, 'Known are')}", index, key)
            elif not isinstance(value, kind) or value is False:
                self._wrong(message.format(value), index, key)
            for written, name in placeholders(value).items():
                if not QUOTED.fullmatch(name):
                    self._wrong(f"{written} is not known. There are {QUOTABLE}.", index, key)
        if not {"say", "call"} & entry.keys():
            self._wrong(NO_REPLY, index)
        when, calls = entry.get("when"), cast(object, entry.get("call", []))
        try:
            pattern = re.compile(when) if isinstance(when, str) else None
        except re.error as error:
            self._wrong(BAD_PATTERN.format(when, error), index, "when")
        mappings = cast("list[Any]", calls) if isinstance(calls, list) else [calls]
        found = [call for mapping in mappings for call in self._calls(mapping, index)]
        return Entry(place, pattern, str(entry.get("say", "")), tuple(found), entry.get("otherwise") is True)

    def _calls(self, mapping: Any, index: int) -> Iterator[tuple[str, Json]]:
        if not isinstance(mapping, dict):
            self._wrong(NO_CALLS, index, "call")
            return
        for tool, given in cast(Json, mapping).items():
            if isinstance(given, dict | None):
                yield tool, cast(Json, given or {})
            else:
                text = f"the arguments of {tool!r} are a mapping, not {given!r}. Write {{argument: value}}."
                self._wrong(text, index, "call")
