"""The stand-in of the Messages API: one test per rule that it enforces, and per number that it reports."""

from __future__ import annotations

import base64
import copy
import json
import struct
import time
from typing import Any, Required, get_origin, get_type_hints

import anthropic.types as sdk
import pytest
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from pydantic import TypeAdapter

from tests.standin import (
    GrowthWatch,
    Rejected,
    Reply,
    Standin,
    call,
    redacted_thinking,
    search_result,
    server_call,
    thinking,
)
from tests.standin.params import COUNT, CREATE, CUSTOM_TOOL
from tests.standin.shapes import BLOCKS
from tests.standin.tokenizer import IMAGE_TOKENS, PAGE_TOKENS, Tokenizer, count_block

Params = dict[str, Any]
TOOL: Params = {
    "name": "look",
    "description": "Looks.",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
SEARCH: Params = {"type": "web_search_20250305", "name": "web_search"}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def text(content: str = "x", **fields: Any) -> Params:
    return {"type": "text", "text": content, **fields}


def user(*blocks: Any) -> Params:
    return {"role": "user", "content": [text(each) if isinstance(each, str) else each for each in blocks]}


def assistant(*blocks: Any) -> Params:
    return {**user(*blocks), "role": "assistant"}


def use(call_id: str = "toolu_1", **fields: Any) -> Params:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {"at": "sky"}, **fields}


def result(call_id: str = "toolu_1", content: Any = "blue", **fields: Any) -> Params:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def request(*messages: Any, **fields: Any) -> Params:
    return {"model": "m", "max_tokens": 1_000, "messages": list(messages), "tools": [TOOL, SEARCH], **fields}


def standin(**options: Any) -> Standin:
    return Standin(**{"limit_tokens": 100_000, "cache_min_tokens": 0, **options})


def said(message: Params) -> Params:
    return {"role": "assistant", "content": message["content"]}


def refused(params: Params, *parts: str, **options: Any) -> None:
    api = standin(**options)
    with pytest.raises(Rejected) as error:
        api.create(params)
    assert error.value.status == 400
    assert error.value.body["error"]["type"] == "invalid_request_error"
    for part in parts:
        assert part in error.value.message
    assert api.requests == []


def test_answers_as_scripted_in_the_form_of_the_wire() -> None:
    api = standin()
    params = request(user("Hi"))
    message = api.create(params, Reply("Hello.", call("look", {"at": "sea"})))
    parsed = sdk.Message.model_validate(message)
    assert parsed.stop_reason == "tool_use"
    assert isinstance(parsed.content[1], sdk.ToolUseBlock)
    assert parsed.content[1].id.startswith("toolu_")
    assert parsed.content[1].input == {"at": "sea"}
    assert api.create(request(user("Hi")))["content"] == [text("ok")]
    assert api.create(params, lambda given: Reply(given["model"]))["content"] == [text("m")]
    params["messages"][0]["content"][0]["text"] = "changed later"
    assert api.requests[0]["messages"] == [user("Hi")]
    assert api.replies[0]["id"] == message["id"]


def test_a_conversation_with_everything_in_it_is_accepted() -> None:
    api = standin()
    conversation = [user("Hi")]
    for reply in (
        Reply(thinking("which?"), "Let me see.", call("look", {"at": "a"}), call("look", {"at": "b"})),
        Reply(redacted_thinking(), thinking(tokens=300), call("look", {"at": "c"})),
        Reply(thinking(), server_call("web_search", {"query": "q"}), search_result(), "Done."),
    ):
        message = api.create(request(*conversation), reply)
        answers = [result(each["id"]) for each in message["content"] if each["type"] == "tool_use"]
        conversation += [said(message), user(*answers) if answers else user("And now?")]
    conversation.append(user("Two user messages are one."))
    api.create(request(*conversation))
    assert len(api.requests) == 4


REFUSED: dict[str, tuple[Params, str]] = {
    "no model": ({"max_tokens": 9, "messages": [user("x")]}, "model: Field required"),
    "no max_tokens": ({"model": "m", "messages": [user("x")]}, "max_tokens: Field required"),
    "max_tokens of zero": (request(user("x"), max_tokens=0), "max_tokens: must be greater than or equal to 1"),
    "max_tokens as text": (request(user("x"), max_tokens="9"), "max_tokens: Input should be a valid integer"),
    "unknown field": (request(user("x"), temperature=1.0), "temperature: Extra inputs are not permitted"),
    "no messages": (request(), "messages: at least one message"),
    "messages are no list": ({**request(), "messages": "x"}, "messages: Input should be a valid array"),
    "message without content": (request({"role": "user"}), "messages.0.content: Field required"),
    "message with a field": (request({**user("x"), "name": "Jo"}), "messages.0.name: Extra inputs"),
    "other role": (request(user("x"), {"role": "tool", "content": "x"}), "messages.1.role"),
    "system role": (request(user("x"), {"role": "system", "content": "x"}), 'Unexpected role "system"'),
    "assistant first": (request(assistant("x"), user("x")), 'first message must use the "user" role'),
    "assistant last": (request(user("x"), assistant("y")), "must end with a user message"),
    "trailing space": (request(user("x"), assistant("y ")), "cannot end with trailing whitespace"),
    "empty string": (request({"role": "user", "content": ""}), "must have non-empty content"),
    "empty list": (request(user("x"), assistant(), user("y")), "messages.1: all messages must have non-empty content"),
    "empty text": (request(user("")), "messages: text content blocks must be non-empty"),
    "blank text": (request(user("x"), assistant("\n\n"), user("y")), "must contain non-whitespace text"),
    "blank string": (request({"role": "user", "content": " \n"}), "must contain non-whitespace text"),
    "empty system block": (request(user("x"), system=[text("")]), "system: text content blocks must be non-empty"),
    "image in system": (request(user("x"), system=[{"type": "image"}]), "system.0: Input tag 'image'"),
    "unknown block": (request(user({"type": "video"})), "messages.0.content.0: Input tag 'video'"),
    "block without type": (request(user({"text": "x"})), "messages.0.content.0.type: Field required"),
    "block with a field": (request(user(text(note="n"))), "messages.0.content.0.text.note: Extra inputs"),
    "block without a field": (request(user({"type": "text"})), "messages.0.content.0.text.text: Field required"),
    "call without input": (
        request(user("x"), assistant({"type": "tool_use", "id": "a", "name": "look"}), user(result("a"))),
        "tool_use.input: Field required",
    ),
    "call by the user": (request(user(use())), "`tool_use` blocks can only be in `assistant` messages"),
    "result by the model": (request(user("x"), assistant(result()), user("y")), "only be in `user` messages"),
    "thinking by the user": (
        request(user({"type": "thinking", "thinking": "", "signature": "x"})),
        "`thinking` blocks can only be in `assistant` messages",
    ),
    "bad call id": (request(user("x"), assistant(use("a b")), user(result("a b"))), "should match pattern"),
    "bad tool name in a call": (request(user("x"), assistant(use(name="l k")), user(result())), "match pattern"),
    "call at the end": (request(user("x"), assistant(use())), "without `tool_result` blocks immediately after"),
    "call without result": (request(user("x"), assistant(use()), user("y")), "messages.1: `tool_use` ids were found"),
    "call without one result": (
        request(user("x"), assistant(use(), use("toolu_2")), user(result())),
        "immediately after: toolu_2.",
    ),
    "text before result": (request(user("x"), assistant(use()), user("y", result())), "messages.1: `tool_use` ids"),
    "text between results": (
        request(user("x"), assistant(use(), use("toolu_2")), user(result(), "y", result("toolu_2"))),
        "immediately after: toolu_2.",
    ),
    "results in two messages": (
        request(user("x"), assistant(use(), use("toolu_2")), user(result()), user(result("toolu_2"))),
        "immediately after: toolu_2.",
    ),
    "result before the next message": (
        request(user("x"), assistant(use()), assistant("y"), user(result())),
        "messages.1: `tool_use` ids",
    ),
    "result without call": (request(user(result())), "messages.0.content.0: unexpected `tool_use_id`"),
    "result of an earlier call": (
        request(user("x"), assistant(use()), user(result()), assistant("y"), user(result())),
        "messages.4.content.0: unexpected `tool_use_id`",
    ),
    "two results": (request(user("x"), assistant(use()), user(result(), result())), "must have a single result"),
    "repeated id": (
        request(user("x"), assistant(use()), user(result()), assistant(use()), user(result())),
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    "repeated id in a message": (request(user("x"), assistant(use(), use()), user(result())), "must be unique"),
    "error without words": (
        request(user("x"), assistant(use()), user(result(content="", is_error=True))),
        "content cannot be empty if `is_error` is true",
    ),
    "empty text in a result": (request(user("x"), assistant(use()), user(result(content=[text("")]))), "non-empty"),
    "blank result": (request(user("x"), assistant(use()), user(result(content="\n"))), "non-whitespace"),
    "call in a result": (request(user("x"), assistant(use()), user(result(content=[use("b")]))), "Input tag"),
    "calls without tools": (
        request(user("x"), assistant(use()), user(result()), tools=[]),
        "must define tools",
    ),
    "server call without result": (
        request(user("x"), assistant({**use("srvtoolu_1", name="web_search"), "type": "server_tool_use"}), user("y")),
        "`web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result`",
    ),
    "server result without call": (
        request(user("x"), assistant({**search_result("srvtoolu_1")}), user("y")),
        "unexpected `tool_use_id` found in `web_search_tool_result` blocks",
    ),
    "bad server call id": (
        request(user("x"), assistant({**use(name="web_search"), "type": "server_tool_use"}), user("y")),
        "should match pattern '^srvtoolu_",
    ),
    "tool without schema": (request(user("x"), tools=[{"name": "a"}]), "tools.0.custom.input_schema: Field required"),
    "tool with a bad name": (request(user("x"), tools=[{**TOOL, "name": "a.b"}]), "tools.0.custom.name: String"),
    "tool with a long name": (request(user("x"), tools=[{**TOOL, "name": "a" * 129}]), "{1,128}"),
    "two tools of one name": (request(user("x"), tools=[TOOL, TOOL]), "Tool names must be unique"),
    "schema without type": (request(user("x"), tools=[{**TOOL, "input_schema": {}}]), "input_schema.type: Field"),
    "schema of a list": (
        request(user("x"), tools=[{**TOOL, "input_schema": {"type": "array"}}]),
        "Input should be 'object'",
    ),
    "schema with a choice on top": (
        request(user("x"), tools=[{**TOOL, "input_schema": {"type": "object", "anyOf": [{}]}}]),
        "does not support oneOf, allOf, or anyOf at the top level",
    ),
    "schema with a bad key": (
        request(user("x"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"a b": {}}}}]),
        "Property keys should match pattern",
    ),
    "schema that is none": (
        request(user("x"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"a": {"type": "str"}}}}]),
        "JSON schema is invalid",
    ),
    "unknown kind of tool": (request(user("x"), tools=[{"type": "magic_1", "name": "a"}]), "tools.0: Input tag"),
    "provider's tool, misnamed": (request(user("x"), tools=[{**SEARCH, "name": "find"}]), "should be 'web_search'"),
    "choice of no tool": (request(user("x"), tools=[], tool_choice={"type": "any"}), "while providing tools"),
    "choice of an unknown tool": (request(user("x"), tool_choice={"type": "tool", "name": "b"}), "'b' not found"),
    "forced tool and thinking": (
        request(user("x"), tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
        "Thinking may not be enabled",
    ),
    "unknown thinking": (request(user("x"), thinking={"type": "deep"}), "thinking: Input tag 'deep'"),
    "small thinking budget": (
        request(user("x"), thinking={"type": "enabled", "budget_tokens": 100}),
        "thinking.enabled.budget_tokens: must be greater than or equal to 1024",
    ),
    "thinking budget over max_tokens": (
        request(user("x"), thinking={"type": "enabled", "budget_tokens": 1_024}),
        "must be greater than `thinking.budget_tokens`",
    ),
    "blank stop sequence": (request(user("x"), stop_sequences=[" "]), "stop_sequences.0: each stop sequence"),
    "half a surrogate": (request(user("\ud800")), "not valid UTF-8"),
    "mark with another ttl": (
        request(user(text(cache_control={"type": "ephemeral", "ttl": "2h"}))),
        "messages.0.content.0.text.cache_control.ttl: Input should be '5m' or '1h'",
    ),
    "mark on an empty block": (request(user(text("", cache_control=MARK))), "cannot be set for empty text blocks"),
    "mark on thinking": (
        request(
            user("x"),
            assistant({"type": "thinking", "thinking": "", "signature": "s", "cache_control": MARK}, "y"),
            user("z"),
        ),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "mark inside a result": (
        request(user("x"), assistant(use()), user(result(content=[text(cache_control=MARK)]))),
        "a mark belongs on the tool_result itself",
    ),
    "five marks": (
        request(
            user(*[text(cache_control=MARK)] * 3),
            tools=[{**TOOL, "cache_control": MARK}],
            system=[text(cache_control=MARK)],
        ),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "five marks, one by itself": (
        request(user(*[text(cache_control=MARK)] * 4, "x"), cache_control=MARK),
        "Found 5.",
    ),
    "an hour after five minutes": (
        request(user(text(cache_control=HOUR)), system=[text(cache_control=MARK)]),
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    params, message = REFUSED[name]
    refused(params, message)


def test_what_is_no_json_is_our_own_mistake() -> None:
    with pytest.raises(TypeError, match="not plain JSON"):
        standin().create(request(user(sdk.TextBlock(type="text", text="x"))))


def test_system_messages_are_an_option_with_places_of_their_own() -> None:
    system = {"role": "system", "content": "Be brief."}
    standin(system_role=True).create(request(user("x"), system))
    standin(system_role=True).create(request(user("x"), system, assistant("y"), user("z")))
    refused(request(system, user("x")), "messages.0: use the top-level", system_role=True)
    refused(request(user("x"), assistant("y"), system, user("z")), "messages.2: role 'system'", system_role=True)
    refused(request(user("x"), system, user("z")), "must precede an 'assistant' message", system_role=True)


def test_only_the_last_block_of_the_last_message_may_not_be_thinking() -> None:
    api = standin()
    message = api.create(request(user("x")), Reply.only_thinking("hm"))
    with pytest.raises(Rejected, match="The final block in an assistant message cannot be `thinking`"):
        api.create(request(user("x"), said(message)))
    api.create(request(user("x"), said(message), user("y")))


def test_after_a_pause_the_request_ends_with_the_reply_as_it_came() -> None:
    api = standin()
    paused = said(api.create(request(user("x")), Reply.pause("hats", thinking("long"))))
    changed = copy.deepcopy(paused)
    changed["content"][-1]["input"]["query"] = "cats"
    with pytest.raises(Rejected, match="must end with a user message"):
        api.create(request(user("x"), changed))
    with pytest.raises(Rejected, match="was found without a corresponding `web_search_tool_result`"):
        api.create(request(user("x"), paused, user("y")))
    found = search_result(paused["content"][-1]["id"])
    rest = said(api.create(request(user("x"), paused), Reply(found, "Done.")))
    api.create(request(user("x"), paused, rest, user("y")))
    ended = said(api.create(request(user("x")), Reply("Done.")))
    with pytest.raises(Rejected, match="must end with a user message"):
        api.create(request(user("x"), ended))


def test_a_server_call_may_wait_for_the_results_of_our_own_tools() -> None:
    api = standin()
    mixed = said(api.create(request(user("x")), Reply(server_call("web_search"), call("look"))))
    server_id, call_id = (block["id"] for block in mixed["content"])
    with pytest.raises(Rejected, match="was found without a corresponding"):
        api.create(request(user("x"), mixed, user(result(call_id), "and?")))
    rest = said(api.create(request(user("x"), mixed, user(result(call_id))), Reply(search_result(server_id), "y")))
    api.create(request(user("x"), mixed, user(result(call_id)), rest, user("z")))


# ---- thinking


def thought(api: Standin, turns: int = 3, **fields: Any) -> list[Params]:
    """A conversation in which the model has thought in every turn."""
    conversation = [user("x")]
    for turn in range(turns):
        message = api.create(request(*conversation, **fields), Reply(thinking(f"hm {turn}"), f"y {turn}"))
        conversation += [said(message), user(f"z {turn}")]
    return conversation


def bound(api: Standin, params: Params, at: str) -> None:
    with pytest.raises(Rejected) as error:
        api.create(params)
    assert error.value.message.startswith(f"{at}: Invalid `signature` in `thinking` block. The block is bound to a")


def test_thinking_may_come_back_with_what_was_before_it() -> None:
    api = standin()
    conversation = thought(api)
    api.create(request(*conversation))
    moved = copy.deepcopy(conversation)
    moved[2]["content"][0]["cache_control"] = MARK
    api.create(request(*moved))
    whole = copy.deepcopy(conversation)
    whole[0]["content"] = "x"  # a string is one block of text
    api.create(request(*whole))
    api.create(request(*conversation, thinking={"type": "adaptive"}))  # not part of what is bound


@pytest.mark.parametrize(
    "change",
    [
        {"tools": [TOOL]},
        {"tools": [SEARCH, TOOL]},
        {"tools": [{**TOOL, "description": "Looks!"}, SEARCH]},
        {"system": "Be brief."},
        {"system": [text("Be kind.")]},
    ],
)
def test_thinking_is_bound_to_tools_and_system(change: Params) -> None:
    api = standin()
    conversation = thought(api, system="Be kind.") if "tools" in change else thought(api)
    before = {"system": "Be kind."} if "tools" in change else {}
    api.create(request(*conversation, **before))
    bound(api, request(*conversation, **{**before, **change}), "messages.1.content.0")


def test_thinking_is_bound_to_every_earlier_message() -> None:
    api = standin()
    conversation = thought(api)
    for index, at in ((0, "messages.1.content.0"), (2, "messages.3.content.0"), (1, "messages.3.content.0")):
        changed = copy.deepcopy(conversation)
        changed[index]["content"][-1]["text"] += "!"
        bound(api, request(*changed), at)
    bound(api, request(user("digest"), *conversation[2:]), "messages.2.content.0")
    bound(api, request(conversation[0], user("more"), *conversation[1:]), "messages.2.content.0")


def test_thinking_is_bound_to_the_order_of_keys_in_an_input() -> None:
    api = standin()
    one = said(api.create(request(user("x")), Reply(call("look", {"a": 1, "b": 2}))))
    answer = user(result(one["content"][0]["id"]))
    two = said(api.create(request(user("x"), one, answer), Reply(thinking("hm"), "y")))
    turned = copy.deepcopy(one)
    turned["content"][0]["input"] = {"b": 2, "a": 1}
    api.create(request(user("x"), {"content": one["content"], "role": "assistant"}, answer, two, user("z")))
    bound(api, request(user("x"), turned, answer, two, user("z")), "messages.3.content.0")


def test_where_a_message_ends_does_not_matter_to_thinking() -> None:
    api = standin()
    message = said(api.create(request(user("a"), user("b")), Reply(thinking("hm"), "y")))
    api.create(request(user("a", "b"), message, user("z")))


def test_the_text_of_thinking_may_not_change() -> None:
    api = standin()
    conversation = thought(api, 1)
    for field, value in (("thinking", "hm!"), ("signature", "c2lnbmF0dXJl"), ("signature", "")):
        changed = copy.deepcopy(conversation)
        changed[1]["content"][0][field] = value
        with pytest.raises(Rejected) as error:
            api.create(request(*changed))
        assert error.value.message == "messages.1.content.0: Invalid `signature` in `thinking` block"
    with pytest.raises(Rejected, match="Invalid `signature`"):
        standin(seed=1).create(request(*conversation))
    standin().create(request(*conversation))  # another process of the same provider


def without_thinking(conversation: list[Params], *indexes: int) -> list[Params]:
    kept = copy.deepcopy(conversation)
    for index in indexes:
        kept[index]["content"] = [each for each in kept[index]["content"] if each["type"] == "text"]
    return kept


def test_the_oldest_thinking_may_go_and_what_is_between_others_may_not() -> None:
    api = standin()
    conversation = thought(api)
    api.create(request(*without_thinking(conversation, 1)))
    api.create(request(*without_thinking(conversation, 1, 3)))
    bound(api, request(*without_thinking(conversation, 3)), "messages.5.content.0")
    api.create(request(*without_thinking(conversation, 5)))


def test_two_thinking_blocks_may_not_change_places() -> None:
    api = standin()
    message = said(api.create(request(user("x")), Reply(thinking("a"), thinking("b"), redacted_thinking(), "y")))
    api.create(request(user("x"), message, user("z")))
    for one, two in ((0, 1), (1, 2)):
        turned = copy.deepcopy(message)
        blocks = turned["content"]
        blocks[one], blocks[two] = blocks[two], blocks[one]
        with pytest.raises(Rejected, match="bound to a different conversation"):
            api.create(request(user("x"), turned, user("z")))


def test_after_all_thinking_is_gone_new_thinking_is_valid_and_the_old_stays_away() -> None:
    api = standin()
    old = thought(api)
    kept = [user("digest"), *without_thinking(old, 5)[4:]]
    new = said(api.create(request(*kept), Reply(thinking("afresh"), "y")))
    api.create(request(*kept, new, user("z")))
    same = without_thinking(old, 1, 3, 5)
    new = said(api.create(request(*same), Reply(thinking("afresh"), "y")))
    api.create(request(*same, new, user("z")))
    bound(api, request(*old, new, user("z")), "messages.7.content.0")


def test_a_model_without_preserved_thinking_looks_at_the_signature_alone() -> None:
    api = standin(bound_thinking=False)
    conversation = thought(api)
    api.create(request(*conversation[2:]))
    conversation[1]["content"][0]["thinking"] = "other"
    with pytest.raises(Rejected, match="Invalid `signature`"):
        api.create(request(*conversation))


# ---- the window


def test_the_window_holds_input_and_max_tokens() -> None:
    params = request(user("word " * 500))
    size = standin().count_tokens({name: value for name, value in params.items() if name != "max_tokens"})
    Standin(limit_tokens=size + 1_000).create(params)
    refused(params, f"exceed context limit: {size} + 1000 > {size + 999}", limit_tokens=size + 999)
    refused(params, f"prompt is too long: {size} tokens > {size - 1} maximum", limit_tokens=size - 1)


def test_the_newest_models_stop_at_the_end_of_the_window_instead() -> None:
    params = request(user("word " * 500))
    size = standin().count_tokens({name: value for name, value in params.items() if name != "max_tokens"})
    api = Standin(limit_tokens=size + 100, max_tokens_count=False)
    message = api.create(params, Reply("word " * 500))
    assert message["stop_reason"] == "model_context_window_exceeded"
    assert message["usage"]["output_tokens"] <= 100


@pytest.mark.parametrize(
    "reply", [Reply("word " * 3_000), Reply(thinking("word " * 3_000)), Reply("a", call("look", {"at": "b " * 3_000}))]
)
def test_a_reply_is_cut_at_max_tokens(reply: Reply) -> None:
    message = standin().create(request(user("x")), reply)
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] <= 1_000
    assert message["content"]


def test_counting_takes_other_fields_than_creating() -> None:
    with pytest.raises(Rejected, match="max_tokens: Extra inputs are not permitted"):
        standin().count_tokens(request(user("x")))


def test_the_size_is_what_creating_bills_and_thinking_counts_as_it_was_thought() -> None:
    api = standin()
    message = api.create(request(user("x")), Reply(thinking(tokens=700), "y"))
    assert message["usage"]["output_tokens"] > 700
    with_it = request(user("x"), said(message), user("z"))
    without = request(user("x"), assistant("y"), user("z"))
    sizes = [api.create(params)["usage"]["input_tokens"] for params in (with_it, without)]
    assert sizes[0] - sizes[1] == 700
    del with_it["max_tokens"]
    assert api.count_tokens(with_it) == sizes[0]


def test_the_tokenizer_is_its_seeds_own() -> None:
    kinds = ("plain words", "1234567890" * 5, "日本語のテキスト", '{"a": [1, 2]}\n\t<b>')
    counts = [[Tokenizer(seed=seed).text(kind * 40) for kind in kinds] for seed in (1, 1, 2)]
    assert counts[0] == counts[1] != counts[2]
    for seed in range(20):
        ratios = Tokenizer(seed=seed).ratios
        assert all(1.0 <= ratio <= 1.6 for ratio in ratios.values())
    assert Tokenizer(ratios={"other": 9.0}).text("é" * 50) == 100  # never more than there are bytes
    double = Tokenizer(ratios={"digits": 2.0}).text(kinds[1])
    assert double == 2 * Tokenizer(ratios={"digits": 1.0}).text(kinds[1])
    with pytest.raises(ValueError, match="no kind of text"):
        Tokenizer(ratios={"verse": 1.0})


def test_images_count_by_size_and_documents_by_pages() -> None:
    def counted(kind: str, media_type: str, data: bytes) -> int:
        source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
        return count_block({"type": kind, "source": source})[4]

    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 750, 400) + bytes(40)
    assert counted("image", "image/png", png) == 400
    assert counted("image", "image/jpeg", b"\xff\xd8\xff" + bytes(80)) == IMAGE_TOKENS
    pdf = b"%PDF-1.7 /Type /Pages " + b"<</Type /Page /Parent 1 0 R>>" * 3
    assert counted("document", "application/pdf", pdf) == 3 * PAGE_TOKENS


# ---- the prompt cache


def bill(api: Standin, params: Params) -> tuple[int, int, int]:
    usage = api.create(params)["usage"]
    whole = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    del params["max_tokens"]
    assert whole == api.count_tokens(params)
    assert sum(usage["cache_creation"].values()) == usage["cache_creation_input_tokens"]
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["input_tokens"]


def test_what_one_request_writes_the_next_one_reads() -> None:
    api = standin()
    read, written, plain = bill(api, request(user(text("a" * 50, cache_control=MARK), "b")))
    assert (read, plain > 0, written > 0) == (0, True, True)
    again = bill(api, request(user(text("a" * 50), text("b", cache_control=MARK))))
    assert again[0] == written
    assert again[1] == plain
    assert again[2] == 0


def test_without_a_mark_nothing_is_cached() -> None:
    api = standin()
    assert bill(api, request(user("a")))[:2] == (0, 0)
    assert bill(api, request(user("a")))[:2] == (0, 0)


def test_a_request_can_be_marked_as_a_whole() -> None:
    api = standin()
    _, written, plain = bill(api, request(user("a"), cache_control=MARK))
    assert plain == 0
    assert bill(api, request(user("a"), user(text("b", cache_control=MARK))))[0] == written


@pytest.mark.parametrize(
    "change",
    [{"model": "n"}, {"tools": [TOOL]}, {"system": "s"}, {"thinking": {"type": "adaptive"}}],
)
def test_another_prefix_is_not_found(change: Params) -> None:
    api = standin()
    bill(api, request(user(text(cache_control=MARK))))
    assert bill(api, {**request(user(text(cache_control=MARK))), **change})[0] == 0


def test_tools_and_system_are_found_when_messages_differ() -> None:
    api = standin()
    fixed = {"tools": [{**TOOL, "cache_control": MARK}], "system": [text("s" * 40, cache_control=MARK)]}
    _, written, _ = bill(api, request(user("a"), **fixed))
    assert bill(api, request(user("b"), **fixed))[0] == written
    other = {**fixed, "system": [text("t", cache_control=MARK)]}
    read, written_now, _ = bill(api, request(user("b"), **other))
    assert 0 < read < written
    assert written_now > 0


def test_a_mark_looks_back_twenty_blocks() -> None:
    for between, found in ((19, True), (20, False)):
        api = standin()
        bill(api, request(user(text(cache_control=MARK))))
        later = user(*["more"] * (between - 1), text("last", cache_control=MARK))
        assert (bill(api, request(user("x"), later))[0] > 0) is found, between
        both = request(user(text(cache_control=MARK)), later)
        assert bill(api, both)[0] > 0


def test_entries_last_as_long_as_their_ttl_and_reading_renews_them() -> None:
    now = [0.0]
    for mark, lasts in ((MARK, 5), (HOUR, 60)):
        api = standin(minutes=lambda: now[0])

        def read(api: Standin = api, mark: Params = mark) -> int:
            return bill(api, request(user(text(cache_control=mark))))[0]

        assert read() == 0
        now[0] += lasts - 1
        assert read() > 0
        now[0] += lasts - 1
        assert read() > 0
        now[0] += lasts
        assert read() == 0


def test_hours_and_minutes_are_told_apart() -> None:
    api = standin()
    message = api.create(request(user(text("a" * 60, cache_control=HOUR), text("b", cache_control=MARK))))
    creation = message["usage"]["cache_creation"]
    assert creation["ephemeral_1h_input_tokens"] > creation["ephemeral_5m_input_tokens"] > 0


def test_a_prefix_under_the_minimum_is_silently_not_cached() -> None:
    api = standin(cache_min_tokens=1_024)
    small = request(user(text(cache_control=MARK)))
    assert bill(api, copy.deepcopy(small))[:2] == (0, 0)
    assert bill(api, small)[:2] == (0, 0)
    large = request(user(text("word " * 1_500, cache_control=MARK)))
    assert bill(api, large)[1] > 1_024


def test_a_refused_request_leaves_no_trace() -> None:
    api = standin()
    with pytest.raises(Rejected):
        api.create(request(user(text(cache_control=MARK)), max_tokens=200_000))
    assert bill(api, request(user(text(cache_control=MARK))))[0] == 0


# ---- odd replies


@pytest.mark.parametrize(
    ("reply", "kinds", "stop_reason"),
    [
        (Reply.empty(), [], "end_turn"),
        (Reply.blank(), ["text"], "end_turn"),
        (Reply.only_thinking(), ["thinking"], "end_turn"),
        (Reply.cut_text("I was ab"), ["text"], "max_tokens"),
        (Reply.cut_call("look", {"at": "s"}, "Let me"), ["text", "tool_use"], "max_tokens"),
        (Reply.refusal(), [], "refusal"),
        (Reply.refusal("I can"), ["text"], "refusal"),
        (Reply.pause("hats"), ["server_tool_use"], "pause_turn"),
        (Reply.window_exceeded("I was"), ["text"], "model_context_window_exceeded"),
        (Reply.stopped_by("END", "x"), ["text"], "stop_sequence"),
    ],
)
def test_odd_replies(reply: Reply, kinds: list[str], stop_reason: str) -> None:
    message = standin().create(request(user("x")), reply)
    sdk.Message.model_validate(message)
    assert [block["type"] for block in message["content"]] == kinds
    assert message["stop_reason"] == stop_reason
    assert (message["stop_details"] is not None) == (stop_reason == "refusal")
    assert message["stop_sequence"] == ("END" if stop_reason == "stop_sequence" else None)
    assert message["usage"]["output_tokens"] > 0


def test_ids_are_unique_unless_asked_otherwise() -> None:
    api = standin()
    ids = [
        block["id"]
        for turn in range(3)
        for block in api.create(request(user(f"x {turn // 2}")), Reply(call("look"), call("look")))["content"]
    ]
    assert len(set(ids)) == 6
    twice = Reply.same_ids(call("look"), call("look"))
    message = standin(duplicate_ids=True).create(request(user("x")), twice)
    assert [block["id"] for block in message["content"]] == ["call_0", "call_0"]
    with pytest.raises(ValueError, match="duplicate_ids"):
        api.create(request(user("x")), twice)
    with pytest.raises(ValueError, match="is taken"):
        api.create(request(user("x"), assistant(use()), user(result())), Reply(call("look", call_id="toolu_1")))
    with pytest.raises(ValueError, match="no reply stops for"):
        Reply("x", stop_reason="tired")
    with pytest.raises(ValueError, match="never for pause_turn"):
        Reply(call("look"), stop_reason="pause_turn")


# ---- law 3


def test_the_watch_lets_a_prompt_grow_and_marks_move() -> None:
    watch = GrowthWatch()
    watch.see(request(user(text(cache_control=MARK))), 1)
    watch.see(request(user(text()), assistant("y"), user(text("z", cache_control=MARK))), 1)
    watch.see(request(user("digest"), system="new"), 2)
    watch.see(request(user("digest"), user("more"), system="new"), 2)


@pytest.mark.parametrize(
    ("later", "what"),
    [
        (request(user("x"), assistant("y"), user("changed")), "messages.2 of 3 changed"),
        (request(user("x!"), assistant("y"), user("z"), user("more")), "messages.0 of 3 changed"),
        (request(user("x"), assistant("y")), "3 messages became 2"),
        (request(user("x"), assistant("y"), user("z", "added")), "messages.2 of 3 changed"),
        (request(user("x"), assistant("y"), {"role": "user", "content": "z"}), "messages.2 of 3 changed"),
        (request(user("x"), assistant("y"), user({"text": "z", "type": "text"})), "messages.2 of 3 changed"),
        (request(user("x"), assistant("y"), user("z"), system="s"), "system changed"),
        (request(user("x"), assistant("y"), user("z"), tools=[TOOL]), "tools changed"),
    ],
)
def test_the_watch_sees_every_change(later: Params, what: str) -> None:
    watch = GrowthWatch()
    watch.see(request(user("x"), assistant("y"), user("z")), 1)
    with pytest.raises(AssertionError, match=what):
        watch.see(later, 1)


def test_a_refused_tail_may_go_once_and_epochs_do_not_come_back() -> None:
    watch = GrowthWatch()
    watch.see(request(user("x"), assistant("y"), user("bad")), 1)
    watch.forget_tail(1)
    watch.see(request(user("x"), assistant("y"), user("good")), 1)
    with pytest.raises(AssertionError, match=r"messages\.2 of 3 changed"):
        watch.see(request(user("x"), assistant("y"), user("better")), 1)
    watch.forget_tail(1)
    with pytest.raises(AssertionError, match=r"messages\.1 of 3 changed"):
        watch.see(request(user("x"), assistant("?"), user("better")), 1)
    watch.forget_tail()
    watch.see(request(user("x"), user("shorter")), 1)
    watch.see(request(user("x")), 2)
    with pytest.raises(AssertionError, match="had ended and is back"):
        watch.see(request(user("x")), 1)


# ---- the tables, and how fast it is


def fields(param: Any) -> dict[str, bool]:
    """The fields of one of the SDK's types, and whether they are required."""
    hints = get_type_hints(param, include_extras=True)
    return {name: get_origin(hint) is Required for name, hint in hints.items()}


def test_the_tables_are_the_sdks_own_types() -> None:
    tables = {
        "".join(word.capitalize() for word in name.split("_")) + "BlockParam": shape for name, shape in BLOCKS.items()
    }
    for name, shape in (*tables.items(), ("ToolParam", CUSTOM_TOOL)):
        assert {**dict.fromkeys(shape.needs, True), **dict.fromkeys(shape.may, False)} == fields(getattr(sdk, name)), (
            name
        )
    for shape, param in ((CREATE, MessageCreateParamsNonStreaming), (COUNT, MessageCountTokensParams)):
        expected = fields(param)
        del expected["workspace_id"]  # sent as a header
        assert {**dict.fromkeys(shape.needs, True), **dict.fromkeys(shape.may, False)} == expected


def test_what_it_accepts_the_sdks_types_accept_too() -> None:
    api = standin()
    thought(api, thinking={"type": "adaptive"}, system=[text(cache_control=MARK)])
    oracle = TypeAdapter(MessageCreateParamsNonStreaming)
    for params in api.requests:
        checked: Any = oracle.validate_python(params)
        assert [len(list(message["content"])) for message in checked["messages"]]


def test_a_thousand_messages_that_were_seen_before_cost_milliseconds() -> None:
    api = standin(limit_tokens=1_000_000)
    conversation = [turn for i in range(500) for turn in (user(f"question {i}"), assistant(f"answer {i}"))]
    api.create(request(*conversation, user("and?")))
    best = 1.0
    for each in range(5):
        params = json.loads(json.dumps(request(*conversation, user("and?"), assistant("so"), user(f"{each}?"))))
        start = time.perf_counter()
        api.create(params)
        best = min(best, time.perf_counter() - start)
    assert best < 0.1, best  # about 6 ms on a quiet machine
