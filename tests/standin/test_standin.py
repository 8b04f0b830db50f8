"""The stand-in of the Messages API: one test per rule that it enforces."""

from __future__ import annotations

import copy

import anthropic.types as sdk
import pytest

from tests.standin import (
    Rejected,
    Reply,
    call,
    redacted_thinking,
    search_result,
    server_call,
    thinking,
)
from tests.support.params import (
    HOUR,
    MARK,
    SEARCH,
    TOOL,
    Params,
    assistant,
    refused,
    request,
    result,
    said,
    standin,
    text,
    use,
    user,
)


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
