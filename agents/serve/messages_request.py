"""A request of the Messages API, read: what its client sends, in one form, or a clear refusal. Pure.

>>> asked = read({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]})
>>> asked.messages
(Message(role='user', blocks=({'type': 'text', 'text': 'Hello'},)),)

A request may come from any version of an SDK, so nothing is taken for granted. What cannot be honoured is refused, and
`not_sent` names what this agent does in its own way. Marks for the provider's cache are left out: the agent's own
window has its own.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pager.errors import brief
from pager.types import Json

MOST_MESSAGES = 100_000  # as the API takes
FROM_CLIENTS = frozenset({"text", "image", "document", "search_result", "tool_result"})
LEFT_OUT = frozenset({"thinking", "redacted_thinking", "server_tool_use"})  # of replies in a history
RESULTS_AT_PROVIDER = "_tool_result"  # how the types of the results of a provider's own tools end
CLIENT_RUNS = ("bash_", "text_editor_", "memory_")  # typed tools that the client runs, as their types begin
TOOL_FIELDS = frozenset({"name", "description", "input_schema", "type", "cache_control", "strict", "input_examples",
                         "eager_input_streaming", "allowed_callers", "defer_loading"})  # fmt: skip
SENT_ON = ("max_tokens", "stop_sequences", "metadata", "thinking", "tool_choice", "output_config", "service_tier",
           "speed", "inference_geo")  # fmt: skip
SAMPLING = ("temperature", "top_p")  # that Chat Completions has, and the Messages API has no longer
OURS = ("context_management", "diagnostics")  # the agent decides itself what stands in its window
READ_HERE = ("model", "messages", "system", "tools", "stream", "cache_control")
NOT_FOR_CHAT = ("thinking", "output_config", "service_tier", "speed", "inference_geo")


class BadRequestError(Exception):
    """The request cannot be honoured; the text says which part, and what to do. `details` are for programs."""

    def __init__(self, text: str, details: Json | None = None) -> None:
        super().__init__(text)
        self.details = details


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said, as blocks: neighbours of one role are one message, as for the API itself."""

    role: Literal["user", "assistant"]
    blocks: tuple[Json, ...]

    @property
    def calls(self) -> list[Json]:
        """Return its tool calls."""
        return [block for block in self.blocks if block["type"] == "tool_use"]

    @property
    def results(self) -> list[Json]:
        """Return its results of tool calls."""
        return [block for block in self.blocks if block["type"] == "tool_result"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its history, and what it brings of its own. `options` go to the provider as they came."""

    model: str
    messages: tuple[Message, ...]
    system: str
    tools: tuple[Json, ...]
    options: Json
    streams: bool
    not_sent: tuple[str, ...] = ()

    @property
    def tool_names(self) -> frozenset[str]:
        """Return the names of the client's tools."""
        return frozenset(str(tool["name"]) for tool in self.tools)

    @property
    def shows_thinking(self) -> bool:
        """Return True if the client wants to see what the model thinks."""
        return self.options.get("thinking", {}).get("type", "disabled") != "disabled"


def read(body: Any, *, counts: bool = False) -> Asked:
    """Read the body of a request; with `counts` one for count_tokens. Raises BadRequestError."""
    if not isinstance(body, dict):
        raise BadRequestError("the body is no JSON object.")
    given = {name: value for name, value in cast(Json, body).items() if value is not None}
    known = (*READ_HERE, *SENT_ON, *SAMPLING, *OURS)
    if "thread" in given:  # the SDK's tool runner asks for one, and goes on without it
        text = "thread: histories are not kept by an id here; send the whole one, of which only what is new is told."
        raise BadRequestError(text, {"error_code": "thread_unsupported_request", "unsupported": ["thread"]})
    for name in given:
        if name not in known:
            raise BadRequestError(f"{name}: this endpoint does not know it. It knows {', '.join(sorted(known))}.")
    for name, kind in (("model", str), ("messages", list), *(() if counts else (("max_tokens", int),))):
        if name not in given:
            raise BadRequestError(f"{name}: Field required")
        if not isinstance(given[name], kind) or isinstance(given[name], bool):
            raise BadRequestError(f"{name} is {brief(given[name])}; it has to be a {_NAMES[kind]}.")
    if not isinstance(given.get("stream", False), bool):
        raise BadRequestError(f"stream is {brief(given['stream'])}; it has to be true or false.")
    tools = tuple(_tools(given.get("tools", [])))
    options = {name: given[name] for name in (*SENT_ON, *SAMPLING) if name in given}
    _check_options(options, [tool["name"] for tool in tools])
    not_sent = tuple(name for name in OURS if name in given)
    messages = tuple(_merged(_messages(given["messages"])))
    _check_history(messages)
    system = _system(given.get("system", ""))
    return Asked(given["model"], messages, system, tools, options, given.get("stream", False), not_sent)


def check_for(
    asked: Asked, *, provider: str, thinking: str, own_tools: Collection[str], most_tokens: int
) -> tuple[str, ...]:
    """Refuse what this agent cannot honour: its provider, its setting of `thinking`, the names of its tools, its limit
    of a reply's tokens. Return what is not sent to its model."""
    budget = asked.options.get("thinking", {}).get("budget_tokens") or 0
    if budget >= most_tokens:
        text = (
            f"thinking.budget_tokens is {budget}; replies of this agent have at most {most_tokens} tokens, and it has"
        )
        raise BadRequestError(f"{text} to be less. Ask for less, or raise model.max_output_tokens in the agent's YAML.")
    for index, tool in enumerate(asked.tools):
        if tool["name"] in own_tools:
            text = f"tools.{index}.name: this agent has a tool {tool['name']!r} of its own, which it runs itself."
            raise BadRequestError(f"{text} Give yours another name.")
        if provider == "openai" and "input_schema" not in tool:
            text = f"tools.{index}.type: {tool['type']} is a tool of the Messages API, and this agent's model has"
            raise BadRequestError(f"{text} another one (Chat Completions). Declare it with an input_schema.")
    if provider != "openai":
        for name in SAMPLING:
            if name in asked.options:
                text = f"{name}: the Messages API of this agent's model has no such parameter any more."
                raise BadRequestError(f"{text} Leave it out.")
        return asked.not_sent
    for name in NOT_FOR_CHAT:
        off = name == "thinking" and asked.options.get(name, {}).get("type") == "disabled" and thinking == "off"
        if name in asked.options and not off:
            text = f"{name}: this agent's model is behind Chat Completions, which has no such parameter."
            raise BadRequestError(f"{text} Leave it out; the agent's YAML decides (model.{name}).")
    return (*asked.not_sent, *(["metadata"] if "metadata" in asked.options else []))


_NAMES: Mapping[type, str] = {str: "string", list: "list", int: "whole number"}


def _check_options(options: Json, tools: Sequence[str]) -> None:
    most = options.get("max_tokens", 1)
    if most < 1:
        raise BadRequestError(f"max_tokens is {most}; it has to be 1 or more.")
    stops = options.get("stop_sequences", [])
    if not isinstance(stops, list) or not all(isinstance(each, str) and each.strip() for each in cast(Any, stops)):
        raise BadRequestError("stop_sequences has to be a list of strings with more than blanks in them.")
    for name in ("metadata", "thinking", "tool_choice", "output_config"):
        if not isinstance(options.get(name, {}), dict):
            raise BadRequestError(f"{name} is {brief(options[name])}; it has to be an object.")
    thinking, choice = options.get("thinking", {}), options.get("tool_choice")
    budget = thinking.get("budget_tokens")
    if budget is not None and not (isinstance(budget, int) and 1024 <= budget < options.get("max_tokens", budget + 1)):
        raise BadRequestError("thinking.budget_tokens has to be 1024 or more, and less than max_tokens.")
    if choice is None:
        return
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        raise BadRequestError(f"tool_choice.type is {brief(kind)}; it may be auto, any, tool or none.")
    if not tools and kind in ("any", "tool"):
        raise BadRequestError("tool_choice: may only be specified while providing tools")
    if kind == "tool" and choice.get("name") not in tools:
        raise BadRequestError(f"tool_choice.name: there is no tool {brief(choice.get('name'))} in tools.")


def _tools(given: Any) -> Iterator[Json]:
    if not isinstance(given, list):
        raise BadRequestError(f"tools is {brief(given)}; it has to be a list.")
    names: set[str] = set()
    for index, tool in enumerate(cast("list[Any]", given)):
        if not isinstance(tool, dict) or not isinstance(cast(Json, tool).get("name"), str):
            raise BadRequestError(f"tools.{index}: a tool is an object with a name.")
        found = {name: value for name, value in cast(Json, tool).items() if value is not None}
        kind = found.get("type", "custom")
        if found["name"] in names:
            raise BadRequestError("tools: Tool names must be unique.")
        names.add(found["name"])
        if kind == "custom":
            yield _custom(index, found)
        elif isinstance(kind, str) and kind.startswith(CLIENT_RUNS):
            yield _without_marks(found)
        else:
            text = f"tools.{index}.type: {brief(kind)} cannot be given by a client here. A tool that the provider runs"
            way = "belongs into the agent's YAML (tools: - server: ...); one that you run can have an input_schema"
            raise BadRequestError(f"{text} {way}.")


def _custom(index: int, tool: Json) -> Json:
    if unknown := sorted(tool.keys() - TOOL_FIELDS):
        raise BadRequestError(f"tools.{index}.{unknown[0]}: this endpoint does not know it. Leave it out.")
    if not isinstance(tool.get("input_schema"), dict):
        raise BadRequestError(f"tools.{index}.input_schema: Field required")
    if tool.get("defer_loading") or tool.get("allowed_callers", ["direct"]) != ["direct"]:
        text = (
            f"tools.{index}: defer_loading and allowed_callers need tools of the provider, which a client cannot give"
        )
        raise BadRequestError(f"{text} here. Leave them out.")
    left_out = ("type", "cache_control", "eager_input_streaming", "defer_loading", "allowed_callers")
    return {name: value for name, value in tool.items() if name not in left_out}


def _system(given: Any) -> str:
    if isinstance(given, str):
        return given
    blocks = cast("list[Any]", given)
    if not isinstance(given, list) or not all(_is_text(block) for block in blocks):
        raise BadRequestError("system has to be a string or a list of text blocks.")
    return "\n\n".join(block["text"] for block in blocks)


def _is_text(block: Any) -> bool:
    found = cast(Json, block) if isinstance(block, dict) else Json()
    return found.get("type") == "text" and isinstance(found.get("text"), str)


def _messages(given: list[Any]) -> Iterator[Message]:
    if not given:
        raise BadRequestError("messages: at least one message is required")
    if len(given) > MOST_MESSAGES:
        raise BadRequestError(f"messages: there are {len(given)}; at most {MOST_MESSAGES} are taken.")
    for index, each in enumerate(given):
        message = cast(Json, each) if isinstance(each, dict) else Json()
        if not {"role", "content"} <= message.keys():
            raise BadRequestError(f"messages.{index}: a message is an object with role and content.")
        if message["role"] not in ("user", "assistant"):
            way = (
                "Give instructions as the top-level system"
                if message["role"] == "system"
                else "It is user or assistant"
            )
            raise BadRequestError(f"messages.{index}.role is {brief(message['role'])}. {way}.")
        yield Message(message["role"], tuple(_blocks(index, message["role"], message["content"])))


def _blocks(index: int, role: str, content: Any) -> Iterator[Json]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        raise BadRequestError(
            f"messages.{index}.content is {brief(content)}; it has to be a string or a list of blocks."
        )
    if not content and role == "user":
        raise BadRequestError(f"messages.{index}: user messages must have non-empty content")
    for place, each in enumerate(cast("list[Any]", content)):
        block = cast(Json, each) if isinstance(each, dict) else Json()
        where = f"messages.{index}.content.{place}"
        if not isinstance(block.get("type"), str):
            raise BadRequestError(f"{where}: a block is an object with a type.")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            raise BadRequestError(f"{where}.text: Field required")
        if role == "user":
            yield _from_user(where, block)
        elif (found := _from_assistant(where, block)) is not None:
            yield found


def _from_user(where: str, block: Json) -> Json:
    kind = block["type"]
    if kind not in FROM_CLIENTS:
        raise BadRequestError(f"{where}: {kind!r} cannot stand in a user message here. Leave it out.")
    if kind == "tool_result" and not isinstance(block.get("tool_use_id"), str):
        raise BadRequestError(f"{where}.tool_use_id: Field required")
    return _without_marks(block)


def _from_assistant(where: str, block: Json) -> Json | None:
    """Return a block of a reply; None for what only its provider could take back."""
    kind = block["type"]
    if kind == "text":
        return {"type": kind, "text": block["text"]}
    if kind == "tool_use":
        if not all(isinstance(block.get(name), want) for name, want in (("id", str), ("name", str), ("input", dict))):
            raise BadRequestError(f"{where}: a tool_use has an id, a name and an input.")
        return {"type": kind, "id": block["id"], "name": block["name"], "input": block["input"]}
    if kind not in LEFT_OUT and not kind.endswith(RESULTS_AT_PROVIDER):
        raise BadRequestError(f"{where}: {kind!r} cannot stand in an assistant message here. Leave it out.")
    return None


def _without_marks(block: Json) -> Json:
    """Return a block without marks for a cache and without empty fields; those inside it, too."""
    found = {name: value for name, value in block.items() if name != "cache_control" and value is not None}
    inner = found.get("content")
    if isinstance(inner, list):
        found["content"] = [
            _without_marks(cast(Json, each)) if isinstance(each, dict) else each for each in cast("list[Any]", inner)
        ]
    return found


def _merged(messages: Iterator[Message]) -> Iterator[Message]:
    last: Message | None = None
    for message in messages:
        if last is not None and last.role == message.role:
            last = Message(last.role, (*last.blocks, *message.blocks))
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last


def _check_history(messages: Sequence[Message]) -> None:
    """Refuse a history whose calls and results do not pair, with the API's own words."""
    if messages[0].role != "user":
        raise BadRequestError('messages: first message must use the "user" role')
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        answered = [str(block["tool_use_id"]) for block in message.results]
        if unknown := [each for each in answered if each not in open_calls]:
            text = f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {unknown[0]}"
            raise BadRequestError(
                f"{text}. Each `tool_result` block must have a corresponding `tool_use` block before."
            )
        if len(set(answered)) < len(answered):
            raise BadRequestError(f"messages.{index}: each tool_use must have a single result.")
        if missing := [each for each in open_calls if each not in answered]:
            text = "`tool_use` ids were found without `tool_result` blocks immediately after"
            raise BadRequestError(f"messages.{index - 1}: {text}: {', '.join(missing)}")
        open_calls = [str(block["id"]) for block in message.calls]
        if len(set(open_calls)) < len(open_calls):
            raise BadRequestError(f"messages.{index}: `tool_use` ids must be unique")
    if open_calls:
        text = "`tool_use` ids were found without `tool_result` blocks immediately after"
        raise BadRequestError(f"messages.{len(messages) - 1}: {text}: {', '.join(open_calls)}")
