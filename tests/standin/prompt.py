"""A request read from its first tool to its last block: sizes, digests, and the check of each thinking block.

Two digests run along. One is of all but thinking: what a thinking block is bound to. The other is of everything:
what the prompt cache and a paused turn know. Both see the roles change, not where a message ends: the API merges
consecutive messages of one role.

As documented for current models a thinking block is valid while tools, system and every earlier message are what they
were when it was made, and while the thinking block that then stood before it still does, or it is now the first (the
oldest thinking may be left out, and all of it; what stands between others may not). Moving a cache mark changes
nothing. A signature carries all it needs, so a stand-in of the same seed in another process knows it.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from agents.models.simulated import BlockEnd
from tests.standin.errors import Rejected
from tests.standin.facts import BlockFacts, MessageFacts, digest, frozen, system_facts, tool_facts
from tests.standin.tokenizer import Tokenizer

REQUEST_TOKENS = 3
MESSAGE_TOKENS = 4
TOOL_TOKENS = 12
TOOLS_TOKENS = 290  # what the provider writes in front of tools
MEMORY_TOOL_TOKENS = 1_600  # and for its own memory tool
CALL_TOKENS = 8
NOBODY = bytes(8)  # before the first thinking block
_MAC_BYTES = 12
_INVALID = "Invalid `signature` in `thinking` block"
_BOUND = (
    f"{_INVALID}. The block is bound to a different conversation. Remove the block, or set"
    ' `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


@dataclass(frozen=True, slots=True)
class Signed:
    prefix: bytes  # digest of everything before the block but thinking
    before: bytes  # name of the thinking block before it
    thought: bytes  # digest of its own text
    tokens: int
    name: bytes  # what the next block's `before` says


class Signer:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, *, prefix: bytes, before: bytes, thought: bytes, tokens: int) -> str:
        content = prefix + before + thought + tokens.to_bytes(4, "big")
        return base64.b64encode(content + self._mac(content)).decode()

    def _mac(self, content: bytes) -> bytes:
        return blake2b(content, key=self._secret, digest_size=_MAC_BYTES).digest()

    def read(self, signature: str) -> Signed | None:
        """None when it is not one of ours."""
        try:
            raw = base64.b64decode(signature, validate=True)
        except (binascii.Error, ValueError):
            return None
        content, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        if len(content) != 44 or mac != self._mac(content):
            return None
        name = blake2b(raw, digest_size=8).digest()
        return Signed(content[:16], content[16:24], content[24:40], int.from_bytes(content[40:], "big"), name)

    def check(self, at: str, signature: str, *, prefix: bytes, before: bytes, thought: bytes) -> Signed:
        signed = self.read(signature)
        if signed is None or signed.thought != thought:
            raise Rejected(f"{at}: {_INVALID}")
        if signed.prefix != prefix or before not in {NOBODY, signed.before}:
            raise Rejected(f"{at}: {_BOUND}")
        return signed


class Prompt:
    """Grows block by block. `blocks` is the prompt as the cache sees it, `tokens` its size so far."""

    def __init__(self, tokenizer: Tokenizer, signer: Signer) -> None:
        self.blocks: list[BlockEnd] = []
        self.tokens = REQUEST_TOKENS
        self.said = b""  # digest of all but thinking
        self.whole = b""  # digest of all
        self.thought_before = NOBODY
        self._tokenizer = tokenizer
        self._signer = signer
        self._role = ""

    def open(self, params: dict[str, Any]) -> list[tuple[str, BlockFacts]]:
        """Tools and system, with the places of what may carry a mark."""
        self.whole = digest(params["model"].encode())
        tools = [tool_facts(frozen(tool)) for tool in params.get("tools") or ()]
        self.tokens += TOOLS_TOKENS if tools else 0
        for tool in tools:
            self._add(tool, MEMORY_TOOL_TOKENS if tool.kind == "memory tool" else TOOL_TOKENS)
        self._divide(b"system")
        system = system_facts(params.get("system") or [])
        for block in system:
            self._add(block, 0)
        self._divide(b"messages")
        settings = repr((params.get("thinking"), params.get("tool_choice")))
        self.whole = digest(self.whole, settings.encode())
        places = [(f"tools.{index}", tool) for index, tool in enumerate(tools)]
        return places + [(f"system.{index}", block) for index, block in enumerate(system)]

    def add_message(self, message: MessageFacts, index: int) -> None:
        overhead = MESSAGE_TOKENS
        self.take_role(message.role)
        for place, block in enumerate(message.blocks):
            if block.signature is None:
                self._add(block, overhead + (CALL_TOKENS if block.kind.startswith("tool_") else 0))
            else:
                self._add_thinking(block, f"messages.{index}.content.{place}", overhead)
            overhead = 0

    def add_reply(self, block: BlockFacts) -> None:
        self.take_role("assistant")
        if block.signature is not None:
            signed = self._signer.read(block.signature)
            self.thought_before = signed.name if signed else NOBODY
            self.whole = digest(self.whole, block.content)
        else:
            self._add(block, 0)

    def sign(self, thought: bytes, tokens: int) -> str:
        """The signature of a thinking block that comes next."""
        self.take_role("assistant")
        return self._signer.sign(prefix=self.said, before=self.thought_before, thought=thought, tokens=tokens)

    def take_role(self, role: str) -> None:
        if role != self._role:
            self._role = role
            self._divide(role.encode())

    def _add(self, block: BlockFacts, overhead: int) -> None:
        self.said = digest(self.said, block.content)
        self.whole = digest(self.whole, block.content)
        self.tokens += self._tokenizer.tokens(block.counts) + overhead
        self.blocks.append(BlockEnd(self.whole, self.tokens, block.mark))

    def _add_thinking(self, block: BlockFacts, at: str, overhead: int) -> None:
        signature, before = block.signature or "", self.thought_before
        signed = self._signer.check(at, signature, prefix=self.said, before=before, thought=block.thought)
        self.thought_before = signed.name
        self.whole = digest(self.whole, block.content)
        self.tokens += signed.tokens + overhead
        self.blocks.append(BlockEnd(self.whole, self.tokens, None))

    def _divide(self, name: bytes) -> None:
        self.said = digest(self.said, b"|", name)
        self.whole = digest(self.whole, b"|", name)
