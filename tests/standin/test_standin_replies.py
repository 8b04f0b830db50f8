"""The stand-in: ids of calls, and prompts that only grow."""

from __future__ import annotations

import pytest

from tests.standin import GrowthWatch, Reply, call
from tests.support.params import MARK, TOOL, Params, assistant, request, result, standin, text, use, user


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
