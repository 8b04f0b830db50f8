"""The Messages API, in process: checks a request as strictly as the real one, answers as scripted, and bills.

`create` takes the parameters of `client.messages.create` as plain JSON values and gives the message as plain JSON
values; a server needs to put nothing but HTTP around it. Where the documentation leaves something open, the
stand-in takes the stricter reading.

    >>> standin = Standin(limit_tokens=10_000)
    >>> hello = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
    >>> standin.create(hello, Reply("Hi."))["content"]
    [{'type': 'text', 'text': 'Hi.'}]
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from agents.models.replies import Reply
from agents.models.simulated import PromptCache
from tests.standin.errors import Rejected
from tests.standin.facts import MessageFacts, block_facts, digest, frozen, message_facts, size_of, thought_digest
from tests.standin.prompt import CALL_TOKENS, Prompt, Signer
from tests.standin.reply import Block, cut
from tests.standin.rules import PREFILL, check_conversation, check_marks, check_params
from tests.standin.tokenizer import Tokenizer

Script = Reply | Callable[[dict[str, Any]], Reply]
END_TOKENS = 2  # what a reply costs beyond its content


class Standin:
    """One account at the provider: its window, its tokenizer, its cache, and the paused turns it remembers.

    `ratios` fixes some of the tokenizer's ratios (words, digits, other, code, media). `max_tokens_count=False` behaves
    like the newest models: input and max_tokens together may exceed the window, and a reply that reaches its end stops
    with model_context_window_exceeded. `minutes` is the cache's clock, which whoever tests moves.
    """

    def __init__(
        self,
        *,
        limit_tokens: int,
        seed: int = 0,
        ratios: Mapping[str, float] | None = None,
        cache_min_tokens: int = 1_024,
        max_tokens_count: bool = True,
        duplicate_ids: bool = False,
    ) -> None:
        self.limit_tokens = limit_tokens
        self.tokenizer = Tokenizer(seed=seed, ratios=ratios)
        self.requests: list[dict[str, Any]] = []  # what was accepted, as it was then
        self.replies: list[dict[str, Any]] = []  # what was answered to it
        self.minutes = 0.0
        self._signer = Signer(digest(b"secret", str(seed).encode()))
        self._cache = PromptCache(minimum_tokens=cache_min_tokens, now=lambda: 60 * self.minutes)
        self._max_tokens_count = max_tokens_count
        self._duplicate_ids = duplicate_ids
        self._paused: set[bytes] = set()

    def count_tokens(self, params: dict[str, Any]) -> int:
        """As POST /v1/messages/count_tokens: all checks but the window's."""
        return self._read(params, creates=False)[0].tokens

    def create(self, params: dict[str, Any], reply: Script | None = None) -> dict[str, Any]:
        prompt, messages, call_ids = self._read(params, creates=True)
        room = self._room(prompt.tokens, params["max_tokens"])
        if callable(reply):
            reply = reply(params)
        usage = self._cache.bill(prompt.blocks)  # before the reply is added: it is no input
        once = prompt.tokens
        message = self._say(reply or Reply("ok"), prompt, room, params, call_ids)
        # Each of its own tools ends a pass of the model, and the next pass reads everything again: usage is the sum.
        passes = sum(block["type"].endswith("_tool_result") for block in message["content"])
        if passes:
            usage["cache_read_input_tokens"] += passes * once
            usage["server_tool_use"] = {"web_search_requests": passes, "web_fetch_requests": 0}
        message["usage"] = {**usage, "output_tokens": message["usage"], "service_tier": "standard"}
        rest = {name: value for name, value in params.items() if name != "messages"}
        self.requests.append({**copy.deepcopy(rest), "messages": [each.copy for each in messages]})
        self.replies.append(message)
        return message

    def _read(self, params: dict[str, Any], *, creates: bool) -> tuple[Prompt, list[MessageFacts], set[str]]:
        check_params(params, creates=creates)
        prompt = Prompt(self.tokenizer, self._signer)
        marks = prompt.open(params)
        messages = [message_facts(frozen(message), index) for index, message in enumerate(params["messages"])]
        call_ids = check_conversation(messages, has_tools=bool(params.get("tools")))
        for index, message in enumerate(messages):
            for place, block in enumerate(message.blocks):
                if block.mark:
                    marks.append((f"messages.{index}.content.{place}", block))
        check_marks(marks)
        for index, message in enumerate(messages):
            prompt.add_message(message, index)
        if messages[-1].role == "assistant" and prompt.whole not in self._paused:
            raise Rejected(PREFILL)
        return prompt, messages, call_ids

    def _room(self, tokens: int, max_tokens: int) -> int:
        if tokens > self.limit_tokens:
            raise Rejected(f"prompt is too long: {tokens} tokens > {self.limit_tokens} maximum")
        if self._max_tokens_count and tokens + max_tokens > self.limit_tokens:
            raise Rejected(
                f"input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > {self.limit_tokens},"
                " decrease input length or `max_tokens` and try again"
            )
        return min(max_tokens, self.limit_tokens - tokens)

    def _say(
        self, reply: Reply, prompt: Prompt, room: int, params: dict[str, Any], call_ids: set[str]
    ) -> dict[str, Any]:
        blocks, was_cut = cut(reply.blocks, room - END_TOKENS, self._size)
        stop_reason = reply.stop_reason
        if was_cut:
            stop_reason = "max_tokens" if room == params["max_tokens"] else "model_context_window_exceeded"
        used = sum(map(self._size, blocks)) + END_TOKENS
        name = digest(prompt.whole, str(len(self.requests)).encode()).hex()
        content = self._finish(blocks, prompt, name, call_ids)
        if stop_reason == "pause_turn":
            self._paused.add(prompt.whole)
        details = {"type": "refusal", "category": None, "explanation": None}
        return {
            "id": f"msg_{name[:24]}",
            "type": "message",
            "role": "assistant",
            "model": params["model"],
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None if was_cut else reply.stop_sequence,
            "stop_details": details if stop_reason == "refusal" else None,
            "usage": used,
        }

    def _size(self, block: Block) -> int:
        if block.get("tokens") is not None:
            return block["tokens"]
        overhead = CALL_TOKENS if block["type"] == "tool_use" else 0
        return self.tokenizer.tokens(size_of(block)) + overhead

    def _finish(self, blocks: list[Block], prompt: Prompt, name: str, call_ids: set[str]) -> list[Block]:
        """Ids and signatures, in order: each signature is bound to the blocks before it."""
        content: list[Block] = []
        server_call = None
        for index, block in enumerate(blocks):
            said = {key: value for key, value in block.items() if key != "tokens"}
            if said["type"] == "tool_use":
                said["id"] = said.get("id") or f"toolu_{digest(name.encode(), str(index).encode()).hex()[:24]}"
                said.setdefault("caller", {"type": "direct"})
                if said["id"] in call_ids and not self._duplicate_ids:
                    raise ValueError(f"the id {said['id']!r} is taken; that needs Standin(duplicate_ids=True)")
                call_ids.add(said["id"])
            elif said["type"] == "server_tool_use":
                server_call = said["id"] = said["id"] or f"srvtoolu_{name[:20]}{index:04}"
            elif said["type"].endswith("_tool_result"):
                said["tool_use_id"] = said["tool_use_id"] or server_call
            elif said["type"] in {"thinking", "redacted_thinking"}:
                field = "signature" if said["type"] == "thinking" else "data"
                said[field] = prompt.sign(thought_digest(said), self._size(block))
            content.append(said)
            prompt.add_reply(block_facts(said))
        return content
