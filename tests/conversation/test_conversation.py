"""The conversation: what is said is kept exactly as it came, and carried so that every request is valid."""

import base64
import copy
from pathlib import Path
from typing import Any

import pytest

from pager import Memory, NotFoundError, RejectedError
from pager.types import Json
from tests.standin import Reply, call, redacted_thinking, search_result, server_call, thinking
from tests.support import Talk, undone
from tests.support.messages import image

PNG = image(30, 20)["source"]["data"]
PDF = base64.b64encode(b"%PDF-1.4 /Type /Page ").decode()
PLACE = {"document_index": 0, "document_title": None, "start_char_index": 0, "end_char_index": 1}
CITED = {"type": "char_location", "cited_text": "a", **PLACE}
FOUND = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]}


def document(source: Json, **more: Any) -> Json:
    return {"type": "document", "source": source, **more}


BLOCKS: list[Json] = [
    {"type": "text", "text": "plain"},
    {"type": "text", "text": "\0 <|endoftext|> \u202eright\u202c to left 👩‍👩‍👧 &lt;"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}},
    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    document({"type": "base64", "media_type": "application/pdf", "data": PDF}, title="A", context=None),
    document({"type": "text", "media_type": "text/plain", "data": "body"}, citations={"enabled": True}),
    document({"type": "content", "content": [{"type": "text", "text": "inner"}]}),
    document({"type": "url", "url": "https://example.org/a.pdf"}),
    {**FOUND, "citations": {"enabled": False}},
    {"type": "container_upload", "file_id": "file_2"},
]


def sent(talk: Talk, message: int) -> list[Json]:
    """What a message of the last request carried, without cache marks."""
    content = copy.deepcopy(talk.standin.requests[-1]["messages"][message]["content"])
    for block in content:
        block.pop("cache_control", None)
    return content


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{number}-{block['type']}" for number, block in enumerate(BLOCKS)])
def test_a_block_of_a_user_or_a_result_is_stored_and_sent_as_it_came(talk: Talk, block: Json) -> None:
    step = talk.ask([block, {"type": "text", "text": "look"}], call("weather", {"city": "Porto"}))
    asked = talk.memory.open_calls[0].id
    is_result = block["type"] != "container_upload"
    talk.memory.append_result(asked, [block] if is_result else "sunny")
    talk.reply("ok")
    talk.reopen()
    talk.ask("and?", "yes")
    blocks_of = talk.memory.history.blocks_of
    assert sent(talk, 0)[0] == blocks_of("s1")[0] == block
    assert list(sent(talk, 0)[0]) == list(block)
    if is_result:
        assert sent(talk, 2) == [{"type": "tool_result", "tool_use_id": asked, "content": [block]}]
        assert blocks_of(step)[-1]["content"] == [block]
    assert not talk.memory.check()


def test_a_reply_of_every_kind_of_block_goes_back_as_it_came(talk: Talk) -> None:
    step = talk.ask(
        "look", thinking("", tokens=90), redacted_thinking(), thinking("hm"), server_call("web_search", {"query": "x"}),
        search_result(), {"type": "text", "text": "it says", "citations": [CITED]}, thinking("so"),
        call("weather", {"city": "Évora", "n": 1.5, "deep": [{"a": None, "b": True}], "": ""}),
    )  # fmt: skip
    came = talk.standin.replies[-1]["content"]
    assert talk.memory.history.blocks_of(step) == came
    assert talk.memory.open_calls[0].input == {"city": "Évora", "n": 1.5, "deep": [{"a": None, "b": True}], "": ""}
    talk.reopen()
    talk.answer()
    talk.reply(thinking("aha"), "ok")
    talk.ask("and?", "yes")
    assert sent(talk, 1) == came
    assert str(sent(talk, 1)) == str(came)


def test_what_the_caller_does_with_its_objects_afterwards_changes_nothing(talk: Talk) -> None:
    content = [{"type": "text", "text": "before"}]
    talk.memory.append_user(content)
    content[0]["text"] = "after"
    message = talk.send(Reply(call("weather", {"city": "before"})))
    talk.memory.append_assistant(message)
    message["content"][0]["input"]["city"] = "after"
    assert talk.memory.open_calls[0].input == {"city": "before"}
    talk.answer()
    talk.reply("ok")
    assert "after" not in str(talk.standin.requests[-1]["messages"])


def test_a_request_that_was_handed_out_stays_as_it_is(talk: Talk) -> None:
    talk.ask("hello", "hello")
    talk.memory.append_user("and?")
    first = talk.memory.request()
    before = copy.deepcopy(first.params)
    assert talk.memory.request().params == before
    talk.reply("yes")
    talk.ask("more", "yes")
    assert first.params == before
    first.params["messages"].clear()
    first.params["system"][0]["text"] = "forged"
    talk.ask("still there?", "yes")
    assert "forged" not in str(talk.standin.requests[-1])


def test_cache_marks_are_ours(talk: Talk) -> None:
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    talk.memory.append_user([{"type": "text", "text": str(number), **mark} for number in range(9)])
    talk.reply(call("weather"))
    talk.memory.append_result(talk.memory.open_calls[0].id, [{"type": "text", "text": "sun", **mark}])
    talk.reply("ok")
    assert "1h" not in str(talk.standin.requests[-1])


def test_a_name_is_kept_and_found_and_not_sent(talk: Talk) -> None:
    step = talk.memory.append_user("hello", name="Dana", at="2026-01-02T03:04Z")
    talk.reply("hello")
    hit = talk.memory.search_recall("dana")[0]
    assert (hit.page_id, hit.who, hit.at.isoformat()) == (step, "Dana", "2026-01-02T03:04:00+00:00")
    assert "Dana" not in str(talk.standin.requests[-1])


def test_calls_go_through_their_states(talk: Talk) -> None:
    talk.ask("look", call("weather", {"city": "a"}), call("weather", {"city": "b"}), call("weather", {"city": "c"}))
    one, two, three = (each.id for each in talk.memory.open_calls)
    talk.memory.begin_call(one)
    talk.memory.hold_call(two)
    states = [(each.begun, each.awaits_approval) for each in talk.reopen().open_calls]
    assert states == [(True, False), (False, True), (False, False)]
    assert talk.memory.answer_interrupted() == [one]
    assert [each.id for each in talk.memory.open_calls] == [two, three]
    talk.memory.begin_call(two)
    assert talk.memory.answer_interrupted(rerun=["weather"]) == []
    talk.answer()
    talk.reply("ok")
    first = next(block for block in sent(talk, 2) if block["tool_use_id"] == one)
    assert "interrupted, may have run" in str(first)
    assert first["is_error"]
    for act in (talk.memory.begin_call, talk.memory.hold_call, lambda each: talk.memory.append_result(each, "x")):
        with pytest.raises(NotFoundError, match="was answered already; no call is open"):
            act(one)
        with pytest.raises(NotFoundError, match="was never made"):
            act("x")


def test_nothing_comes_between_a_call_and_its_result(talk: Talk) -> None:
    talk.ask("look", call("weather"))
    for act in (
        lambda: talk.memory.append_user("hello?"),
        lambda: talk.memory.append_assistant("hm"),
        talk.memory.request,
    ):
        with pytest.raises(RejectedError, match=r"toolu_|results"):
            act()
    talk.answer()
    talk.memory.append_user("and tell me about Faro")  # told in the middle of the turn
    talk.reply("ok")
    assert sent(talk, 3) == [{"type": "text", "text": "and tell me about Faro"}]
    assert not talk.memory.turn_is_open


def test_a_reply_to_nothing_is_refused(talk: Talk) -> None:
    with pytest.raises(RejectedError):
        talk.memory.append_assistant("hello")
    talk.ask("hello", "hello")
    with pytest.raises(RejectedError):
        talk.memory.append_assistant("hello again")
    assert not talk.memory.turn_is_open
    talk.ask("and?", "yes")
    assert not talk.memory.check()


def test_an_effect_and_its_result_are_one(talk: Talk) -> None:
    talk.ask("keep it", call("archive", {"text": "a"}))
    call_id = talk.memory.open_calls[0].id
    for transaction, facts, open_calls in ((undone(talk.memory), 0, [call_id]), (talk.memory.transaction(), 1, [])):
        with transaction:
            talk.memory.archive("a", actor="agent")
            talk.memory.append_result(call_id, "f1", memory_tool=True)
        assert len(talk.memory.inspect.newest_facts()) == facts
        assert [each.id for each in talk.memory.open_calls] == open_calls
    talk.reply("kept")
    assert not talk.memory.check()


# any text


def test_an_oversized_part_is_spilled_once_and_stays_as_it_was_sent(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "plain", embedder=None) as memory:
        for text in ("word " * 20_000, "x" * 1_000_000):  # the window would hold the first one
            memory.append_user(text)
            assert len(str(memory.request().messages)) < 40_000
            memory.append_assistant("ok")
    talk = Talk(tmp_path / "talk", window=8_000)
    talk.ask("word " * 5_000, "ok")
    before = sent(talk, 0)
    assert '<spilled page_id="x1" characters="25000">' in str(before)
    talk.reopen()
    talk.ask("and?", "yes")
    assert sent(talk, 0) == before
    assert talk.memory.page_text("s1") == "word " * 5_000
