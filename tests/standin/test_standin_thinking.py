"""The stand-in: thinking is bound to what stood before it."""

from __future__ import annotations

import copy

import pytest

from tests.standin import Rejected, Reply, Standin, call, redacted_thinking, thinking
from tests.support.params import MARK, SEARCH, TOOL, Params, request, result, said, standin, text, thought, user


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


def test_thinking_is_bound_to_everything_before_it() -> None:
    api = standin()
    conversation = thought(api, system="Be kind.")
    api.create(request(*conversation, system=[text("Be kind.")]))
    for changed in (
        {"tools": [TOOL]},
        {"tools": [SEARCH, TOOL]},
        {"tools": [{**TOOL, "description": "Looks!"}, SEARCH]},
        {"system": "Be brief."},
        {},
    ):
        params = request(*conversation, **({"system": "Be kind."} if "tools" in changed else {}), **changed)
        bound(api, params, "messages.1.content.0")
    for index, at in ((0, "messages.1.content.0"), (2, "messages.3.content.0"), (1, "messages.3.content.0")):
        turned = copy.deepcopy(conversation)
        turned[index]["content"][-1]["text"] += "!"
        bound(api, request(*turned, system="Be kind."), at)
    for first in ([user("digest")], [conversation[0], user("more"), conversation[1]]):
        bound(api, request(*first, *conversation[2:], system="Be kind."), "messages.2.content.0")


def test_thinking_is_bound_to_the_order_of_keys_in_an_input() -> None:
    api = standin()
    one = said(api.create(request(user("x")), Reply(call("look", {"a": 1, "b": 2}))))
    answer = user(result(one["content"][0]["id"]))
    two = said(api.create(request(user("x"), one, answer), Reply(thinking("hm"), "y")))
    turned = copy.deepcopy(one)
    turned["content"][0]["input"] = {"b": 2, "a": 1}
    api.create(request(user("x"), {"content": one["content"], "role": "assistant"}, answer, two, user("z")))
    bound(api, request(user("x"), turned, answer, two, user("z")), "messages.3.content.0")


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


def test_a_model_without_preserved_thinking_looks_at_the_signature_alone() -> None:
    api = standin(bound_thinking=False)
    conversation = thought(api)
    api.create(request(*conversation[2:]))
    conversation[1]["content"][0]["thinking"] = "other"
    with pytest.raises(Rejected, match="Invalid `signature`"):
        api.create(request(*conversation))
