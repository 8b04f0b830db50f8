"""The conversation goes back to an earlier turn: what the next request holds, and what stays findable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import Memory
from pager.errors import NotFoundError, RejectedError, WindowTooSmallError
from tests.standin import GrowthWatch, Reply, call
from tests.support.talk import Talk, strings


def said(talk: Talk) -> list[str]:
    """What was said in the last request, without what the memory put into it."""
    assert talk.last is not None
    return [text for text in strings(talk.last.messages) if text.startswith("say ")]


def test_what_was_said_since_leaves_the_prompt_and_is_found(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    first = talk.ask("say the seat is by the window")
    talk.ask("say the ferry leaves from Peniche")
    talk.memory.branch(first, "a client went back")
    talk.ask("say and the hotel")
    assert said(talk) == ["say the seat is by the window", "say and the hotel"]
    assert talk.memory.search_recall("ferry Peniche")[0].page_id == "s3"
    [row] = talk.memory.ledger(events=["branch"])
    assert (row.page_id, row.reason, row.detail) == ("s2", "a client went back", {"left": 2, "back": 0})
    assert not talk.memory.check()


def test_from_the_beginning_nothing_is_in_the_prompt_not_even_in_its_digest(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    talk.fill(9_000)
    assert "<digest" in talk_text(talk)
    talk.memory.branch(None, "a client began anew")
    talk.ask("say hello")
    assert said(talk) == ["say hello"]
    assert "<digest" not in talk_text(talk)


def test_the_branch_that_was_left_comes_back_with_its_newest_turns_and_its_digest(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    talk.fill(9_000, "old")
    tip = talk.ask("say the tip of the old branch")
    talk.memory.branch(None, "a client began anew")
    talk.fill(1_000, "new")
    talk.memory.branch(tip, "a client went back")
    talk.ask("say more")
    text = talk_text(talk)
    assert said(talk) == ["say the tip of the old branch", "say more"]
    assert re.search(r"<digest>\n.*\ns1-s\d+: \d+ turns.*\n(s\d+-s\d+ .*: old \d+: and so .*\n)+</digest>", text)
    assert "new 1:" not in text
    assert talk.last is not None
    assert talk.last.tokens <= talk.memory.limits.usable_tokens
    assert not talk.memory.check()


def test_an_open_turn_is_left_and_its_call_never_runs(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    first = talk.ask("say one")
    talk.ask("say two", call("weather", {"city": "Porto"}))
    talk.memory.branch(first, "a client went back")
    assert not talk.memory.turn_is_open
    talk.ask("say three")
    assert said(talk) == ["say one", "say three"]
    assert not talk.memory.check()


def test_it_goes_back_only_to_the_end_of_a_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("say one")
    with pytest.raises(RejectedError, match="s1 does not end a turn"):
        talk.memory.branch("s1", "no")
    with pytest.raises(NotFoundError, match="no step s9"):
        talk.memory.branch("s9", "no")
    assert not talk.memory.ledger(events=["branch"])


def test_what_was_refused_or_withdrawn_comes_back_into_no_branch(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("say one")
    talk.ask("say what is refused", Reply("No.", stop_reason="refusal"))
    talk.watch = GrowthWatch()  # a refused turn leaves at once
    talk.ask("say what is withdrawn")
    talk.memory.undo()
    tip = talk.ask("say two")
    talk.memory.branch(None, "a client began anew")
    talk.ask("say elsewhere")
    talk.memory.branch(tip, "a client went back")
    talk.ask("say three")
    assert said(talk) == ["say one", "say two", "say three"]


def test_every_request_can_be_made_again_also_those_of_other_branches(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    sent: dict[str, Any] = {}

    def ask(text: str) -> str:
        step = talk.ask(text)
        assert talk.last is not None
        sent[step] = talk.last.params
        return step

    one, two = ask("say one"), ask("say two")
    talk.memory.branch(one, "back")
    ask("say three")
    talk.memory.branch(two, "back")
    ask("say four")
    for step, params in sent.items():
        assert talk.memory.history.rebuild(step) == params


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=30))
def test_the_prompt_holds_the_path_to_the_present_turn_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[int, bool]]
) -> None:
    """A plain tree in memory is the judge: each turn knows the one before it."""
    talk = Talk(tmp_path_factory.mktemp("tree"))
    before: dict[int, int | None] = {}
    ends: dict[int, str] = {}
    here: int | None = None
    for number, (where, goes_back) in enumerate(moves):
        if goes_back:
            here = where % (len(before) + 1) - 1 if before else None
            here = None if here == -1 else here
            talk.memory.branch(None if here is None else ends[here], "back")
            if where % 3 == 0:
                talk.reopen()
        ends[number] = talk.ask(f"say {number}")
        before[number], here = here, number
        path: list[int] = []
        at: int | None = number
        while at is not None:
            path, at = [at, *path], before[at]
        assert said(talk) == [f"say {each}" for each in path]
    assert not talk.memory.check()
    talk.memory.close()


def test_what_a_client_brings_stands_behind_the_programs_own_and_goes_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("say one")
    plain = talk.last
    talk.memory.offer(
        instructions="Speak like a pirate. <core>", tools=[{"name": "dig", "input_schema": {"type": "object"}}],
        options={"metadata": {"user_id": "u"}, "max_tokens": 10, "stop_sequences": ["END"]},
    )  # fmt: skip
    step = talk.ask("say two")
    assert plain is not None
    assert talk.last is not None
    params = talk.last.params
    assert params["system"][0]["text"].startswith(plain.params["system"][0]["text"])
    assert "Speak like a pirate." in params["system"][0]["text"]
    assert "<core>" not in params["system"][0]["text"].removeprefix(plain.params["system"][0]["text"])
    assert [tool["name"] for tool in params["tools"]] == ["weather", "web_search", "dig"]
    assert (params["metadata"], params["max_tokens"], params["stop_sequences"]) == ({"user_id": "u"}, 10, ["END"])
    assert talk.memory.history.rebuild(step) == params
    talk.memory.offer()
    talk.ask("say three")
    assert talk.last.params["tools"] == plain.params["tools"]
    assert talk.last.params["system"] == plain.params["system"]
    assert "metadata" not in talk.last.params


def test_tools_that_leave_no_room_are_refused_and_change_nothing(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    talk.ask("say one")
    with pytest.raises(WindowTooSmallError, match="do not fit"):
        talk.memory.offer(instructions="word " * 9_000)
    talk.ask("say two")
    assert said(talk) == ["say one", "say two"]


def talk_text(talk: Talk) -> str:
    """All texts of the last request."""
    assert talk.last is not None
    return "\n".join(strings(talk.last.messages))


def test_a_message_that_was_answered_already_is_told_without_recalling(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.archive("The ferry to Berlenga leaves from Peniche at nine.")
        memory.append_user("From where does the ferry to Berlenga leave?", recall=False)
        assert not memory.ledger(events=["recall"])
