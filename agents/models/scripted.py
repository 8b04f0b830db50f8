"""A model that answers from a script, in this process: for tests, demos and tutorials. It imitates no language model.

`agents.config.script` reads a script from its file. A script is a function from a request to a `Reply`; `Entries` is
the one that a YAML file describes:

- The first unused entry that fits answers. An entry fits if its `when` is found in what was said last and, if it
  quotes `{{result}}`, after a call. Entries without `when` are therefore used in order.
- When no such entry is left, the first `otherwise` entry that fits answers, as often as needed; after its calls, the
  next one does.
- A script starts from the beginning in each process. In a turn that a crash left open it continues where it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from agents.events import Text, Thinking
from agents.logs import log
from agents.models.model import FinishedReply, Model, ModelRefusedError
from agents.models.replies import Reply, as_reply
from agents.models.simulated import SimulatedProvider, as_blocks, count_tokens
from pager.types import Json

Script = Callable[[Json], Reply]
QUOTED = re.compile(r"said|result|result\.(?P<number>[1-9]\d{0,2})")
SAID_CHARS = 80
DISARMED = "&lt;"  # how the memory begins text that looks like its own elements
_PLACEHOLDER = re.compile(r"\{\{(?P<name>[^{}]*)\}\}")
# What the memory puts beside a message or a result. In what others say, these names are disarmed: &lt;notice>.
_FROM_MEMORY = re.compile(r"\s*<(?:core|core_update|recalled|notice|digest|pinned|request|spilled)(?![\w-])")


def placeholders(value: object) -> dict[str, str]:
    """Return the names in the placeholders of a text, or of the texts inside of a mapping, as they are written."""
    return {found[0]: found["name"].strip() for found in _PLACEHOLDER.finditer(json.dumps(value, ensure_ascii=False))}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a script. `place` prints as file, line and column; `calls` are pairs of a tool and its arguments."""

    place: object
    when: re.Pattern[str] | None = None
    say: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    otherwise: bool = False

    def fits(self, said: str, results: Sequence[str]) -> bool:
        """Return True if the entry can answer this message after these results."""
        names = map(QUOTED.fullmatch, placeholders([self.say, self.calls]).values())
        needed = max((int(name["number"] or 1) for name in names if name and name[0] != "said"), default=0)
        return (self.when is None or bool(self.when.search(said))) and len(results) >= needed


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """The open turn of a request: what was said last, the results since, what its replies so far answered, and which
    step of it comes next."""

    said: str
    results: tuple[str, ...]
    answered: tuple[tuple[str, tuple[str, ...]], ...]
    step: int

    @classmethod
    def of(cls, params: Json) -> OpenTurn:
        """Read the turn after the last reply without a call. Several messages may have come in it."""
        said, results, answered, step = "", tuple[str, ...](), list[tuple[str, tuple[str, ...]]](), 1
        for message in params["messages"]:
            content = as_blocks(message["content"])
            if message["role"] == "assistant":
                has_calls = any(block["type"] == "tool_use" for block in content)
                answered = [*answered, (said, results)] if has_calls else []
                results, step = (), step + 1 if has_calls else 1
            elif texts := [block["text"] for block in content if block["type"] == "text" and not _from_memory(block)]:
                said, results, step = "\n".join(texts).replace(DISARMED, "<"), (), step + 1
            else:
                results += tuple(_result_text(block) for block in content if block["type"] == "tool_result")
        return cls(said, results, tuple(answered), step)


class Entries:
    """The script of a YAML file. Call it with a request."""

    def __init__(self, file: str, entries: Sequence[Entry]) -> None:
        self._file = file
        self._entries = tuple(entries)
        self._unused = [entry for entry in entries if not entry.otherwise]
        self._otherwise = [entry for entry in entries if entry.otherwise]
        self._next_otherwise = 0
        self._started = False

    @property
    def calls(self) -> list[tuple[object, str]]:
        """Return the place of the entry and the tool for every call in the script."""
        return [(entry.place, tool) for entry in self._entries for tool, _ in entry.calls]

    def __call__(self, params: Json) -> Reply:
        """Return the reply to a request. Raise ModelRefusedError if no entry fits."""
        turn = OpenTurn.of(params)
        if not self._started:  # replies that an earlier process gave in this turn count as used
            for said, results in turn.answered:
                self._take(said, results)
        self._started = True
        entry = self._take(turn.said, turn.results)
        if entry is None:
            raise ModelRefusedError(self._exhausted(turn))
        say, calls = _filled((entry.say, entry.calls), turn.said, turn.results)
        return Reply(text=say, calls=[{"type": "tool_use", "name": tool, "input": given} for tool, given in calls])

    def _take(self, said: str, results: Sequence[str]) -> Entry | None:
        if not results:
            self._next_otherwise = 0
        for index, entry in enumerate(self._unused):
            if entry.fits(said, results):
                return self._unused.pop(index)
        for index in range(self._next_otherwise, len(self._otherwise)):
            if self._otherwise[index].fits(said, results):
                self._next_otherwise = index + 1
                return self._otherwise[index]
        return None

    def _exhausted(self, turn: OpenTurn) -> str:
        message = turn.said if len(turn.said) <= SAID_CHARS else f"{turn.said[:SAID_CHARS]}…"
        unused = [*self._unused, *self._otherwise]
        skipped = ""
        for entry in unused:
            waits = entry.when and f"waits for a message with {entry.when.pattern!r}."
            skipped += f"\n{entry.place}: unused, because it {waits or 'quotes a result that is missing.'}"
        where = self._entries[-1].place if self._entries else self._file
        return (
            f"{where}: the script has no reply for step {turn.step} of the turn {message!r}: "
            f"{len(self._entries) - len(unused)} of {len(self._entries)} entries used, and no other one fits. "
            f"Add an entry, or a last one with 'otherwise: true'.{skipped}"
        )


def function_script(name: str, function: Callable[[Json], Any]) -> Script:
    """Make a script of a user's function. `name` is `module:function`."""

    def reply(params: Json) -> Reply:
        try:
            return as_reply(function(params))
        except Exception as error:
            log.exception("the script %s failed", name)
            raise ModelRefusedError(f"the script {name} failed: {type(error).__name__}: {error}") from error

    return reply


class ScriptedModel(Model):
    """A `Model` that answers from a script, with token counts and a prompt cache as a provider has them."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.script = script
        self._provider = SimulatedProvider()

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        """Yield the blocks of the script's reply."""
        self._provider.check_window(params)
        params = {"model": self.name, **params}
        message = self._provider.finish(params, self.script(params))
        for block in message["content"]:
            if block["type"] == "text":
                yield Text(block["text"])
            elif block["type"] == "thinking":
                yield Thinking(block["thinking"])
        return FinishedReply(message)

    def count_tokens(self, params: Json) -> int | None:
        """Return the tokens of a request."""
        return count_tokens(params)

    def max_input_tokens(self) -> int | None:
        """Return the window of the simulated provider."""
        return self._provider.limit_tokens


def _from_memory(block: Json) -> bool:
    return bool(_FROM_MEMORY.match(block["text"]))


def _result_text(result: Json) -> str:
    texts = [block for block in as_blocks(result.get("content")) if block["type"] == "text"]
    said = "\n".join(block["text"] for block in takewhile(lambda block: not _from_memory(block), texts))
    return said.replace(DISARMED, "<")


def _filled(value: Any, said: str, results: Sequence[str]) -> Any:
    def quote(found: re.Match[str]) -> str:
        name = QUOTED.fullmatch(found["name"].strip())
        if name is None:
            return found[0]
        result = results[int(name["number"]) - 1] if name["number"] else "\n".join(results)
        return json.dumps(said if name[0] == "said" else result)[1:-1]  # inside of the quotes around it

    return json.loads(_PLACEHOLDER.sub(quote, json.dumps(value)))
