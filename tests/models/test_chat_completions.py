"""The wire form of Chat Completions: what becomes of the stored form, and what is read from the streams of odd servers.

The laws go through it, too (tests/laws), against the strict stand-in."""

import json
from typing import Any

import pytest

from agents.events import Text, Thinking
from agents.models.chat_completions import NO_TEXT, ReplyReader, request_body
from agents.models.model import FinishedReply, ModelRefusedError, ModelUnavailableError
from tests.support.messages import image

Json = dict[str, Any]
LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


def text(said: str) -> Json:
    return {"type": "text", "text": said, "cache_control": {"type": "ephemeral"}}


def use(call_id: str, **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": given}


def result(call_id: str, *content: Json, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": list(content), **more}


def wire(*messages: tuple[str, list[Json]], **params: Any) -> list[Json]:
    stored = [{"role": role, "content": content} for role, content in messages]
    return request_body({"messages": stored, **params})["messages"]


def test_what_a_request_says_of_its_reply_has_other_names() -> None:
    choice = {"type": "any", "disable_parallel_tool_use": True}
    body = request_body({"messages": [], "temperature": 0.5, "stop_sequences": ["END"], "tool_choice": choice})
    said = {"temperature": 0.5, "stop": ["END"], "tool_choice": "required", "parallel_tool_calls": False}
    assert body == {"messages": [], **said}


def test_neighbours_of_one_role_are_one_message_and_results_are_messages_of_their_own() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "of another server"}
    messages = wire(
        ("user", [text("core")]), ("user", [text("hello"), text("<recalled>")]),
        ("assistant", [thought, text("Hm."), use("a", at="é"), use("b")]),
        ("user", [result("a", text("calm")), result("b", is_error=True)]), ("user", [text("and?")]),
        ("assistant", [text("Well.")]), ("assistant", [use("c")]), ("user", [result("c", text("so"))]),
        system=[text("Be brief."), text("You remember.")],
    )  # fmt: skip
    calls = [[(call["id"], call["function"]["arguments"]) for call in each.get("tool_calls", ())] for each in messages]
    assert [(each["role"], each["content"]) for each in messages] == [
        ("system", "Be brief.\n\nYou remember."), ("user", "core\n\nhello\n\n<recalled>"), ("assistant", "Hm."),
        ("tool", "calm"), ("tool", f"Error: {NO_TEXT}"), ("user", "and?"), ("assistant", "Well."), ("tool", "so"),
    ]  # fmt: skip
    assert [each for each in calls if each] == [[("a", '{"at": "é"}'), ("b", "{}")], [("c", "{}")]]
    assert [each["tool_call_id"] for each in messages if each["role"] == "tool"] == ["a", "b", "c"]


def test_files_of_results_stand_behind_all_of_them() -> None:
    report = {
        "type": "document",
        "title": "r",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="},
    }
    notes = {
        "type": "document",
        "title": "n",
        "source": {"type": "text", "media_type": "text/plain", "data": "it rains"},
    }
    far = {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}}
    results = [result("a", text("see"), image(9)), result("b", report, notes)]
    messages = wire(("user", [far]), ("assistant", [use("a"), use("b")]), ("user", results))
    assert messages[0]["content"] == [{"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}]
    assert messages[1]["content"] is None
    assert [each["role"] for each in messages[2:]] == ["tool", "tool", "user"]
    assert (messages[2]["content"][:4], messages[3]["content"][:14]) == ("see\n", "n\n\nit rains\n\n(")
    first, second = messages[4]["content"]
    assert first["image_url"]["url"] == "data:image/png;base64," + image(9)["source"]["data"]
    assert second["file"] == {"filename": "r.pdf", "file_data": "data:application/pdf;base64,eA=="}


def test_what_only_its_provider_has_is_said_in_words_or_left_out() -> None:
    searched = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]
    found = {
        "type": "search_result",
        "source": "a",
        "title": "b",
        "content": [],
        "cache_control": {"type": "ephemeral"},
    }
    messages = wire(("user", [found]), ("assistant", searched))
    assert json.loads(messages[0]["content"]) == {key: found[key] for key in ("type", "source", "title", "content")}
    assert messages[1] == {"role": "assistant", "content": NO_TEXT}


def test_ids_that_are_too_long_are_shortened_in_pairs() -> None:
    long = "chatcmpl-tool-" + "a" * 60
    messages = wire(("user", [text("x")]), ("assistant", [use(long)]), ("user", [result(long)]))
    short = messages[1]["tool_calls"][0]["id"]
    assert (short, len(short)) == (messages[2]["tool_call_id"], 40)


def test_tools_and_the_choice_among_them() -> None:
    tagged = {"type": "object", "properties": {"tags": {"type": "array"}, "type": {"type": "string"}}}
    tools = [LOOK, {"name": "tag", "input_schema": tagged}]
    body = request_body({"messages": [], "tools": tools, "tool_choice": {"type": "none"}})
    assert [tool["function"]["parameters"] for tool in body["tools"]] == [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"tags": {"type": "array", "items": {}}, "type": {"type": "string"}}},
    ]
    choices = [{"type": "auto"}, {"type": "none"}, {"type": "any"}, {"type": "tool", "name": "look"}]
    made = [request_body({"messages": [], "tools": tools, "tool_choice": each})["tool_choice"] for each in choices]
    assert made == ["auto", "none", "required", {"type": "function", "function": {"name": "look"}}]


@pytest.mark.parametrize(
    "tool", [{"type": "memory_20250818", "name": "memory"}, {"name": "a" * 65, "input_schema": {"type": "object"}}]
)
def test_a_tool_that_cannot_go_is_refused(tool: Json) -> None:
    with pytest.raises(ModelRefusedError, match=tool["name"]):
        request_body({"messages": [], "tools": [tool]})


# Replies.

USAGE = {"prompt_tokens": 50, "completion_tokens": 7}


def delta(finish: str | None = None, **said: Any) -> Json:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def called(index: int | None, arguments: Any = None, name: str | None = None, call_id: str | None = None) -> Json:
    return delta(tool_calls=[{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}])


def read(*chunks: Json) -> tuple[FinishedReply, list[Text | Thinking]]:
    reader = ReplyReader()
    told = [event for chunk in chunks for event in reader.add(chunk)]
    return reader.finish("m"), told


def blocks_of(*chunks: Json) -> list[Json]:
    return read(*chunks)[0].message["content"]


WHOLE = '{"at": "sea"}'


@pytest.mark.parametrize(
    "chunks",
    [
        [called(0, "", "look", "a"), called(0, WHOLE[:5]), called(0, WHOLE[5:]), called(1, WHOLE, "look", "b")],
        [called(0, WHOLE, "look", "a"), called(0, WHOLE, "look", "b")],  # all under one index
        [called(None, WHOLE, "look", "a"), called(None, WHOLE, "look", "b")],
        [called(0, "", "look", "a"), called(0, WHOLE, "look", "a"), called(1, {"at": "sea"}, "look", "b")],
    ],
)  # fmt: skip
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_parallel_calls_are_told_apart_however_they_are_sent(chunks: list[Json], finish: str) -> None:
    reply = read(*chunks, delta(finish))[0]
    calls = [(each["id"], each["name"], each["input"]) for each in reply.message["content"]]
    assert calls == [("a", "look", {"at": "sea"}), ("b", "look", {"at": "sea"})]
    assert (reply.message["stop_reason"], reply.malformed_calls) == ("tool_use", ())


def test_calls_without_ids_under_one_index_are_told_apart_by_their_ends() -> None:
    assert len(blocks_of(called(0, WHOLE, "look"), called(0, "{}", "look"), delta("stop"))) == 2


@pytest.mark.parametrize("arguments", ["{", '{"at": ', "[1]", '"sea"', "null", '{"at": NaN}', "[" * 99_999])
def test_arguments_that_are_no_object_are_named(arguments: str) -> None:
    chunks = (called(0, "", "look", "a"), called(1, arguments, "look", "b"))
    reply = read(*chunks, delta("tool_calls"))[0]
    assert reply.malformed_calls == (1,)
    assert [each["input"] for each in reply.message["content"]] == [{}, {}]


@pytest.mark.parametrize(
    "chunks",
    [
        [delta(reasoning_content="so"), delta(reasoning_content=" it"), delta(content="Yes.")],
        [delta(reasoning="so it", reasoning_details=[{"text": "so it"}]), delta(content="Yes.")],
        [delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "so it"}]}]), delta(content="Yes.")],
        [delta(content=piece) for piece in ("<thi", "nk>", "so it", "</th", "ink>", "\n\nYes", ".")],
        [delta(content=[{"type": "text", "text": "\n<think>so it</think>Yes."}])],
    ],
)
def test_reasoning_is_thinking_without_a_signature_under_all_its_names(chunks: list[Json]) -> None:
    reply, told = read(*chunks, delta("stop"))
    thought, said = reply.message["content"]
    assert (thought, said["text"]) == ({"type": "thinking", "thinking": "so it"}, "Yes.")
    assert "".join(event.text for event in told if isinstance(event, Thinking)) == "so it"
    assert "".join(event.text for event in told if isinstance(event, Text)) == "Yes."


@pytest.mark.parametrize("said", ["<", "<think", "  <thin", "a <think>b</think>", "<thing>", "\n"])
def test_a_text_that_only_looks_like_reasoning_is_said(said: str) -> None:
    reply, told = read(*(delta(content=character) for character in said), delta("stop"))
    assert reply.message["content"] == [{"type": "text", "text": said}]
    assert "".join(event.text for event in told) == said


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("tool_calls", "end_turn"),
        ("eos", "end_turn"), ("model_length", "model_context_window_exceeded"), ("sensitive", "refusal"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
    ],
)  # fmt: skip
def test_finish_reasons(finish: str, stop: str) -> None:
    assert read(delta(content="Hm."), delta(finish))[0].message["stop_reason"] == stop


def test_a_refusal_in_words_is_one() -> None:
    reply, told = read(delta(refusal="I'd "), delta(refusal="rather not."), delta("stop"))
    assert (reply.message["stop_reason"], reply.message["content"][0]["text"]) == ("refusal", "I'd rather not.")
    assert "".join(event.text for event in told) == "I'd rather not."


@pytest.mark.parametrize(
    "chunks",
    [
        [], [delta(content="Hm")], [delta(content="Hm"), delta("error")],
        [delta(content="Hm"), delta("insufficient_system_resource")], [delta("network_error")],
    ],
)  # fmt: skip
def test_what_has_no_end_is_none(chunks: list[Json]) -> None:
    with pytest.raises(ModelUnavailableError):
        read(*chunks)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (USAGE, (50, 0, 0, 7)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 15}}, (5, 30, 15, 7)),
        ({**USAGE, "prompt_tokens_details": None, "prompt_cache_hit_tokens": 20}, (30, 20, 0, 7)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 90}}, (0, 50, 0, 7)),
        ({"prompt_tokens": 0}, None),
        ({"prompt_tokens": -1, "completion_tokens": -1}, None),
        (None, None),
    ],
)
def test_usage_tells_what_came_from_the_cache(usage: Json | None, counted: tuple[int, ...] | None) -> None:
    found = read(delta("stop"), {"choices": [], "usage": usage}, {"choices": [], "usage": None})[0].message["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    assert (tuple(found[name] for name in names) if found else None) == counted
