"""What stands in the messages of a request, and that a conversation goes on."""

from __future__ import annotations

import base64
import struct
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


def image(width: int, height: int | None = None) -> Json:
    """An image, a square one without a height, of which only the size is real."""
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">IIBBBBB", width, height or width, 8, 2, 0, 0, 0)
    data = base64.b64encode(header).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
