"""The wire form of Chat Completions: a request, made of the stored form, and a reply, read from a stream. Pure.

The stored form is that of the Messages API. Neighbours of one role become one message here, and only here.

Reasoning is stored as thinking without a signature, which is not sent back. Where a server wants it back, its
signature is the name of the field under which it goes.
"""

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, cast

from agents.events import Text, Thinking
from agents.models.model import FinishedReply, Json, ModelRefusedError, ModelUnavailableError
from agents.models.simulated import as_blocks

NO_TEXT = "(no text)"
FILES_FOLLOW = "(Its images and files follow behind the results.)"
MOST_NAME_CHARS = 64  # of a function
MOST_ID_CHARS = 40  # of a call; some servers give longer ones
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")  # in which servers send it
REASONING_BACK = "reasoning_content"  # in which some want it back
THINK, END_OF_THINK = "<think>", "</think>"
STOP_REASONS = {
    **dict.fromkeys(("length", "max_tokens"), "max_tokens"),
    **dict.fromkeys(("model_length", "model_context_window_exceeded"), "model_context_window_exceeded"),
    **dict.fromkeys(("content_filter", "refusal", "sensitive"), "refusal"),
}
# How servers end a reply that they could not finish.
BROKEN_OFF = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})
SAMPLING = {"temperature": "temperature", "top_p": "top_p", "stop_sequences": "stop"}
TOOL_CHOICES = {"auto": "auto", "none": "none", "any": "required"}


def request_body(params: Json, *, reasoning_back: bool = False) -> Json:
    """Return a request in the form of Chat Completions, all but model and limits. Neighbours of one role are merged.

    With `reasoning_back` every reply that has calls carries the field for it, which may be empty.
    """
    system = "\n\n".join(block["text"] for block in as_blocks(params.get("system")))
    messages: list[Json] = [{"role": "system", "content": system}] if system else []
    for message in params["messages"]:
        blocks = as_blocks(message["content"])
        if message["role"] == "assistant":
            new = _assistant_messages(blocks)
        else:
            new = _user_messages(blocks, messages[-1].get("tool_calls", []) if messages else [])
        for each in new:
            last = messages[-1] if messages else {}
            if last.get("role") == each["role"] in ("user", "assistant") and "tool_calls" not in last:
                messages[-1] = {**last, **each, "content": [*last["content"], *each["content"]]}
            else:
                messages.append(each)
    for message in messages:
        if isinstance(message["content"], list):
            message["content"] = _content(cast("list[Json]", message["content"]))
        if reasoning_back and "tool_calls" in message:
            message.setdefault(REASONING_BACK, "")
    body: Json = {"messages": messages}
    if tools := params.get("tools"):
        body["tools"] = [_tool(tool) for tool in tools]
    return body | _options(params)


def _options(params: Json) -> Json:
    """Return what a request says of its reply, but for its length."""
    found: Json = {wire: params[name] for name, wire in SAMPLING.items() if name in params}
    if choice := params.get("tool_choice"):
        named = {"type": "function", "function": {"name": choice.get("name")}}
        found["tool_choice"] = TOOL_CHOICES.get(choice["type"], named)
        if choice.get("disable_parallel_tool_use"):
            found["parallel_tool_calls"] = False
    return found


def _user_messages(blocks: list[Json], calls: list[Json]) -> Iterator[Json]:
    """Yield the results, each as a message of its own, then everything else. Results are text: files stand behind.

    They are in the order of their calls: some models' templates pair them by nothing else.
    """
    places = {call["id"]: place for place, call in enumerate(calls)}
    others: list[Json] = []
    for block in sorted(blocks, key=lambda block: places.get(_wire_id(block.get("tool_use_id") or ""), len(places))):
        if block["type"] != "tool_result":
            others += _parts(block)
            continue
        parts = [part for inner in as_blocks(block.get("content")) for part in _parts(inner)]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        files = [part for part in parts if part["type"] != "text"]
        text = "\n\n".join([*texts, FILES_FOLLOW] if files else texts) or NO_TEXT
        content = f"Error: {text}" if block.get("is_error") else text
        yield {"role": "tool", "tool_call_id": _wire_id(block["tool_use_id"]), "content": content}
        others += files
    if others:
        yield {"role": "user", "content": others}


def _assistant_messages(blocks: list[Json]) -> Iterator[Json]:
    """Yield the reply. What another provider's server tools did stays on disk."""
    texts = [part for block in blocks if block["type"] == "text" for part in _parts(block)]
    message: Json = {"role": "assistant", "content": texts}
    if back := [block["thinking"] for block in blocks if block.get("signature") == REASONING_BACK]:
        message[REASONING_BACK] = "\n\n".join(back)
    calls = [
        {
            "type": "function", "id": _wire_id(block["id"]),
            "function": {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)},
        }
        for block in blocks if block["type"] == "tool_use"
    ]  # fmt: skip
    if calls:
        message["tool_calls"] = calls
    elif not message["content"]:
        message["content"] = [{"type": "text", "text": NO_TEXT}]
    yield message


def _wire_id(call_id: str) -> str:
    return call_id if len(call_id) <= MOST_ID_CHARS else blake2b(call_id.encode(), digest_size=20).hexdigest()


def _parts(block: Json) -> list[Json]:
    """Return what a content block of a user message or a result is on this wire."""
    source = cast(Json, block.get("source") if isinstance(block.get("source"), dict) else {})
    data_url = f"data:{source.get('media_type')};base64,{source.get('data')}"
    about = [str(block[name]) for name in ("title", "context") if block.get(name)]
    match block["type"], source.get("type"):
        case "text", _:
            return [{"type": "text", "text": block["text"]}]
        case "image", "base64" | "url" as kind:
            url = data_url if kind == "base64" else source["url"]
            return [{"type": "image_url", "image_url": {"url": url}}]
        case "document", "base64":
            name = f"{block.get('title') or 'document'}.pdf"
            return [{"type": "file", "file": {"filename": name, "file_data": data_url}}]
        case "document", "text" | "content":
            inner = as_blocks(source.get("data") or source.get("content"))
            heading = [{"type": "text", "text": "\n".join(about)}] if about else []
            return [*heading, *(part for each in inner for part in _parts(each))]
        case _:  # a search result, or a file that only its provider has
            plain = {name: value for name, value in block.items() if name != "cache_control"}
            return [{"type": "text", "text": json.dumps(plain, ensure_ascii=False)}]


def _content(parts: list[Json]) -> str | list[Json] | None:
    """Return texts as one text, which every server takes; None for a reply of calls alone."""
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts) or None


def _tool(tool: Json) -> Json:
    name = str(tool["name"])
    if tool.get("type", "custom") != "custom":
        why = "is a tool of the Messages API, which no server of Chat Completions has"
        raise ModelRefusedError(f"{name} {why}: remove it, or use another model.provider.")
    if len(name) > MOST_NAME_CHARS:
        limit = f"Chat Completions takes {MOST_NAME_CHARS}"
        raise ModelRefusedError(f"the tool {name} has a name of {len(name)} characters; {limit}. Rename it.")
    parameters: Json = {"properties": {}, **_schema(tool["input_schema"])}
    about = {"description": tool["description"]} if tool.get("description") else {}
    return {"type": "function", "function": {"name": name, **about, "parameters": parameters}}


def _schema(schema: Any) -> Any:
    """Return a schema in which every array says what it holds: OpenAI's server refuses others."""
    if isinstance(schema, list):
        return [_schema(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _schema(value) for key, value in cast(Json, schema).items()}
    return {**inner, "items": {}} if inner.get("type") == "array" and "items" not in inner else inner


class ReplyReader:
    """Reads the chunks of a streamed reply. `signature` is that of the thinking in it, if it is to be sent back."""

    def __init__(self, signature: str = "") -> None:
        self._signature = signature
        self._thinking = self._text = self._refusal = ""
        self._told = 0, 0  # how much was yielded of the reasoning in the text, and of the rest
        self._calls: list[Json] = []
        self._by_index: dict[Any, Json] = {}
        self._finish: str | None = None
        self._usage: Json = {}
        self._about: Json = {}

    def add(self, chunk: Json) -> Iterator[Text | Thinking]:
        """Take a chunk in, and yield what it says."""
        self._about = self._about or chunk
        self._usage = chunk.get("usage") or self._usage
        for choice in (chunk.get("choices") or ())[:1]:
            self._finish = choice.get("finish_reason") or self._finish
            delta: Json = choice.get("delta") or {}
            reasoning = next((delta[name] for name in REASONING_FIELDS if delta.get(name)), "")
            content = delta.get("content") or ""
            if isinstance(content, list):  # parts, as Mistral sends them
                parts = cast("list[Json]", content)
                reasoning = "".join(_text_of(part["thinking"]) for part in parts if part.get("thinking"))
                content = _text_of(parts)
            if reasoning:
                self._thinking += reasoning
                yield Thinking(reasoning)
            self._text += content
            yield from self._news()
            if refusal := delta.get("refusal"):
                self._refusal += refusal
                yield Text(refusal)
            for call in delta.get("tool_calls") or ():
                self._add_call(call)

    def _news(self) -> Iterator[Text | Thinking]:
        """Yield what is new of the text, and of the reasoning that it begins with."""
        thought, said = _split(self._text, is_whole=self._finish is not None)
        for kind, text, told in ((Thinking, thought, self._told[0]), (Text, said, self._told[1])):
            if len(text) > told:
                yield kind(text[told:])
        self._told = len(thought), len(said)

    def _add_call(self, delta: Json) -> None:
        """Add to the call that a piece belongs to. Servers differ: some send all calls whole, under one index."""
        function: Json = delta.get("function") or {}
        name, arguments, call_id = function.get("name"), function.get("arguments"), delta.get("id")
        call = self._by_index.get(delta.get("index"))
        other = call and name and (call_id != call["id"] if call_id else _arguments(call["arguments"]) is not None)
        if call is None or other:
            call = self._by_index[delta.get("index")] = {"id": call_id, "name": "", "arguments": ""}
            self._calls.append(call)
        call["name"] = call["name"] or name or ""
        call["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""

    def finish(self, model: str) -> FinishedReply:
        """Return the reply in the stored form. Raise ModelUnavailableError if its end is missing."""
        if not self._about:
            what = "no reply began; does a server of Chat Completions answer at model.base_url?"
            raise ModelUnavailableError(what)
        if self._finish is None or self._finish in BROKEN_OFF:
            raise ModelUnavailableError("the reply broke off before its end")
        thought, said = _split(self._text, is_whole=True)
        blocks: list[Json] = []
        if (thought := self._thinking + thought).strip():
            signed = {"signature": self._signature} if self._signature else {}
            blocks.append({"type": "thinking", "thinking": thought, **signed})
        if said := said + self._refusal:
            blocks.append({"type": "text", "text": said})
        inputs = [_arguments(call["arguments"]) for call in self._calls]
        for call, given in zip(self._calls, inputs, strict=True):
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": given or {}})
        ordinary = "tool_use" if self._calls else "end_turn"  # "stop" is also said of calls
        stop = "refusal" if self._refusal else STOP_REASONS.get(self._finish, ordinary)
        message: Json = {
            "id": self._about.get("id"), "type": "message", "role": "assistant",
            "model": str(self._about.get("model") or model), "content": blocks, "stop_reason": stop,
            "stop_sequence": None, "usage": _usage(self._usage),
        }  # fmt: skip
        return FinishedReply(message, tuple(place for place, given in enumerate(inputs) if given is None))


def _split(text: str, *, is_whole: bool) -> tuple[str, str]:
    """Return the reasoning that some servers leave in the text, between tags at its beginning, and what is said."""
    begun = text.lstrip()
    if begun.startswith(THINK):
        thought, tag, said = begun.removeprefix(THINK).partition(END_OF_THINK)
        return thought if tag or is_whole else thought[: -len(END_OF_THINK)], said.lstrip()
    return "", text if is_whole or not THINK.startswith(begun) else ""


def _text_of(parts: Any) -> str:
    return parts if isinstance(parts, str) else "".join(str(part.get("text") or "") for part in parts)


def _arguments(text: str) -> Json | None:
    """Return a call's arguments; None if they are not a JSON object."""
    try:
        given = json.loads(text or "{}", parse_constant=int)  # int refuses NaN and Infinity
    except (ValueError, RecursionError):
        return None
    return cast(Json, given) if isinstance(given, dict) else None


def _usage(usage: Json) -> Json | None:
    """Return the usage in the stored form, where cached input is no part of the input; None if nothing was counted."""
    details: Json = usage.get("prompt_tokens_details") or {}
    whole = usage.get("prompt_tokens")
    if not isinstance(whole, int) or whole <= 0:
        return None
    read = min(whole, details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0)
    written = max(0, min(whole - read, details.get("cache_write_tokens") or 0))
    return {
        "input_tokens": whole - read - written, "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
        "output_tokens": usage.get("completion_tokens") or 0,
    }  # fmt: skip
