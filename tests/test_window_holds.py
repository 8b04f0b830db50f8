"""Law 1 where it was once broken: images without a provider's count, and replies that cost more than they show."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest

from pager import Limits, Memory
from tests.standin import Reply, Standin, call, thinking

Json = dict[str, Any]
RATIOS = {"words": 1.6, "digits": 1.6, "other": 1.6, "code": 1.6}


def whole_input(reply: Json) -> int:
    said = reply["usage"]
    return said["input_tokens"] + said["cache_read_input_tokens"] + said["cache_creation_input_tokens"]


def image(side: int) -> Json:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    data = base64.b64encode(header).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


@pytest.mark.parametrize(("window", "count"), [(100_000, 18), (100_000, 24), (60_000, 12), (200_000, 45)])
def test_many_images_fit_without_a_provider_that_counts(tmp_path: Path, window: int, count: int) -> None:
    standin = Standin(limit_tokens=window, ratios=dict.fromkeys(RATIOS, 1.0) | {"media": 1.2})
    with Memory.open(tmp_path, embedder=None, limits=Limits.for_window(window)) as memory:
        memory.append_user([{"type": "text", "text": "look"}, *(image(2000) for _ in range(count))])
        reply = standin.create({"model": "m", **memory.request().params}, Reply("seen"))
    assert whole_input(reply) > 0.2 * window, "as many stay in view as fit"


@pytest.mark.parametrize("odd", [thinking("", tokens=900), thinking("hm", tokens=400)])
def test_what_was_thought_and_not_shown_teaches_no_wrong_ratio(tmp_path: Path, odd: Json) -> None:
    window = 6000
    standin = Standin(limit_tokens=window, ratios=RATIOS)
    with Memory.open(tmp_path, embedder=None, limits=Limits.for_window(window)) as memory:
        for number in range(40):
            memory.append_user(f"{number}: " + "the harbour was quiet and grey that morning " * 8)
            size = memory.request()
            reply = standin.create({"model": "m", **size.params}, Reply(odd) if number % 2 else Reply(odd, "Yes."))
            assert whole_input(reply) <= size.tokens + size.margin
            memory.append_assistant(reply)


def test_five_thousand_small_blocks_are_no_large_message(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.append_user([{"type": "text", "text": "hi"}] * 5000)
        standin = Standin(limit_tokens=100_000, ratios=RATIOS)
        standin.create({"model": "m", **memory.request().params}, Reply("hi"))


def test_a_turn_is_open_while_a_call_is(tmp_path: Path) -> None:
    standin = Standin(limit_tokens=100_000)
    tool = {"name": "look", "input_schema": {"type": "object"}}
    with Memory.open(tmp_path, embedder=None, tools=[tool]) as memory:
        memory.append_user("go")
        for _ in range(3):
            reply = Reply.cut_call("look", {}, call("look", {}))
            memory.append_assistant(standin.create({"model": "m", **memory.request().params}, reply))
            assert memory.turn_is_open
            memory.append_result(memory.open_calls[0].id, "nothing")
        assert not memory.turn_is_open
