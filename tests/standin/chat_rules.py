"""What a request of Chat Completions has to be: the SDK's own types, and what must agree between its messages.

Where servers differ the strictest one counts: the system message comes first and alone, user and assistant take turns,
the arguments of a call are a JSON object. The wording of the errors is OpenAI's where it is known.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Required

import openai.types.chat as sdk
from jsonschema import Draft202012Validator, SchemaError
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from pydantic import Field

from tests.standin import shapes
from tests.standin.errors import Rejected
from tests.standin.facts import to_bytes

Json = dict[str, Any]
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DATA_URL = re.compile(r"data:(image/(?:png|jpeg|gif|webp)|application/pdf);base64,(.+)", re.DOTALL)
SHORT_ID = Annotated[str, Field(min_length=1, max_length=40)]
shapes.CLOSER |= {
    ("CompletionCreateParamsBase", "messages"): Required[list[Any]],
    ("CompletionCreateParamsBase", "max_tokens"): Annotated[int, Field(ge=1)],
    ("CompletionCreateParamsBase", "max_completion_tokens"): Annotated[int, Field(ge=1)],
    ("ChatCompletionMessageFunctionToolCallParam", "id"): Required[SHORT_ID],
    ("ChatCompletionToolMessageParam", "tool_call_id"): Required[SHORT_ID],
}
CREATE = shapes.request(CompletionCreateParamsBase, stream=bool)
TOOL = shapes.check_of(shapes.strict(sdk.ChatCompletionFunctionToolParam))
ROLES = {
    "system": shapes.check_of(shapes.strict(sdk.ChatCompletionSystemMessageParam)),
    "user": shapes.check_of(shapes.strict(sdk.ChatCompletionUserMessageParam)),
    "assistant": shapes.check_of(shapes.strict(sdk.ChatCompletionAssistantMessageParam)),
    "tool": shapes.check_of(shapes.strict(sdk.ChatCompletionToolMessageParam)),
}
UNASKED = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    " The following tool_call_ids did not have response messages: "
)


def check_request(body: Json, *, fields: Sequence[str] = ()) -> None:
    """`fields` are further ones of an assistant's message that this server knows."""
    to_bytes(body)
    CREATE("", {name: value for name, value in body.items() if name != "tools"})
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise Rejected("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if "stream_options" in body and not body.get("stream"):
        raise Rejected("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if "tools" in body:
        _check_tools(body["tools"])
    elif "tool_choice" in body:
        raise Rejected("'tool_choice' is only allowed when 'tools' are specified.")
    for index, message in enumerate(body["messages"]):
        _check_message(f"messages[{index}]", message, fields)
    _check_order(body["messages"])


def _check_tools(tools: Any) -> None:
    if not isinstance(tools, list) or not tools:
        raise Rejected("Invalid 'tools': empty array. Expected an array with minimum length 1.")
    for index, tool in enumerate(tools):
        TOOL(f"tools[{index}]", tool)
        function = tool["function"]
        if not NAME.fullmatch(function["name"]):
            raise Rejected(f"Invalid 'tools[{index}].function.name': does not match '^[a-zA-Z0-9_-]+$', at most 64.")
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        broken = f"Invalid schema for function '{function['name']}': "
        if schema.get("type") != "object":
            raise Rejected(f"{broken}schema must be a JSON Schema of 'type: \"object\"'.")
        if "properties" not in schema:
            raise Rejected(f"{broken}In context=(), object schema missing properties.")
        if any(each.get("type") == "array" and "items" not in each for each in _schemas(schema)):
            raise Rejected(f"{broken}array schema missing items.")
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise Rejected(f"{broken}{error.message}") from None
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) < len(names):
        raise Rejected("Invalid 'tools': two functions have one name.")


def _schemas(schema: Any) -> Iterator[Json]:
    if isinstance(schema, dict):
        yield schema
        for each in schema.values():
            yield from _schemas(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _schemas(each)


def _check_message(at: str, message: Any, fields: Sequence[str]) -> None:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ROLES:
        raise Rejected(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', and 'tool'.")
    ROLES[role](at, {name: value for name, value in message.items() if name not in fields})
    content, calls = message.get("content"), message.get("tool_calls")
    if calls is not None and not calls:
        raise Rejected(f"Invalid '{at}.tool_calls': empty array. Expected an array with minimum length 1.")
    if content is None and not calls:
        raise Rejected(f"Invalid value for 'content' of {at}: expected a string, got null.")
    texts = (
        [content] if isinstance(content, str) else [part["text"] for part in content or () if part["type"] == "text"]
    )
    if content in ("", []) or not all(text.strip() for text in texts):
        raise Rejected(f"{at}.content: a text has to be non-empty.")
    for part in content if isinstance(content, list) else ():
        _check_part(f"{at}.content", part)
    for call in calls or ():
        _check_call(f"{at}.tool_calls", call)


def _check_part(at: str, part: Json) -> None:
    url = (
        part["image_url"]["url"]
        if part["type"] == "image_url"
        else part["file"]["file_data"]
        if part["type"] == "file"
        else ""
    )
    if not url or url.startswith("https://"):
        return
    found = DATA_URL.fullmatch(url)
    try:
        base64.b64decode(found[2] if found else "?", validate=True)
    except binascii.Error:
        raise Rejected(f"Invalid '{at}': expected a base64-encoded data URL, got {url[:40]!r}.") from None


def _check_call(at: str, call: Json) -> None:
    if not NAME.fullmatch(call["function"]["name"]):
        raise Rejected(f"Invalid '{at}.function.name': does not match '^[a-zA-Z0-9_-]+$', at most 64.")
    try:
        given = json.loads(call["function"]["arguments"])
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise Rejected(f"{at}.function.arguments: not a JSON object.")


def _check_order(messages: list[Json]) -> None:
    if not messages:
        raise Rejected("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    expected: list[str] = []  # the calls without a result
    before = ""
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in expected:
                raise Rejected(f"Invalid parameter: {UNASKED} (messages[{index}])")
            expected.remove(message["tool_call_id"])
        elif expected:
            raise Rejected(UNANSWERED + ", ".join(expected))
        elif role == "system" and index:
            raise Rejected("System message must be at the beginning.")
        elif role == before or (role == "assistant" and before in ("", "system")):
            raise Rejected("Conversation roles must alternate user/assistant/user/assistant/...")
        expected += [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(expected)) < len(expected):
            raise Rejected(f"messages[{index}].tool_calls: ids must be unique.")
        before = role
    if expected:
        raise Rejected(UNANSWERED + ", ".join(expected))
    if before not in ("user", "tool"):
        raise Rejected("Cannot continue a message of the assistant: the last one has to be of the user or a tool.")
