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

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, cast

from agents.events import Text, Thinking
from agents.logs import log
from agents.models.model import FinishedReply, ModelError
from agents.models.replies import Reply, as_reply
from agents.models.simulated import SimulatedProvider, count_tokens
from pager import blocks, markup
from pager.types import Json

Script = Callable[[Json], Reply]
PLACEHOLDER = re.compile(r"\{\{\s*(?P<name>[^{}]*?)\s*\}\}")
QUOTED = re.compile(r"said|result|result\.(?P<number>[1-9]\d{0,2})")
_MEMORY_TEXT = re.compile(rf"\s*<(?:{'|'.join(markup.OWN_ELEMENTS)})(?![\w-])")
SAID_CHARS = 80


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a script. `place` prints as file, line and column; `calls` are pairs of a tool and its arguments."""

    place: object
    when: re.Pattern[str] | None = None
    say: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    otherwise: bool = False

    def results_needed(self) -> int:
        """Return how many results of calls the entry quotes: `{{result.2}}` needs two, `{{result}}` one."""
        texts = [self.say, *(text for _, arguments in self.calls for text in blocks.strings(arguments))]
        names = [QUOTED.fullmatch(found["name"]) for text in texts for found in PLACEHOLDER.finditer(text)]
        return max((int(name["number"] or 1) for name in names if name and name[0] != "said"), default=0)

    def fits(self, said: str, results: Sequence[str]) -> bool:
        """Return True if the entry can answer this message after these results."""
        return (self.when is None or bool(self.when.search(said))) and len(results) >= self.results_needed()


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """What a request says of the turn it is part of: the message, and the results behind each reply so far."""

    said: str
    results: tuple[tuple[str, ...], ...]  # one item per reply so far; () before the first

    @classmethod
    def of(cls, params: Json) -> OpenTurn:
        """Read the last message of a person, and the results that followed it."""
        results: list[tuple[str, ...]] = []
        for message in reversed(cast("list[Json]", params["messages"])):
            if message["role"] != "user":
                continue
            content = blocks.as_blocks(message["content"])
            texts = [each["text"] for each in content if each.get("type") == "text" and not _from_memory(each)]
            if texts:
                return cls(_armed("\n".join(texts)), tuple(reversed(results)))
            results.append(tuple(_result_text(each) for each in content if each.get("type") == "tool_result"))
        return cls("", tuple(reversed(results)))


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
        turn = OpenTurn.of(params)
        if not self._started:  # replies that an earlier process gave in this turn count as used
            for index in range(len(turn.results)):
                self._take(turn.said, turn.results[index - 1] if index else ())
        self._started = True
        results = turn.results[-1] if turn.results else ()
        entry = self._take(turn.said, results)
        if entry is None:
            raise ModelError(self._exhausted(turn))
        calls: list[Json] = [
            {"type": "tool_use", "name": tool, "input": _filled(arguments, turn.said, results)}
            for tool, arguments in entry.calls
        ]
        return Reply(text=_filled(entry.say, turn.said, results), calls=calls)

    def _take(self, said: str, results: Sequence[str]) -> Entry | None:
        """Return the entry that answers, and mark it as used."""
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
        step = len(turn.results) + 2  # the message is the first step of its turn
        message = turn.said if len(turn.said) <= SAID_CHARS else f"{turn.said[:SAID_CHARS]}…"
        used = len(self._entries) - len(self._unused) - len(self._otherwise)
        skipped = "".join(
            f"\n{entry.place}: unused, because it {_why_not(entry)}." for entry in [*self._unused, *self._otherwise]
        )
        where = self._entries[-1].place if self._entries else self._file
        return (
            f"{where}: the script has no reply for step {step} of the turn {message!r}: {used} of "
            f"{len(self._entries)} entries used, and no other one fits. Add an entry, or a last one with "
            f"'otherwise: true'.{skipped}"
        )


class FunctionScript:
    """The script that a function of the user's is. `name` is `module:function`."""

    def __init__(self, name: str, function: Callable[[Json], Any]) -> None:
        self._name = name
        self._function = function

    def __call__(self, params: Json) -> Reply:
        try:
            return as_reply(self._function(params))
        except Exception as error:
            log.exception("the script %s failed", self._name)
            raise ModelError(f"the script {self._name} failed: {type(error).__name__}: {error}") from error


class ScriptedModel:
    """A `Model` that answers from a script, with token counts and a prompt cache as a provider has them."""

    def __init__(self, name: str, script: Script) -> None:
        self._name = name
        self.script = script
        self._provider = SimulatedProvider()

    @property
    def name(self) -> str:
        return self._name

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        self._provider.check_window(params)
        params = {"model": self._name, **params}
        message = self._provider.finish(params, self.script(params))
        for block in message["content"]:
            if block["type"] == "text":
                yield Text(block["text"])
            elif block["type"] == "thinking":
                yield Thinking(block["thinking"])
        return FinishedReply(message)

    def count_tokens(self, params: Json) -> int | None:
        return count_tokens(params)

    def max_input_tokens(self) -> int | None:
        return self._provider.limit_tokens

    def close(self) -> None:
        """There is nothing to close."""


def _why_not(entry: Entry) -> str:
    if entry.when is None:
        return "quotes a result, and there is none (or not as many)"
    return f"waits for a message with {entry.when.pattern!r}"


def _from_memory(block: Json) -> bool:
    """Return True for a text that the memory put beside what was said, such as <recalled> or <notice>."""
    return bool(_MEMORY_TEXT.match(block["text"]))


def _result_text(result: Json) -> str:
    inner = blocks.result_content(result)
    said = takewhile(lambda block: not (block.get("type") == "text" and _from_memory(block)), inner)
    return _armed("\n".join(blocks.text_of(block) for block in said))


def _armed(text: str) -> str:
    """Undo `markup.disarm`."""
    return text.replace("&lt;", "<")


def _filled(value: Any, said: str, results: Sequence[str]) -> Any:
    """Return a text, or the texts inside of arguments, with the placeholders replaced."""
    if isinstance(value, dict):
        return {key: _filled(item, said, results) for key, item in cast(Json, value).items()}
    if isinstance(value, list):
        return [_filled(item, said, results) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value

    def quote(found: re.Match[str]) -> str:
        name = QUOTED.fullmatch(found["name"])
        if name is None:
            return found[0]
        if name[0] == "said":
            return said
        return results[int(name["number"]) - 1] if name["number"] else "\n".join(results)

    return PLACEHOLDER.sub(quote, value)
