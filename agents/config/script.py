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

import inspect
import re
from collections.abc import Iterable
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from agents.config import yaml_file
from agents.config.error_messages import did_you_mean, explain
from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
from agents.config.field_types import Flag
from agents.config.sections import Section
from agents.models.scripted import QUOTED, Entries, Entry, Script, function_script, placeholders
from agents.tools import functions
from agents.tools.functions import ToolConfigError
from pager.types import Json

UNANSWERED = "the last 'otherwise' entry ends with a call, and no entry answers that call's result. Add one with 'say'."


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}. Escape special characters with \\.") from None
    return pattern


def _check_placeholders(value: Any) -> Any:
    for written, name in placeholders(value).items():
        if not QUOTED.fullmatch(name):
            raise ValueError(f"has {written}. There are only {{{{said}}}}, {{{{result}}}} and {{{{result.2}}}}.")
    return value


def _in_a_list(calls: Any) -> Any:
    return cast(Any, calls) if isinstance(calls, list) else [calls]


_WITH_PLACEHOLDERS = AfterValidator(_check_placeholders)


class ScriptEntry(Section):
    """One entry, as it is written."""

    when: Annotated[str, AfterValidator(_check_pattern)] | None = None
    say: Annotated[str, _WITH_PLACEHOLDERS] = ""
    call: Annotated[list[dict[str, Json | None]], BeforeValidator(_in_a_list), _WITH_PLACEHOLDERS] = Field(default=[])
    otherwise: Flag = False

    @model_validator(mode="after")
    def _has_reply(self) -> Self:
        if self.model_fields_set.isdisjoint({"say", "call"}):
            raise ValueError("has no reply. Give it 'say: text', 'call: {tool: {argument: value}}', or both.")
        return self

    def at(self, place: ConfigPlace) -> Entry:
        """Return the entry as the model answers with it."""
        calls = tuple((tool, given or {}) for mapping in self.call for tool, given in mapping.items())
        return Entry(place, re.compile(self.when) if self.when else None, self.say, calls, self.otherwise)


def load(script: str, named_at: ConfigPlace) -> Script:
    """Return the script that an agent's file names at this place. Raise ConfigError with all that is wrong in it."""
    folder = named_at.file.parent
    if ":" in script:
        try:
            function = functions.find(script, folder.absolute(), "script")
            if inspect.iscoroutinefunction(function):
                raise ToolConfigError(f"the script {script!r} is async, and nothing awaits it; make it a plain 'def'.")
            return function_script(script, function)
        except ToolConfigError as error:
            raise ConfigError([ConfigProblem(named_at, str(error))]) from error
    document = yaml_file.read_list(folder / script, named_at)
    try:
        written = TypeAdapter(list[ScriptEntry]).validate_python(document.data)
    except ValidationError as error:
        raise ConfigError(explain(error, document)) from None
    last = max((index for index, entry in enumerate(written) if entry.otherwise), default=None)
    if last is not None and written[last].call:
        raise ConfigError([ConfigProblem(document.at(last, "call").value, UNANSWERED)])
    return Entries(str(folder / script), [entry.at(document.at(index).value) for index, entry in enumerate(written)])


def check_tools(script: Script, tools: Iterable[str]) -> None:
    """Raise ConfigError for calls of tools that the agent does not have."""
    tools = list(tools)
    has = f"; it has {', '.join(tools) or 'none'}."
    problems = [
        ConfigProblem(cast(ConfigPlace, place), f"the agent has no tool {tool!r}{did_you_mean(tool, tools, has)}")
        for place, tool in (script.calls if isinstance(script, Entries) else ())
        if tool not in tools
    ]
    if problems:
        raise ConfigError(problems)
