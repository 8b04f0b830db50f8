"""Bad input is refused before anything is written, with a text that names it; and the agent goes on."""

import copy
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import RejectedError, StorageError, pending_commands, send_command
from pager.conversation.content import check_user
from tests.conversation.test_conversation import BLOCKS
from tests.standin import Rejected, Reply, Standin, call
from tests.support import Talk


def written(talk: Talk) -> tuple[int, int]:
    return len(talk.memory.ledger()), talk.memory._store.conversation.last_step()


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


NEVER: list[Any] = [  # beside what the property below comes upon
    *(None, 5, {"type": "text", "text": "x"}, b"x", ["x"], [None], [{}]),
    [{"type": None}],
    [{"type": ["text"]}],
    [{"type": "video", "source": {}}],
    [{"type": "thinking", "thinking": "x", "signature": "y"}],
    [{"type": "tool_use", "id": "a", "name": "b", "input": {}}],
    [{"type": "tool_result", "tool_use_id": "a", "content": "b"}],
    [{"type": "image", "source": {"type": ["url"]}}],
    [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b"x"}}],
    [{"type": "document", "source": {"type": "content", "content": [{"type": "document"}]}}],
    [{"type": "text", "text": "x", "foo": 1}],
    [{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png", "size": 5}}],
    [{"type": "text", "text": "x", "score": float("nan")}],
    [{"type": "text", "text": "x", "score": float("inf")}],
    [{"type": "text", "text": "x", "bytes": b"x"}],
    [{"type": "text", "text": "x", "set": {1}}],
    [{"type": "text", "text": "x", "more": {5: "x"}}],
    [{"type": "text", "text": "x", "number": 10**5000}],
    [{"type": "text", "text": "x", "deep": deep(2000)}],
]


@pytest.mark.parametrize("content", NEVER, ids=range(len(NEVER)))
def test_what_the_provider_never_accepts_is_not_written(talk: Talk, content: Any) -> None:
    talk.ask("hello", call("weather", {"city": "Porto"}))
    waits = talk.memory.open_calls[0].id
    for append in (partial(talk.memory.append_result, waits), talk.memory.append_user):
        before = written(talk)
        with pytest.raises(RejectedError, match=r"give|may be|keys are|flatter|leave it out"):
            append(content)
        assert written(talk) == before
        if talk.memory.open_calls:
            talk.answer()
            talk.reply("sunny")
    talk.ask("and then?", "go on")
    assert not talk.memory.check()


VALUES = [
    None, True, 7, "", "x", [], {}, "image/jpg", "image/webp", "application/pdf", "application/msword", "text/plain",
    "text/csv", "base64", "url", "text", "content", "file", {"enabled": True}, {"enabled": 1}, {"on": True},
]  # fmt: skip
NAMES = ["type", "text", "source", "media_type", "data", "url", "title", "context", "citations", "content", "enabled"]


@st.composite
def nearly_whole(draw: st.DrawFn) -> Any:
    """A block with some of its values, or of those of its source, set to something else or taken out."""
    block = copy.deepcopy(draw(st.sampled_from(BLOCKS)))
    for _ in range(draw(st.integers(1, 2))):
        within = draw(st.sampled_from([block, *(value for value in block.values() if isinstance(value, dict))]))
        name = draw(st.sampled_from([*within, *NAMES]))
        if draw(st.booleans()):
            within[name] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        else:
            within.pop(name, None)
    return block


@given(block=nearly_whole())
def test_what_the_provider_would_refuse_is_refused_before_it_is_written(block: Any) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, block]}
    params = {"model": "m", "max_tokens": 10, "messages": [message]}
    try:
        Standin(limit_tokens=100_000).create(params, Reply("seen"))
    except Rejected as error:
        if "non-empty" in str(error) or "non-whitespace" in str(error):
            return  # blank text is taken, and is not sent
        with pytest.raises(RejectedError):
            check_user([block])


REPLIES: list[Any] = [
    [{"type": "tool_use", "id": "a", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": None, "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "two words", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "a" * 129, "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "weather\n", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "weather"}],
    [{"type": "tool_use", "id": "a", "name": "weather", "input": "{}"}],
    [{"type": "tool_use", "id": "a", "name": "weather", "input": {"x": float("nan")}}],
    [{"type": "thinking", "thinking": 5}],
    [{"type": "tool_result", "tool_use_id": "a"}],
    [{"type": "image", "source": {"type": "url", "url": "x"}}],
    [{"text": "no type"}],
    ["text"],
    5,
    {"type": "text"},
]


@pytest.mark.parametrize("content", REPLIES, ids=range(len(REPLIES)))
def test_a_malformed_reply_has_to_be_asked_for_again(talk: Talk, content: Any) -> None:
    talk.memory.append_user("hello")
    talk.memory.request()
    before = written(talk)
    with pytest.raises(RejectedError, match="reply is malformed and nothing of it was kept; ask the model again: "):
        talk.memory.append_assistant({"content": content, "stop_reason": "tool_use"})
    assert written(talk) == before
    talk.reply("hello")
    talk.ask("and then?", "go on")


def test_a_reply_with_a_block_of_a_new_kind_is_kept(talk: Talk) -> None:
    talk.memory.append_user("hello")
    talk.memory.request()
    news = {"type": "quantum_tool_result", "result": [1, 2.5, None, True]}
    step = talk.memory.append_assistant({"content": [news, {"type": "text", "text": "so"}], "stop_reason": "end_turn"})
    assert talk.memory.history.blocks_of(step)[0] == news


# moments

MOMENTS: list[Any] = [
    5, 5.0, b"2026-05-03", ["2026-05-03"], "", "yesterday", "0001-01-01", "9999-12-31", "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00+14:00", date.min, date.max, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC),
]  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS, ids=repr)
def test_a_moment_that_no_calendar_can_tell_is_refused_before_anything_is_written(talk: Talk, moment: Any) -> None:
    talk.ask("hello", "hello")
    memory, before = talk.memory, written(talk)
    for use in (
        lambda: memory.append_user("hello", at=moment),
        lambda: memory.record("user", "hello", at=moment),
        lambda: memory.record_many([{"role": "user", "text": "hello", "at": moment}]),
        lambda: memory.archive("hello", valid_from=moment),
        lambda: memory.search_archive("hello", as_of=moment),
        lambda: memory.search_recall("hello", after=moment),
        lambda: memory.search_recall("hello", before=moment),
    ):
        with pytest.raises(RejectedError, match="from 0001-01-02 to 9999-12-30"):
            use()
    assert written(talk) == before
    talk.ask("and then?", "go on")


@pytest.mark.parametrize("error", [OverflowError, ValueError, TypeError, AttributeError])
def test_a_command_that_fails_in_any_way_does_not_block_those_behind_it(
    talk: Talk, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error("int too large")

    monkeypatch.setattr(talk.memory, "page_out", fails)
    send_command(str(talk.directory), "page_out", {"page_id": "f1"}, talk.clock)
    send_command(talk.directory, "archive", {"text": "lives in Porto", "valid_from": "9999-12-31"}, talk.clock)
    send_command(talk.directory, "archive", {"text": "lives in Porto"}, talk.clock)
    assert len(pending_commands(str(talk.directory))) == 3
    assert talk.memory.process_inbox() == 3
    assert not pending_commands(talk.directory)
    told = [row.reason for row in talk.memory.ledger(events=["command"])]
    assert told[0] == "refused: int too large"
    assert "9999-12-30" in told[1]
    assert told[2] == "done"


# wrong types of persons

WRONG: dict[str, Any] = {
    "tags": (lambda m: m.archive("x", tags=[5]), "an item of tags is 5; give a text"),
    "page_in None": (lambda m: m.page_in(None), "'None' is not a page id"),
    "offset": (lambda m: m.page_in("f1", offset="3"), "offset is '3'"),
    "reason": (lambda m: m.forget("f1", reason=None), "reason is None"),
    "record text": (lambda m: m.record("user", None), "text is None"),
    "limit": (lambda m: m.search_archive("x", limit="5"), "limit is '5'"),
    "query": (lambda m: m.search_recall(None), "query is None"),
    "core name": (lambda m: m.core_append(None, "x"), "block is None"),
    "purge": (lambda m: m.purge(None), "page_id is None"),
    "call": (lambda m: m.begin_call(None), "call's id is None"),
    "usage": (lambda m: m.append_assistant("x", usage=[1]), r"usage is \[1\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_a_wrong_type_is_refused_by_name(talk: Talk, name: str) -> None:
    talk.memory.archive("has two cats", tags=None)  # pyright: ignore[reportArgumentType]
    talk.memory.append_user("hello")
    talk.memory.request()
    before = written(talk)
    act, told = WRONG[name]
    with pytest.raises(RejectedError, match=told):
        act(talk.memory)
    assert written(talk) == before
    talk.reply("hello")


def test_a_closed_memory_says_so(talk: Talk) -> None:
    talk.memory.close()
    for act in (lambda: talk.memory.archive("x"), lambda: talk.memory.append_user("x"), talk.memory.ledger):
        with pytest.raises(StorageError, match="the memory is closed; open it again"):
            act()
