"""A strict stand-in for Chat Completions, in process: checks a request, answers as scripted in the chunks of a stream.

    >>> standin = ChatStandin(limit_tokens=10_000)
    >>> hello = {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    >>> [chunk["choices"][0]["delta"] for chunk in standin.create(hello, Reply("Hi."))][:2]
    [{'role': 'assistant', 'content': None}, {'content': 'Hi.'}]

It raises `Rejected` where a strict server answers 400, and counts with a tokenizer that nobody else has. Its prompt
cache has what the requests before began with, and all of a request is written to it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agents.models.chat_completions import ReplyReader
from agents.models.openai import Dialect
from agents.models.replies import RAW_JSON, Reply
from tests.standin.chat_rules import DATA_URL, check_request
from tests.standin.errors import Rejected
from tests.standin.facts import size_of
from tests.standin.reply import cut
from tests.standin.tokenizer import Tokenizer, count_block

Json = dict[str, Any]
Script = Reply | Callable[[Json], Reply]
REQUEST_TOKENS, MESSAGE_TOKENS, CALL_TOKENS, TOOL_TOKENS = 3, 4, 8, 12
PIECE_CHARACTERS = 24
KEPT_PROMPTS = 4
FINISH = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "refusal": "content_filter"}
LONG = "This model's maximum context length is {limit} tokens. However, "


class ChatStandin:
    """One server: its window, its tokenizer, its cache. `reports_usage` is off for servers that count nothing."""

    def __init__(
        self, *, limit_tokens: int, seed: int = 0, ratios: Mapping[str, float] | None = None,
        reports_usage: bool = True, message_fields: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.limit_tokens = limit_tokens
        self.tokenizer = Tokenizer(seed=seed, ratios=ratios)
        self.requests: list[Json] = []  # what was accepted
        self._reports_usage = reports_usage
        self._message_fields = message_fields
        self._prompts: list[tuple[str, int]] = []

    def create(self, body: Json, reply: Script | None = None) -> list[Json]:
        size, prompt = self.count(body), _as_text(body)
        cached = max((tokens for text, tokens in self._prompts if prompt.startswith(text)), default=0)
        size = max(size, cached)  # what is longer has no fewer tokens, however its texts were merged
        most = body.get("max_completion_tokens") or body.get("max_tokens") or self.limit_tokens
        if size > self.limit_tokens:
            text = f"your messages resulted in {size} tokens. Please reduce the length of the messages."
            raise Rejected(LONG.format(limit=self.limit_tokens) + text, code="context_length_exceeded")
        if size + most > self.limit_tokens:
            text = f"you requested {size + most} tokens ({size} in the messages, {most} in the completion)."
            raise Rejected(LONG.format(limit=self.limit_tokens) + text, code="context_length_exceeded")
        if callable(reply):
            reply = reply(body)
        self._prompts = [*self._prompts[1 - KEPT_PROMPTS :], (prompt, size)]
        self.requests.append(copy.deepcopy(body))
        blocks, was_cut = cut((reply or Reply("ok")).blocks, most, self._size)
        stop = "length" if was_cut else FINISH.get((reply or Reply("ok")).stop_reason, "length")
        usage = {
            "prompt_tokens": size, "completion_tokens": sum(map(self._size, blocks)), "total_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": size - cached},
        }  # fmt: skip
        asked = self._reports_usage and body.get("stream_options", {}).get("include_usage")
        return list(_chunks(f"chatcmpl-{len(self.requests)}", body["model"], blocks, stop, usage if asked else None))

    def count(self, body: Json) -> int:
        check_request(body, fields=self._message_fields)
        return (
            REQUEST_TOKENS
            + sum(map(self._tool_tokens, body.get("tools", ())))
            + sum(map(self._tokens, body["messages"]))
        )

    def _tool_tokens(self, tool: Json) -> int:
        return TOOL_TOKENS + self.tokenizer.text(json.dumps(tool["function"], ensure_ascii=False))

    def _tokens(self, message: Json) -> int:
        content = message["content"] or []
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said = sum(self.tokenizer.tokens(count_block(_block(part))) for part in parts)
        calls = [call["function"] for call in message.get("tool_calls", ())]
        called = sum(self.tokenizer.text(f"{each['name']} {each['arguments']}") + CALL_TOKENS for each in calls)
        return MESSAGE_TOKENS + said + called

    def _size(self, block: Json) -> int:
        if block.get("tokens") is not None:
            return block["tokens"]
        return self.tokenizer.tokens(size_of(block)) + (CALL_TOKENS if block["type"] == "tool_use" else 0)


def _block(part: Json) -> Json:
    """Return a part as the block that the tokenizer counts."""
    if part["type"] == "text":
        return part
    url = part["image_url"]["url"] if part["type"] == "image_url" else part["file"]["file_data"]
    found = DATA_URL.fullmatch(url)
    source = {"type": "base64", "data": found[2]} if found else {"type": "url"}
    return {"type": "image" if part["type"] == "image_url" else "document", "source": source}


def _as_text(body: Json) -> str:
    """Return what the model's template would make of a request, without what ends a message."""
    texts = [json.dumps(body.get("tools")), *(f"\n<{each['role']}>\n{_said(each)}" for each in body["messages"])]
    return "".join(texts)


def _said(message: Json) -> str:
    content = message["content"] or ""
    parts = [content] if isinstance(content, str) else [part.get("text") or json.dumps(part) for part in content]
    return "\n\n".join(parts) + "".join(json.dumps(call) for call in message.get("tool_calls", ()))


def _chunks(name: str, model: str, blocks: list[Json], finish: str, usage: Json | None) -> Iterator[Json]:
    about = {"id": name, "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        return {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    yield chunk({"role": "assistant", "content": None})
    place = 0
    for block in blocks:
        if block["type"] == "tool_use":
            function = {"name": block["name"], "arguments": ""}
            call = {"index": place, "id": block.get("id") or f"call_{name[9:]}_{place}", "type": "function"}
            yield chunk({"tool_calls": [{**call, "function": function}]})
            text = block.get(RAW_JSON, json.dumps(block["input"], ensure_ascii=False))
            text = text[:-1] if finish == "length" and block is blocks[-1] else text
            for piece in _pieces(text):
                yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
            place += 1
        elif block["type"] in ("text", "thinking"):
            field = "content" if block["type"] == "text" else "reasoning_content"
            yield from (chunk({field: piece}) for piece in _pieces(block[block["type"]]))
    yield chunk({}, finish)
    if usage:
        yield {**about, "choices": [], "usage": usage}


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), PIECE_CHARACTERS)]


class StoredForm(ChatStandin):
    """The same behind the forms of the Messages API, as `OpenAIModel` is: what the laws are tried with."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.replies: list[Json] = []

    def create(self, params: Json, reply: Script | None = None) -> Json:  # type: ignore[override]
        reader = ReplyReader()
        for chunk in super().create(_body(params), _sayable(reply) if isinstance(reply, Reply) else reply):
            list(reader.add(chunk))
        message = reader.finish(params["model"]).message
        self.replies.append(message)
        return message

    def count_tokens(self, params: Json) -> int:
        return self.count(_body({"max_tokens": 1, **params}))


def _body(params: Json) -> Json:
    return {**Dialect().body(params), "model": params["model"], "stream": True}


def _sayable(reply: Reply) -> Reply:
    """Return a reply without what no server of Chat Completions says: its own tools, pauses, hidden thinking."""
    blocks = [block for block in reply.blocks if block["type"] in ("text", "thinking", "tool_use")]
    stop = "end_turn" if reply.stop_reason == "pause_turn" else reply.stop_reason
    return Reply(*blocks, stop_reason=stop)
