"""Signatures that bind a thinking block to everything before it.

As documented for current models: a block is valid while tools, system and every earlier message are what they
were when it was made, and while the thinking block that then stood before it still does, or it is now the first
(the oldest thinking may be left out, and all of it; what stands between others may not). Moving a cache mark
changes nothing. A signature carries all it needs, so a stand-in of the same seed in another process knows it.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from hashlib import blake2b

from tests.standin.errors import Rejected

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
