"""What stands in the messages of a request, and that a conversation goes on."""

from __future__ import annotations

import base64
import struct
import zlib
from functools import lru_cache
from typing import Any

from pager.types import Json
from tests.standin import call, thinking
from tests.support import Talk

WEATHER = call("weather", {"city": "Porto"})


def goes_on(talk: Talk, *, after_reopening: bool = True) -> list[Json]:
    """The conversation goes on with a valid request, in this process and in the next; that request's messages."""
    talk.ask("and then?", "go on")
    messages = talk.standin.requests[-1]["messages"]
    assert not talk.memory.check()
    if after_reopening:
        talk.reopen()
        talk.ask("still there?", thinking("hm"), "yes")
        talk.ask("good", "good")
        assert not talk.memory.check()
    return messages


def said_by(messages: list[Json], role: str) -> list[Any]:
    return [block for message in messages if message["role"] == role for block in message["content"]]


def texts(messages: list[Json], role: str = "assistant") -> list[str]:
    return [block["text"] for block in said_by(messages, role) if block["type"] == "text"]


def kinds(messages: list[Json], role: str = "assistant") -> list[str]:
    return [block["type"] for block in said_by(messages, role)]


@lru_cache(maxsize=500)
def png(width: int, height: int) -> bytes:
    """A black image, a bit for each pixel."""
    rows = zlib.compress(bytes((1 + (width + 7) // 8) * height), 1)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    parts = (struct.pack(">I", len(data)) + kind + data + crc(kind + data) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def crc(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


def image_of(data: bytes, media_type: str = "image/png") -> Json:
    """A block with a file in it, whatever it is."""
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def image(width: int, height: int | None = None) -> Json:
    """An image, a square one without a height."""
    return image_of(png(width, height or width))


def core_of(params: Json) -> str:
    """Return the element with which a request shows core."""
    text: str = params["messages"][0]["content"][0]["text"]
    assert text.startswith("<core>")
    return text
