"""The request: tools, system, messages and cache marks, from an epoch and its steps. Pure; it only concatenates.

There are at most four marks: on the system text, on core in the first message, on the block that was last in the
previous request, and on the last block of this one. They never stand on thinking.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from pager import blocks
from pager.store.rows import Epoch, Part, Step
from pager.types import FOREVER, Json

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)
class Messages:
    """Messages, and for each of their blocks the parts that it holds."""

    messages: list[Json] = field(default_factory=list[Json])
    parts: list[list[tuple[int, ...]]] = field(default_factory=list[list[tuple[int, ...]]])

    def add(self, role: str, content: Sequence[tuple[Json, tuple[int, ...]]]) -> None:
        """Add a message, unless it has no content."""
        if content:
            self.messages.append({"role": role, "content": [block for block, _ in content]})
            self.parts.append([parts for _, parts in content])

    def extend(self, other: "Messages") -> None:
        """Append other messages in place."""
        self.messages += other.messages
        self.parts += other.parts

    def joined(self, other: "Messages") -> "Messages":
        """Return these messages with others behind them."""
        return Messages(self.messages + other.messages, self.parts + other.parts)


def preamble_messages(epoch: Epoch) -> Messages:
    """Return the message with core, digest, pinned pages and the current request; none if there is nothing of them."""
    messages = Messages()
    messages.add("user", [(block, ()) for block in epoch.preamble])
    return messages


def step_messages(step: Step) -> Messages:
    """Return a step's messages: the user's, or the assistant's and the one with all its results. What was said
    comes last in a user message, behind what the memory put into it: small models answer what they read last."""
    messages = Messages()
    if step.kind == "user":
        parts = sorted(step.parts, key=lambda part: part.kind == "said")
        messages.add("user", [(part.form, (part.id,)) for part in parts if part.form])
        return messages
    messages.add("assistant", [(part.form, (part.id,)) for part in step.parts if part.slot == "reply" and part.form])
    messages.add("user", _results(step.parts))
    return messages


def _results(parts: Sequence[Part]) -> list[tuple[Json, tuple[int, ...]]]:
    """Return the results in their order. Notices and updates behind them stand inside the last one."""
    results: list[tuple[Json, tuple[int, ...]]] = []
    for part in parts:
        if part.slot != "result" or not part.form:
            continue
        if part.kind == "said":
            results.append((part.form, (part.id,)))
        else:
            block, ids = results[-1]
            content = [*blocks.result_content(block), part.form]
            results[-1] = ({**block, "content": content}, (*ids, part.id))
    return results


def render(
    epoch: Epoch, conversation: Messages, mark_part: int | None, max_output_tokens: int, *, may_call: bool = True,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Json:  # fmt: skip
    """Return the request's parameters, all but model and thinking. `mark_part` ended the previous request. The
    `options` are parameters of this request alone; of the reply's length the smaller limit holds."""
    messages = list(conversation.messages)
    mark = cache_mark(epoch.settings.get("cache_ttl"))
    places = {_place_of(conversation, FOREVER), _place_of(conversation, mark_part)} - {None}
    for message, index in cast("set[tuple[int, int]]", places):
        content = list(messages[message]["content"])
        content[index] = {**content[index], "cache_control": mark}
        messages[message] = {**messages[message], "content": content}
    most = min(max_output_tokens, options.get("max_tokens", max_output_tokens))
    params: Json = {**options, "max_tokens": most, "system": epoch.system, "messages": messages}
    if epoch.tools:
        params["tools"] = epoch.tools
        if not may_call:
            params["tool_choice"] = {"type": "none"}
    return params


def cache_mark(ttl: str | None) -> Json:
    """Return a cache mark with its time to live."""
    return {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}


def _place_of(conversation: Messages, part: int | None) -> tuple[int, int] | None:
    """Return where a part stands, or what could carry a mark before it. It is near the end: of FOREVER the last."""
    if part is None:
        return None
    for message in range(len(conversation.parts) - 1, -1, -1):
        for index in range(len(conversation.parts[message]) - 1, -1, -1):
            ids = conversation.parts[message][index]
            block = conversation.messages[message]["content"][index]
            if ids and ids[-1] <= part and block.get("type") not in blocks.THINKING:
                return message, index
    return None


def unpaired_calls(messages: Sequence[Json]) -> list[str]:
    """Return the ids of calls whose results are not in the next message. The last message may be a paused reply."""
    missing: list[str] = []
    for index, message in enumerate(messages[:-1]):
        calls = [block["id"] for block in message["content"] if block.get("type") == "tool_use"]
        answered = {block.get("tool_use_id") for block in messages[index + 1]["content"]}
        missing += [call for call in calls if call not in answered]
    return missing
