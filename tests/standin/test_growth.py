"""The witness of law 3: what it lets pass, and that it sees every change."""

from __future__ import annotations

import pytest

from tests.standin import GrowthWatch
from tests.support.params import MARK, TOOL, Params, assistant, request, text, user


def test_the_watch_lets_a_prompt_grow_and_marks_move() -> None:
    watch = GrowthWatch()
    watch.see(request(user(text(cache_control=MARK))), 1)
    watch.see(request(user(text()), assistant("y"), user(text("z", cache_control=MARK))), 1)
    watch.see(request(user("digest"), system="new"), 2)
    with pytest.raises(AssertionError, match="had ended and is back"):
        watch.see(request(user("x")), 1)


@pytest.mark.parametrize(
    ("later", "what"),
    [
        (request(user("x!"), assistant("y"), user("z"), user("more")), "messages.0 changed"),
        (request(user("x"), assistant("y")), "messages.2 is gone"),
        (request(user("x"), assistant("y"), user("z", "added")), "messages.2 changed"),
        (request(user("x"), assistant("y"), {"role": "user", "content": "z"}), "messages.2 changed"),
        (request(user("x"), assistant("y"), user({"text": "z", "type": "text"})), "messages.2 changed"),
        (request(user("x"), assistant("y"), user("z"), system="s"), "system changed"),
        (request(user("x"), assistant("y"), user("z"), tools=[TOOL]), "tools changed"),
    ],
)
def test_the_watch_sees_every_change(later: Params, what: str) -> None:
    watch = GrowthWatch()
    watch.see(request(user("x"), assistant("y"), user("z")), 1)
    with pytest.raises(AssertionError, match=what):
        watch.see(later, 1)


def test_a_refused_tail_may_go_once() -> None:
    watch = GrowthWatch()
    watch.see(request(user("x"), assistant("y"), user("bad")), 1)
    watch.forget_tail()
    watch.see(request(user("x"), user("good")), 1)
    with pytest.raises(AssertionError, match=r"messages\.1 changed"):
        watch.see(request(user("x"), user("better")), 1)
