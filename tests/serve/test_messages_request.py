"""Requests as they are read, and streams as they are written: what is pure of the Messages front."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.lib.streaming._messages import accumulate_event  # what the SDK makes of a stream
from hypothesis import given
from hypothesis import strategies as st

from agents.serve.messages_history import digests
from agents.serve.messages_records import Answer
from agents.serve.messages_request import BadRequestError, Message, check_for, read
from agents.serve.messages_stream import Stream, encode
from pager.types import Json, Usage

BODY: Json = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hello"}]}


def messages(*given: Any) -> tuple[Message, ...]:
    return read({**BODY, "messages": [{"role": role, "content": content} for role, content in given]}).messages


def test_one_form_for_what_means_the_same() -> None:
    text = {"type": "text", "text": "hello"}
    marked = {**text, "cache_control": {"type": "ephemeral"}, "citations": None}
    assert messages(("user", "hello")) == messages(("user", [marked])) == (Message("user", (text,)),)
    assert messages(("user", "a"), ("user", "b")) == messages(("user", [{**text, "text": "a"}, {**text, "text": "b"}]))
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    assert messages(("user", "a"), ("assistant", [thought, text]), ("user", "b"))[1].blocks == (text,)


def test_results_are_the_same_as_a_text_or_as_blocks() -> None:
    def of(content: Any, **more: Any) -> list[str]:
        call = {"type": "tool_use", "id": "t", "name": "n", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": content, **more}
        return digests(messages(("user", "a"), ("assistant", [call]), ("user", [result])))

    assert of("x") == of([{"type": "text", "text": "x"}], is_error=False)
    assert of("x")[-1] not in (of("y")[-1], of("x", is_error=True)[-1])


@pytest.mark.parametrize("name", ["thinking", "output_config", "service_tier", "speed", "inference_geo"])
def test_behind_chat_completions_what_it_does_not_know_is_refused(name: str) -> None:
    value: Any = {"type": "adaptive"} if name in ("thinking", "output_config") else "x"
    with pytest.raises(BadRequestError, match=f"{name}: this agent's model is behind Chat Completions"):
        check_for(read({**BODY, name: value}), provider="openai", thinking="default", own_tools=(), most_tokens=1000)


def test_behind_chat_completions_sampling_is_taken_and_metadata_named() -> None:
    asked = read({**BODY, "temperature": 0.5, "metadata": {"user_id": "u"}, "context_management": {}})
    named = check_for(asked, provider="openai", thinking="off", own_tools=(), most_tokens=1000)
    assert named == ("context_management", "metadata")
    off = read({**BODY, "thinking": {"type": "disabled"}})
    assert check_for(off, provider="openai", thinking="off", own_tools=(), most_tokens=1000) == ()


JUNK: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "role", "content", "id", "name", "input", "cache_control"]), inner
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from([*BODY, "tools", "system", "stream", "thinking", "tool_choice", "metadata"]), JUNK)
)
def test_whatever_comes_is_read_or_refused(change: Json) -> None:
    try:
        asked = read({**BODY, **change})
    except BadRequestError as error:
        assert str(error)
    else:
        assert asked.messages[0].role == "user"
        assert digests(asked.messages)


PIECES = st.lists(st.tuples(st.sampled_from(["text", "thinking", "commit"]), st.text(min_size=1, max_size=5)))


@given(pieces=PIECES, calls=st.booleans())
def test_the_sdk_makes_of_a_stream_what_was_said(pieces: list[tuple[str, str]], *, calls: bool) -> None:
    stream, events = Stream("msg_1", "m"), list[Json]()
    said: list[tuple[str, str]] = []
    open_kind = ""
    for kind, piece in pieces:
        events += stream.commit() if kind == "commit" else getattr(stream, kind)(piece)
        if kind != "commit" and kind == open_kind:
            said[-1] = (kind, said[-1][1] + piece)
        elif kind != "commit":
            said.append((kind, piece))
        open_kind = "" if kind == "commit" else kind
    left = [{"type": "tool_use", "id": "t1", "name": "n", "input": {"a": 1}}] if calls else []
    answer = Answer("msg_1", "m", (), "tool_use" if calls else "end_turn", None, Usage(3, 4))
    events += stream.end(answer, left)
    assert all(encode(event).endswith(b"\n\n") for event in events)
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in events:
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)  # type: ignore[arg-type]
    found = [(block.type, getattr(block, block.type)) for block in snapshot.content if block.type != "tool_use"]
    assert found == said
    assert [block.input for block in snapshot.content if block.type == "tool_use"] == [{"a": 1}] * calls
    assert (snapshot.stop_reason, snapshot.usage.input_tokens, snapshot.usage.output_tokens) == (
        answer.stop_reason,
        3,
        4,
    )
