"""The stand-in of the Messages API: one test per rule that it enforces."""

from __future__ import annotations

import copy
from typing import Any

import anthropic.types as sdk
import pytest

from tests.standin import Rejected, Reply, call, redacted_thinking, search_result, server_call, thinking
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


def called(*blocks: Any, calls: tuple[Any, ...] = (use(),)) -> Params:
    return request(user("x"), assistant(*calls), user(*blocks))


def with_tool(**fields: Any) -> Params:
    return request(user("x"), tools=[{**TOOL, **fields}])


def with_property(name: str, kind: str) -> Params:
    return with_tool(input_schema={"type": "object", "properties": {name: {"type": kind}}})


TWO = (use(), use("toolu_2"))
SERVER_CALL = {**use("srvtoolu_1", name="web_search"), "type": "server_tool_use"}
THOUGHT = {"type": "thinking", "thinking": "", "signature": "s"}
BUDGET = {"type": "enabled", "budget_tokens": 1_024}
REFUSED: list[tuple[Params, str]] = [
    # fields of the request and of messages
    ({"max_tokens": 9, "messages": [user("x")]}, "model: Field required"),
    ({"model": "m", "messages": [user("x")]}, "max_tokens: Field required"),
    (request(user("x"), max_tokens=0), "max_tokens: must be greater than or equal to 1"),
    (request(user("x"), max_tokens="9"), "max_tokens: Input should be a valid integer"),
    (request(user("x"), temperature=1.0), "temperature: Extra inputs are not permitted"),
    (request(user("x"), stop_sequences=[" "]), "stop_sequences.0: each stop sequence"),
    (request(), "messages: at least one message"),
    ({**request(), "messages": "x"}, "messages: Input should be a valid array"),
    (request({"role": "user"}), "messages.0.content: Field required"),
    (request({**user("x"), "name": "Jo"}), "messages.0.name: Extra inputs"),
    (request(user("\ud800")), "not valid UTF-8"),
    # roles and their order
    (request(user("x"), {"role": "tool", "content": "x"}), "messages.1.role"),
    (request(user("x"), {"role": "system", "content": "x"}), 'Unexpected role "system"'),
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
    (request(user("x"), system=[{"type": "image"}]), "system.0: Input tag 'image'"),
    (request(user({"type": "video"})), "messages.0.content.0: Input tag 'video'"),
    (request(user({"text": "x"})), "messages.0.content.0.type: Field required"),
    (request(user(text(note="n"))), "messages.0.content.0.text.note: Extra inputs"),
    (request(user({"type": "text"})), "messages.0.content.0.text.text: Field required"),
    (called(result("a"), calls=({"type": "tool_use", "id": "a", "name": "look"},)), "tool_use.input: Field required"),
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
    (request(user("x"), tools=[{"name": "a"}]), "tools.0.custom.input_schema: Field required"),
    (with_tool(name="a.b"), "tools.0.custom.name: String"),
    (with_tool(name="a" * 129), "{1,128}"),
    (request(user("x"), tools=[TOOL, TOOL]), "Tool names must be unique"),
    (with_tool(input_schema={}), "input_schema.type: Field"),
    (with_tool(input_schema={"type": "array"}), "Input should be 'object'"),
    (with_tool(input_schema={"type": "object", "anyOf": [{}]}), "does not support oneOf, allOf, or anyOf"),
    (with_property("a b", "string"), "Property keys should match pattern"),
    (with_property("a", "str"), "JSON schema is invalid"),
    (request(user("x"), tools=[{"type": "magic_1", "name": "a"}]), "tools.0: Input tag"),
    (request(user("x"), tools=[{**SEARCH, "name": "find"}]), "should be 'web_search'"),
    (request(user("x"), tools=[], tool_choice={"type": "any"}), "while providing tools"),
    (request(user("x"), tool_choice={"type": "tool", "name": "b"}), "'b' not found"),
    (request(user("x"), tool_choice={"type": "any"}, thinking={"type": "adaptive"}), "Thinking may not be enabled"),
    # thinking
    (request(user("x"), thinking={"type": "deep"}), "thinking: Input tag 'deep'"),
    (request(user("x"), thinking={**BUDGET, "budget_tokens": 100}), "budget_tokens: must be greater than or equal to"),
    (request(user("x"), thinking=BUDGET), "must be greater than `thinking.budget_tokens`"),
    # marks
    (request(user(text(cache_control={**MARK, "ttl": "2h"}))), "text.cache_control.ttl: Input should be '5m' or '1h'"),
    (request(user(text("", cache_control=MARK))), "cannot be set for empty text blocks"),
    (called("z", calls=({**THOUGHT, "cache_control": MARK}, "y")), "content.0.thinking.cache_control: Extra inputs"),
    (called(result(content=[text(cache_control=MARK)])), "a mark belongs on the tool_result itself"),
    (request(user(*[text(cache_control=MARK)] * 4), system=[text(cache_control=MARK)]), "A maximum of 4 blocks"),
    (request(user(*[text(cache_control=MARK)] * 4, "x"), cache_control=MARK), "Found 5."),
    (request(user(text(cache_control=HOUR)), system=[text(cache_control=MARK)]), "must not come after a ttl='5m'"),
]


@pytest.mark.parametrize(
    ("params", "message"), REFUSED, ids=[f"{at}: {message}" for at, (_, message) in enumerate(REFUSED)]
)
def test_refuses(params: Params, message: str) -> None:
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
