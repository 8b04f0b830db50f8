"""What must agree between the parts of a request: tools and settings, calls and their results, marks.

The wording of the errors is the API's own where it is known.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable, Sequence
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from tests.standin.errors import Rejected
from tests.standin.facts import BlockFacts, MessageFacts, frozen, remembered
from tests.standin.shapes import COUNT, CREATE, SERVER_TOOLS, TOOL

PROPERTY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
MOST_MARKS = 4
PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."


def check_params(params: Any, *, creates: bool) -> None:
    if not isinstance(params, dict):
        raise Rejected("Input should be a valid dictionary")
    tools = params.get("tools")
    (CREATE if creates else COUNT)("", {name: value for name, value in params.items() if name != "tools"})
    if not params["model"]:
        raise Rejected("model: String should have at least 1 character")
    for index, sequence in enumerate(params.get("stop_sequences") or ()):
        if not sequence.strip():
            raise Rejected(f"stop_sequences.{index}: each stop sequence must contain non-whitespace")
    if tools is not None:
        _check_tools(frozen(tools))
    _check_choice(params)


def _check_choice(params: dict[str, Any]) -> None:
    thinking, choice = params.get("thinking"), params.get("tool_choice")
    if thinking and thinking["type"] == "enabled" and thinking["budget_tokens"] >= params.get("max_tokens", 1e9):
        raise Rejected("`max_tokens` must be greater than `thinking.budget_tokens`")
    if not choice:
        return
    tools = params.get("tools")
    if not tools:
        raise Rejected("tool_choice: may only be specified while providing tools")
    if choice["type"] == "tool" and choice["name"] not in {tool.get("name") for tool in tools}:
        raise Rejected(f"Tool '{choice['name']}' not found in provided tools")
    if choice["type"] in {"any", "tool"} and thinking and thinking["type"] != "disabled":
        raise Rejected("Thinking may not be enabled when tool_choice forces tool use.")


@remembered
def _check_tools(raw: bytes) -> None:
    tools = marshal.loads(raw)
    if not isinstance(tools, list):
        raise Rejected("tools: Input should be a valid array")
    for index, tool in enumerate(tools):
        TOOL(f"tools.{index}", {"type": "custom", **tool} if isinstance(tool, dict) else tool)
        if "input_schema" in tool:
            _check_schema(f"tools.{index}.custom.input_schema", tool["input_schema"])
    names = [tool.get("name") for tool in tools]
    if len(set(names)) < len(names):
        raise Rejected("tools: Tool names must be unique.")


def _check_schema(at: str, schema: dict[str, Any]) -> None:
    if "type" not in schema:
        raise Rejected(f"{at}.type: Field required")
    if schema["type"] != "object":
        raise Rejected(f"{at}.type: Input should be 'object'")
    if any(name in schema for name in ("oneOf", "allOf", "anyOf")):
        raise Rejected(f"{at}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    for name in schema.get("properties") or {}:
        if not PROPERTY.fullmatch(name):
            raise Rejected(f"{at}.properties: Property keys should match pattern '{PROPERTY.pattern}'")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        raise Rejected(f"{at}: JSON schema is invalid. It must match JSON Schema draft 2020-12") from None


def check_conversation(messages: Sequence[MessageFacts], *, has_tools: bool) -> set[str]:
    """Everything but marks and thinking. Answers with the ids of all calls."""
    if not messages:
        raise Rejected("messages: at least one message is required")
    if messages[0].role == "assistant":
        raise Rejected('messages: first message must use the "user" role')
    ids = _check_calls(messages)
    _check_server_tools(messages)
    if not has_tools and any(message.calls or message.results for message in messages):
        raise Rejected("Requests which include `tool_use` or `tool_result` blocks must define tools")
    last = messages[-1]
    if last.role == "assistant" and last.blocks[-1].signature is not None:
        kind = last.blocks[-1].kind
        raise Rejected(f"messages.{len(messages) - 1}: The final block in an assistant message cannot be `{kind}`.")
    if last.role == "assistant" and last.loose_end:
        raise Rejected("messages: final assistant content cannot end with trailing whitespace")
    return ids


def _check_calls(messages: Sequence[MessageFacts]) -> set[str]:
    seen: set[str] = set()
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        if open_calls or message.results:
            _check_results(index, message, open_calls)
        for place, call_id in message.calls:
            if call_id in seen:
                raise Rejected(f"messages.{index}.content.{place}: `tool_use` ids must be unique")
            seen.add(call_id)
        open_calls = [call_id for _, call_id in message.calls]
    if open_calls:
        _refuse_unanswered(len(messages) - 1, open_calls)
    return seen


def _check_results(index: int, message: MessageFacts, open_calls: list[str]) -> None:
    expected, answered = set(open_calls), set[str]()
    for place, call_id in message.results:
        if call_id not in expected:
            raise Rejected(
                f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}."
                " Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if call_id in answered:
            raise Rejected(
                f"messages.{index}.content.{place}: each tool_use must have a single result. Found multiple"
                f" `tool_result` blocks with id: {call_id}"
            )
        answered.add(call_id)
    in_front = {call_id for place, call_id in message.results if place < message.leading_results}
    _refuse_unanswered(index - 1, [call_id for call_id in open_calls if call_id not in in_front])


def _refuse_unanswered(index: int, call_ids: list[str]) -> None:
    if call_ids:
        raise Rejected(
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after:"
            f" {', '.join(call_ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the"
            " next message."
        )


def _check_server_tools(messages: Sequence[MessageFacts]) -> None:
    """A server tool's result follows its call in the same turn of the assistant. That turn goes on behind a user
    message that has nothing but results of our own tools, and behind a pause."""
    seen: set[str] = set()
    pending: dict[str, tuple[int, str]] = {}  # id -> (message, name)
    for index, message in enumerate(messages):
        if message.role != "assistant":
            if pending and message.leading_results < len(message.blocks):
                call_id, (at, name) = next(iter(pending.items()))
                raise Rejected(
                    f"messages.{at}: `{name}` tool use with id `{call_id}` was found without a corresponding"
                    f" `{SERVER_TOOLS[name]}` block"
                )
            continue
        for place, kind, call_id in message.server:
            if kind in SERVER_TOOLS:
                if call_id in seen:
                    raise Rejected(f"messages.{index}.content.{place}: `server_tool_use` ids must be unique")
                seen.add(call_id)
                pending[call_id] = (index, kind)
            elif call_id not in pending or SERVER_TOOLS[pending.pop(call_id)[1]] != kind:
                raise Rejected(
                    f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `{kind}` blocks: {call_id}."
                    f" Each `{kind}` block must have a corresponding `server_tool_use` block before it."
                )


def check_marks(marks: Iterable[tuple[str, BlockFacts]]) -> None:
    """The marks in the order of the prompt, each with its place."""
    places = [(at, block.mark) for at, block in marks if block.mark]
    if len(places) > MOST_MARKS:
        raise Rejected(f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {len(places)}.")
    short = False
    for at, ttl in places:
        if ttl == "1h" and short:
            raise Rejected(
                f"{at}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control"
                " block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        short = short or ttl == "5m"
