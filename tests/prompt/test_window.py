"""Rendering: it only concatenates, and marks stand where the cache finds them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.prompt import render as window
from pager.store.rows import Epoch, Part, Step
from pager.types import Counts, Json
from tests.standin import Reply, call, thinking
from tests.support import Talk

TEXT = {"type": "text", "text": "a"}
THOUGHT = {"type": "thinking", "thinking": "", "signature": "s"}


def epoch(ttl: str | None = None, **more: Any) -> Epoch:
    system = [{"type": "text", "text": name, "cache_control": window.cache_mark(ttl)} for name in ("how", "core")]
    return Epoch(1, 0, more.pop("tools", []), system, more.pop("preamble", []), [], {"cache_ttl": ttl}, {}, "", **more)


def steps_of(shapes: list[tuple[str, list[bool]]]) -> list[Step]:
    """User steps, and replies (a block is thinking or not) with a call and its result."""
    steps: list[Step] = []
    number = 0
    for index, (kind, thoughts) in enumerate(shapes, start=1):
        parts = []
        for thought in thoughts if kind == "assistant" else [False]:
            number += 1
            slot = "reply" if kind == "assistant" else "user"
            parts.append(Part(number, "said", slot, dict(THOUGHT if thought else TEXT, n=number), Counts()))  # type: ignore[arg-type]
        if kind == "assistant":
            for slot, block in (
                ("reply", {"type": "tool_use", "id": f"c{index}"}),
                ("result", {"type": "tool_result", "tool_use_id": f"c{index}"}),
            ):
                number += 1
                parts.append(Part(number, "said", slot, block, Counts()))  # type: ignore[arg-type]
        steps.append(Step(index, kind, 1, 0, parts, []))  # type: ignore[arg-type]
    return steps


SHAPES = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.lists(st.booleans(), max_size=3)), min_size=1, max_size=6
)


def joined(steps: list[Step], of: Epoch) -> window.Messages:
    messages = window.preamble_messages(of)
    for step in steps:
        messages.extend(window.step_messages(step))
    return messages


def marks(params: Json) -> list[Json]:
    content = [*params.get("tools", []), *params["system"], *(b for m in params["messages"] for b in m["content"])]
    return [block for block in content if "cache_control" in block]


@given(shapes=SHAPES, mark=st.none() | st.integers(0, 30), ttl=st.sampled_from([None, "5m", "1h"]))
def test_at_most_four_marks_never_on_thinking_and_always_on_the_last_block(
    shapes: Any, mark: int | None, ttl: str | None
) -> None:
    of = epoch(ttl)
    params = window.render(of, joined(steps_of(shapes), of), mark, 100)
    marked = marks(params)
    assert 3 <= len(marked) <= 4
    assert not [block for block in marked if block["type"] in ("thinking", "redacted_thinking")]
    assert {block["cache_control"].get("ttl") for block in marked} == {ttl}
    last = [block for message in params["messages"] for block in message["content"] if block["type"] != "thinking"][-1]
    assert "cache_control" in last


@given(shapes=SHAPES, more=SHAPES)
def test_the_previous_request_s_last_block_is_marked_and_everything_before_stays(shapes: Any, more: Any) -> None:
    of, steps = epoch(), steps_of([*shapes, *more])
    before = steps[: len(shapes)]
    through = before[-1].parts[-1].id
    first = window.render(of, joined(before, of), None, 100)
    second = window.render(of, joined(steps, of), through, 100)
    plain = [[_plain(b) for b in message["content"]] for message in first["messages"]]
    assert [[_plain(b) for b in m["content"]] for m in second["messages"]][: len(plain)] == plain
    known = [b for m in first["messages"] for b in m["content"] if "cache_control" in b][-1]
    assert _plain(known) in [_plain(block) for block in marks(second)]


def _plain(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}


@given(shapes=SHAPES, mark=st.none() | st.integers(0, 30))
def test_rendering_is_pure(shapes: Any, mark: int | None) -> None:
    of, steps = epoch(preamble=[TEXT], tools=[{"name": "t"}]), steps_of(shapes)
    before = copy.deepcopy((of, steps))
    messages = joined(steps, of)
    as_they_were = copy.deepcopy(messages)
    one = json.dumps(window.render(of, messages, mark, 100))
    assert json.dumps(window.render(of, messages, mark, 100)) == one
    assert (of, steps) == before
    assert messages == as_they_were


def test_parts_that_are_left_out_leave_no_empty_message() -> None:
    steps = steps_of([("user", []), ("assistant", [True])])
    for part in steps[0].parts:
        part.form = None
    messages = joined(steps, epoch())
    assert [message["role"] for message in messages.messages] == ["assistant", "user"]


def test_a_notice_behind_results_stands_inside_the_last_one() -> None:
    steps = steps_of([("assistant", [])])
    steps[0].parts += [Part(9, "notice", "result", TEXT, Counts()), Part(10, "update", "result", TEXT, Counts())]  # type: ignore[arg-type]
    content = window.step_messages(steps[0]).messages[1]["content"]
    assert content == [{"type": "tool_result", "tool_use_id": "c1", "content": [TEXT, TEXT]}]
    assert "content" not in (steps[0].parts[1].form or {})


def test_tools_stand_in_the_request_only_when_there_are_some() -> None:
    steps = steps_of([("user", [])])
    assert "tools" not in window.render(epoch(), joined(steps, epoch()), None, 100)
    with_tools = epoch(tools=[{"name": "t"}])
    assert list(window.render(with_tools, joined(steps, with_tools), None, 7)) == [
        "max_tokens",
        "system",
        "messages",
        "tools",
    ]


@pytest.mark.parametrize("ttl", [None, "5m", "1h"])
def test_the_cache_is_read_up_to_where_the_last_request_ended(tmp_path: Path, ttl: str | None) -> None:
    talk = Talk(tmp_path, cache_ttl=ttl, instructions="word " * 1_500)
    talk.ask("look", thinking("hm"), *(call("weather", {"city": str(number)}) for number in range(30)))
    sent = 0
    for reply in (Reply(thinking("so"), call("weather", {})), Reply("ok")):
        talk.answer()
        usage = talk.standin.replies[-1]["usage"]
        sent = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        talk.reply(reply)
        assert talk.standin.replies[-1]["usage"]["cache_read_input_tokens"] >= sent > 1_000
    assert usage["cache_creation"]["ephemeral_1h_input_tokens" if ttl == "1h" else "ephemeral_5m_input_tokens"] > 0


def test_calls_without_results_are_named() -> None:
    user, said = (
        {"role": "user", "content": [TEXT]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}]},
    )
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}
    assert window.unpaired_calls([user, said, result]) == []
    assert window.unpaired_calls([user, said, user]) == ["c1"]
    assert window.unpaired_calls([user, said]) == []
