"""The stand-in of the Messages API: what it refuses, and how it answers."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from typing import Any

import anthropic.types as sdk
import pytest

from tests.standin import Rejected, Reply, Standin, call, redacted_thinking, search_result, server_call
from tests.standin import thinking as think
from tests.standin.tokenizer import IMAGE_TOKENS, PAGE_TOKENS, Tokenizer, count_block
from tests.support.messages import image
from tests.support.params import MARK, SEARCH, TOOL, Params, assistant, request, result, said, text, use, user


def standin(**options: Any) -> Standin:
    return Standin(**{"limit_tokens": 100_000, "cache_min_tokens": 0, **options})


def refused(params: Params, message: str, api: Standin | None = None) -> None:
    api = api or standin()
    accepted = len(api.requests)
    with pytest.raises(Rejected) as error:
        api.create(params)
    assert message in error.value.message
    assert (error.value.status, error.value.type) == (400, "invalid_request_error")
    assert len(api.requests) == accepted


# ---- what it refuses


def called(*blocks: Any, calls: tuple[Any, ...] = (use(),)) -> Params:
    return request(user("x"), assistant(*calls), user(*blocks))


def with_tool(**fields: Any) -> Params:
    return request(user("x"), tools=[{**TOOL, **fields}])


def with_property(name: str, kind: str) -> Params:
    return with_tool(input_schema={"type": "object", "properties": {name: {"type": kind}}})


TWO = (use(), use("toolu_2"))
ADAPTIVE = {"type": "adaptive"}
HOUR = {**MARK, "ttl": "1h"}
SERVER_CALL = {**use("srvtoolu_1", name="web_search"), "type": "server_tool_use"}
THOUGHT = {"type": "thinking", "thinking": "", "signature": "s"}
BUDGET = {"type": "enabled", "budget_tokens": 1_024}
REFUSED: list[tuple[Params, str]] = [
    # fields of the request and of messages
    ({"max_tokens": 9, "messages": [user("x")]}, "model: Field required"),
    (request(user("x"), temperature=1.0), "temperature: Extra inputs are not permitted"),
    (request(user("x"), cache_control=MARK), "cache_control: Extra inputs are not permitted"),
    (request(user("x"), stop_sequences=[" "]), "stop_sequences.0: each stop sequence"),
    (request(), "messages: at least one message"),
    (request(user("\ud800")), "not valid UTF-8"),
    # roles and their order
    (request(user("x"), {"role": "tool", "content": "x"}), "messages.1.role"),
    (request(assistant("x"), user("x")), 'first message must use the "user" role'),
    (request(user("x"), assistant("y")), "must end with a user message"),
    (request(user("x"), assistant("y ")), "cannot end with trailing whitespace"),
    # what is empty
    (request({"role": "user", "content": ""}), "must have non-empty content"),
    (request(user("x"), assistant(), user("y")), "messages.1: all messages must have non-empty content"),
    (request(user("")), "messages: text content blocks must be non-empty"),
    (request(user("x"), assistant("\n\n"), user("y")), "must contain non-whitespace text"),
    (request({"role": "user", "content": " \n"}), "must contain non-whitespace text"),
    (request(user("x"), system=[text("")]), "system: text content blocks must be non-empty"),
    (called(result(content="", is_error=True)), "content cannot be empty if `is_error` is true"),
    (called(result(content=[text("")])), "non-empty"),
    (called(result(content="\n")), "non-whitespace"),
    # blocks
    (request(user("x"), system=[text(type="image")]), "system.0.type: Input should be 'text'"),
    (request(user(text(note="n"))), "messages.0.content.0.text.note: Extra inputs"),
    (request(user({"type": "text"})), "messages.0.content.0.text.text: Field required"),
    (called(result(content=[use("b")])), "Input tag"),
    (request(user(use())), "`tool_use` blocks can only be in `assistant` messages"),
    (called("y", calls=(result(),)), "only be in `user` messages"),
    (request(user(THOUGHT)), "`thinking` blocks can only be in `assistant` messages"),
    # calls and results
    (called(result("a b"), calls=(use("a b"),)), "should match pattern"),
    (called(result(), calls=(use(name="l k"),)), "match pattern"),
    (called("y", calls=({**SERVER_CALL, "id": "toolu_1"},)), "should match pattern '^srvtoolu_"),
    (request(user("x"), assistant(use())), "without `tool_result` blocks immediately after"),
    (called("y"), "messages.1: `tool_use` ids were found"),
    (called(result(), calls=TWO), "immediately after: toolu_2."),
    (called("y", result()), "messages.1: `tool_use` ids"),
    (called(result(), "y", result("toolu_2"), calls=TWO), "immediately after: toolu_2."),
    (request(user("x"), assistant(*TWO), user(result()), user(result("toolu_2"))), "immediately after: toolu_2."),
    (request(user("x"), assistant(use()), assistant("y"), user(result())), "messages.1: `tool_use` ids"),
    (request(user(result())), "messages.0.content.0: unexpected `tool_use_id`"),
    (request(*called(result())["messages"], assistant("y"), user(result())), "messages.4.content.0: unexpected"),
    (called(result(), result()), "must have a single result"),
    (request(*called(result())["messages"], assistant(use()), user(result())), "messages.3.content.0: `tool_use` ids"),
    (called(result(), calls=(use(), use())), "must be unique"),
    ({**called(result()), "tools": []}, "must define tools"),
    (called("y", calls=(SERVER_CALL,)), "`srvtoolu_1` was found without a corresponding `web_search_tool_result`"),
    (called("y", calls=(search_result("srvtoolu_1"),)), "found in `web_search_tool_result` blocks"),
    # tools
    (with_tool(name="a.b"), "tools.0.custom.name: String"),
    (request(user("x"), tools=[TOOL, TOOL]), "Tool names must be unique"),
    (with_tool(input_schema={}), "input_schema.type: Field"),
    (with_tool(input_schema={"type": "array"}), "Input should be 'object'"),
    (with_tool(input_schema={"type": "object", "anyOf": [{}]}), "does not support oneOf, allOf, or anyOf"),
    (with_property("a b", "string"), "Property keys should match pattern"),
    (with_property("a", "str"), "JSON schema is invalid"),
    (request(user("x"), tools=[{**SEARCH, "name": "find"}]), "should be 'web_search'"),
    (request(user("x"), tools=[], tool_choice={"type": "any"}), "while providing tools"),
    (request(user("x"), tool_choice={"type": "tool", "name": "b"}), "'b' not found"),
    (request(user("x"), tool_choice={"type": "any"}, thinking=ADAPTIVE), "Thinking may not be enabled"),
    # thinking
    (request(user("x"), thinking=BUDGET), "must be greater than `thinking.budget_tokens`"),
    # marks
    (request(user(text("", cache_control=MARK))), "cannot be set for empty text blocks"),
    (called("z", calls=({**THOUGHT, "cache_control": MARK}, "y")), "content.0.thinking.cache_control: Extra inputs"),
    (called(result(content=[text(cache_control=MARK)])), "a mark belongs on the tool_result itself"),
    (request(user(*[text(cache_control=MARK)] * 4), system=[text(cache_control=MARK)]), "A maximum of 4 blocks"),
    (request(user(text(cache_control=HOUR)), system=[text(cache_control=MARK)]), "must not come after a ttl='5m'"),
]


@pytest.mark.parametrize(("params", "message"), REFUSED, ids=[f"{at}: {row[1]}" for at, row in enumerate(REFUSED)])
def test_refuses(params: Params, message: str) -> None:
    refused(params, message)


def test_what_is_no_json_is_our_own_mistake() -> None:
    with pytest.raises(TypeError, match="not plain JSON"):
        standin().create(request(user(sdk.TextBlock(type="text", text="x"))))


def without_thinking(params: Params, *indexes: int) -> None:
    for index in indexes:
        message = params["messages"][index]
        message["content"] = [block for block in message["content"] if "thinking" not in block["type"]]


def change(index: int, place: int, **fields: Any) -> Callable[[Params], None]:
    return lambda params: params["messages"][index]["content"][place].update(fields)


# What is changed in a conversation, and the block that is refused then. Thinking is in messages 1, 3 and 5.
INVALID, BOUND = "Invalid `signature` in `thinking` block", "The block is bound to a different conversation"
CHANGES: dict[str, tuple[Callable[[Params], object], str, str]] = {
    "nothing": (lambda _: None, "", ""),
    "a mark": (change(2, 0, cache_control=MARK), "", ""),
    "a string instead of its block": (lambda params: params["messages"][0].update(content="x"), "", ""),
    "how to think": (lambda params: params.update(thinking=ADAPTIVE), "", ""),
    "the oldest thinking is gone": (lambda params: without_thinking(params, 1), "", ""),
    "all but the newest is gone": (lambda params: without_thinking(params, 1, 3), "", ""),
    "the newest is gone": (lambda params: without_thinking(params, 5), "", ""),
    "what is between is gone": (lambda params: without_thinking(params, 3), "messages.5.content.0", BOUND),
    "tools": (lambda params: params["tools"].reverse(), "messages.1.content.0", BOUND),
    "system": (lambda params: params.update(system="Be brief."), "messages.1.content.0", BOUND),
    "the first message": (change(0, 0, text="x!"), "messages.1.content.0", BOUND),
    "a reply": (change(1, 1, text="y!"), "messages.3.content.0", BOUND),
    "a later message": (change(2, 0, text="z!"), "messages.3.content.0", BOUND),
    "the order of keys in an input": (change(3, 1, input={"b": 2, "at": "a"}), "messages.5.content.0", BOUND),
    "the beginning is gone": (lambda params: params["messages"].__delitem__(slice(2)), "messages.1.content.0", BOUND),
    "a message more": (lambda params: params["messages"].insert(1, user("more")), "messages.2.content.0", BOUND),
    "the order of thinking": (lambda params: params["messages"][5]["content"].reverse(), "messages.5.content.", BOUND),
    "the text of thinking": (change(1, 0, thinking="hm!"), "messages.1.content.0", INVALID),
    "a signature": (change(1, 0, signature="c2lnbmF0dXJl"), "messages.1.content.0", INVALID),
}


@pytest.mark.parametrize(("changed", "at", "why"), CHANGES.values(), ids=CHANGES)
def test_thinking_is_bound_to_what_stood_before_it(changed: Callable[[Params], object], at: str, why: str) -> None:
    api = standin()
    params = request(user("x"), system="Be kind.")
    for reply in (
        Reply(think("hm"), "y"),
        Reply(think("which?"), call("look", {"at": "a", "b": 2})),
        Reply(think(tokens=9), "Well.", redacted_thinking(), "Done."),
    ):
        message = said(api.create(params, reply))
        uses = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        params = {**params, "messages": [*params["messages"], message, user(*map(result, uses) if uses else ["z"])]}
    params = copy.deepcopy(params)
    changed(params)
    if at:
        refused(params, at)
        refused(params, why)
    else:
        standin().create(params)  # in another process of the same provider
        refused(params, INVALID, standin(seed=1))


def test_only_the_last_block_of_the_last_message_may_not_be_thinking() -> None:
    api = standin()
    message = said(api.create(request(user("x")), Reply.only_thinking("hm")))
    refused(request(user("x"), message), "The final block in an assistant message cannot be `thinking`", api)
    api.create(request(user("x"), message, user("y")))


def test_after_a_pause_the_request_ends_with_the_reply_as_it_came() -> None:
    api = standin()
    paused = said(api.create(request(user("x")), Reply.pause("hats", think("long"))))
    changed = copy.deepcopy(paused)
    changed["content"][-1]["input"]["query"] = "cats"
    refused(request(user("x"), changed), "must end with a user message", api)
    refused(request(user("x"), paused, user("y")), "without a corresponding `web_search_tool_result`", api)
    found = search_result(paused["content"][-1]["id"])
    rest = said(api.create(request(user("x"), paused), Reply(found, "Done.")))
    api.create(request(user("x"), paused, rest, user("y")))


def test_a_server_call_may_wait_for_the_results_of_our_own_tools() -> None:
    api = standin()
    mixed = said(api.create(request(user("x")), Reply(server_call("web_search"), call("look"))))
    server_id, call_id = (block["id"] for block in mixed["content"])
    refused(request(user("x"), mixed, user(result(call_id), "and?")), "was found without a corresponding", api)
    rest = said(api.create(request(user("x"), mixed, user(result(call_id))), Reply(search_result(server_id), "y")))
    api.create(request(user("x"), mixed, user(result(call_id)), rest, user("z")))


# ---- how it answers


def test_answers_as_scripted_in_the_form_of_the_wire() -> None:
    api = standin()
    params = request(user("Hi"))
    message = api.create(params, Reply("Hello.", call("look", {"at": "sea"})))
    parsed = sdk.Message.model_validate(message)
    assert parsed.stop_reason == "tool_use"
    assert isinstance(parsed.content[1], sdk.ToolUseBlock)
    assert parsed.content[1].input == {"at": "sea"}
    assert api.create(request(user("Hi")))["content"] == [text("ok")]
    assert api.create(params, lambda given: Reply(given["model"]))["content"] == [text("m")]
    params["messages"][0]["content"][0]["text"] = "changed later"
    assert api.requests[0]["messages"] == [user("Hi")]
    assert api.replies[0]["id"] == message["id"]


def test_ids_are_unique_unless_asked_otherwise() -> None:
    api, look = standin(), call("look")
    replies = [api.create(request(user(f"x {turn // 2}")), Reply(look, look)) for turn in range(3)]
    assert len({block["id"] for reply in replies for block in reply["content"]}) == 6
    twice = Reply.same_ids(look, look)
    message = standin(duplicate_ids=True).create(request(user("x")), twice)
    assert [block["id"] for block in message["content"]] == ["call_0", "call_0"]
    with pytest.raises(ValueError, match="is taken"):
        api.create(request(user("x")), twice)
    with pytest.raises(ValueError, match="is taken"):
        api.create(request(user("x"), assistant(use()), user(result())), Reply(call("look", call_id="toolu_1")))


def test_the_window_holds_input_and_max_tokens_and_thinking_as_it_was_thought() -> None:
    params = request(user("word " * 500))
    size = standin().count_tokens({name: value for name, value in params.items() if name != "max_tokens"})
    Standin(limit_tokens=size + 1_000).create(params)
    for limit, message in (
        (size + 999, f"exceed context limit: {size} + 1000 > {size + 999}"),
        (size - 1, f"prompt is too long: {size} tokens > {size - 1} maximum"),
    ):
        refused(params, message, Standin(limit_tokens=limit))
    api = standin()
    with pytest.raises(Rejected, match="max_tokens: Extra inputs are not permitted"):
        api.count_tokens(params)
    message = api.create(request(user("x")), Reply(think(tokens=700), "y"))
    replies = (said(message), assistant("y"))
    sizes = [api.create(request(user("x"), reply, user("z")))["usage"]["input_tokens"] for reply in replies]
    assert sizes[0] - sizes[1] == 700 < message["usage"]["output_tokens"]


@pytest.mark.parametrize(
    "reply", [Reply("word " * 3_000), Reply(think("word " * 3_000)), Reply("a", call("look", {"at": "b " * 3_000}))]
)
def test_a_reply_is_cut_at_max_tokens(reply: Reply) -> None:
    message = standin().create(request(user("x")), reply)
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] <= 1_000
    assert message["content"]


def test_the_tokenizer_is_its_seeds_own() -> None:
    kinds = ("plain words", "1234567890" * 5, "日本語のテキスト", '{"a": [1, 2]}\n\t<b>')
    counts = [[Tokenizer(seed=seed).text(kind * 40) for kind in kinds] for seed in (1, 1, 2)]
    assert counts[0] == counts[1] != counts[2]
    assert all(1.0 <= ratio <= 1.6 for seed in range(20) for ratio in Tokenizer(seed=seed).ratios.values())
    assert Tokenizer(ratios={"other": 9.0}).text("é" * 50) == 100  # never more than there are bytes


def test_images_count_by_size_and_documents_by_pages() -> None:
    def counted(kind: str, media_type: str, data: bytes) -> int:
        source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
        return count_block({"type": kind, "source": source})[4]

    assert count_block(image(750, 400))[4] == 400
    assert counted("image", "image/jpeg", b"\xff\xd8\xff" + bytes(80)) == IMAGE_TOKENS
    pdf = b"%PDF-1.7 /Type /Pages " + b"<</Type /Page /Parent 1 0 R>>" * 3
    assert counted("document", "application/pdf", pdf) == 3 * PAGE_TOKENS


@pytest.mark.parametrize(
    ("changed", "reads"),
    [
        ({}, 1),
        ({"model": "n"}, 0),
        ({"tools": [TOOL]}, 0),
        ({"system": "s"}, 0),
        ({"thinking": {"type": "adaptive"}}, 0),
    ],
)
def test_the_same_prefix_is_read_from_the_cache_and_another_is_not(changed: Params, reads: int) -> None:
    api, params = standin(), request(user(text(cache_control=MARK)))
    written = api.create(params)["usage"]
    assert (written["cache_read_input_tokens"], written["input_tokens"]) == (0, 0)
    found = api.create({**params, **changed})["usage"]
    assert found["cache_read_input_tokens"] == reads * written["cache_creation_input_tokens"]
