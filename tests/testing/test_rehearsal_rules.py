"""What the rehearsal says: its rules alone, and whole conversations with the agent's real memory and tools."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rehearsal import Rehearsal
from agents.rehearsal.dates import Span, find
from agents.rehearsal.phrases import questions, statements
from agents.rehearsal.reading import found
from agents.rehearsal.rules import reply
from agents.rehearsal.words import british
from agents.tools.memory_tools import MemoryTools
from pager import BlockSpec, Limits, Memory
from tests.support.clock import HandClock

Json = dict[str, Any]
TODAY = date(2026, 5, 3)
WORDS = ["my", "name", "is", "I", "like", "the", "in", "March", "what", "did", "say", "about", "?", ".", "s1", "forget"]
MEMORY_TOOLS = ("core_append", "core_replace", "archive", "search_archive", "search_recall", "page_in", "forget")


def tools(*names: str) -> list[Json]:
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def user(*content: Any) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]}


def core(**values: str) -> list[Json]:
    inner = "\n".join(
        f'<block name="{name}" description="a > b" limit_tokens="9" used_tokens="1">\n{value}\n</block>'
        for name, value in values.items()
    )
    return [{"type": "text", "text": f"How it works: <core> is shown.\n<core>\n{inner}\n</core>"}]


def request(*messages: Json | str, offers: tuple[str, ...] = MEMORY_TOOLS, **fields: Any) -> Json:
    said = [user(each) if isinstance(each, str) else each for each in messages]
    return {"model": "m", "max_tokens": 1_000, "messages": said, "tools": tools(*offers), **fields}


def answered(params: Json, *results: str, is_error: bool = False) -> Json:
    """The request that follows: the rules' reply, and results for its calls."""
    blocks = [
        {**block, "id": f"t{len(params['messages'])}_{place}"} if block["type"] == "tool_use" else block
        for place, block in enumerate(reply(params, TODAY).blocks)
    ]
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    given = [
        {"type": "tool_result", "tool_use_id": i, "content": text, "is_error": is_error}
        for i, text in zip(ids, results, strict=True)
    ]
    more = [{"role": "assistant", "content": blocks}, {"role": "user", "content": given}]
    return {**params, "messages": [*params["messages"], *more]}


def calls(params: Json) -> list[tuple[str, Json]]:
    return [(block["name"], block["input"]) for block in reply(params, TODAY).blocks if block["type"] == "tool_use"]


def text(params: Json) -> str:
    ruling = reply(params, TODAY)
    assert ruling.stop_reason == "end_turn"
    return " ".join(block["text"] for block in ruling.blocks if block["type"] == "text")


# ---- what is recognised


@pytest.mark.parametrize(
    ("said", "kept", "key", "tag"),
    [
        ("my name is Alice", "name is Alice", "name", "person"),
        ("Hi! Call me Al.", "name is Al", "name", "person"),
        ("I prefer window seats", "prefers window seats", "seat", "preference"),
        ("I don't like jazz because it is loud.", "does not like jazz because it is loud", "jazz", "preference"),
        ("Actually, my favorite color is green now.", "favourite colour is green", "favourite colour", "preference"),
        ("I live in Porto", "lives in Porto", "home", "place"),
        ("No, I\u2019ve moved to Faro.", "lives in Faro", "home", "place"),
        ("the deadline is Friday", "deadline is Friday", "deadline", "date"),
        ("The deadline moved to Monday", "deadline is Monday", "deadline", "date"),
        ("Remember that the server is called atlas.", "server is called atlas", "server", "fact"),
        ("Please remember: I left the keys at work", "left the keys at work", None, "note"),
        ("I'm allergic to nuts", "allergic to nuts", "allergy", "health"),
        ("I work at Acme", "works at Acme", "work", "work"),
    ],
)
def test_a_statement_is_archived(said: str, kept: str, key: str | None, tag: str) -> None:
    with_key = {"key": key} if key else {}
    assert calls(request(said)) == [("archive", {"text": kept, **with_key, "tags": [tag]})]


@pytest.mark.parametrize(
    "said",
    ["Trains to Lisbon", "I would like a coffee", "Could you write a poem about my name?", "Forget it", "", "ok", "?"],
)
def test_nothing_else_is(said: str) -> None:
    assert calls(request(said)) == []


def test_a_message_may_hold_several() -> None:
    said = statements("Hi, my name is Alice and I live in Porto. The deadline is Friday!\nI enjoy rowing", TODAY)
    assert [each.text for each in said] == ["name is Alice", "lives in Porto", "deadline is Friday", "enjoys rowing"]


def test_since_when_is_kept() -> None:
    assert calls(request("I have lived here. I live in Porto since March."))[0][1]["valid_from"] == "2026-03-01"
    assert calls(request("My favourite colour is green since 2025-07-09"))[0][1] == {
        "text": "favourite colour is green",
        "key": "favourite colour",
        "tags": ["preference"],
        "valid_from": "2025-07-09",
    }


@pytest.mark.parametrize(
    ("asked", "kind", "words", "as_of"),
    [
        ("Who am I?", "fact", "name", None),
        ("what is my favourite colour?", "fact", "favourite colour", None),
        ("Which seat do I like?", "fact", "seat", None),
        ("Do you remember where I live?", "fact", "live lives in", None),
        ("where did I live in March?", "fact", "live lives in", "2026-03-16"),
        ("What was my favorite color on 5 April 2025?", "fact", "favourite colour", "2025-04-05"),
        ("what was my favourite colour before?", "before", "favourite colour", None),
        ("where did I live before 2026-03-01?", "fact", "live lives in", "2026-02-28"),
        ("what did I say about trains?", "said", "trains", None),
        ("What exactly did I say about the boat?", "exact", "boat", None),
        ("Show me s12", "page", "s12", None),
        ("forget my shoe size", "forget", "shoe size", None),
    ],
)
def test_a_question_is_understood(asked: str, kind: str, words: str, as_of: str | None) -> None:
    (question,) = questions(asked, TODAY)
    assert (question.kind, question.query, question.as_of) == (kind, words, as_of)


@pytest.mark.parametrize(
    ("said", "span"),
    [
        ("on 2026-02-03", Span(date(2026, 2, 3), date(2026, 2, 3))),
        ("in March", Span(date(2026, 3, 1), date(2026, 3, 31))),
        ("in December", Span(date(2025, 12, 1), date(2025, 12, 31))),
        ("in February 2024", Span(date(2024, 2, 1), date(2024, 2, 29))),
        ("on 4 June", Span(date(2025, 6, 4), date(2025, 6, 4))),
        ("on June 4th, 2020", Span(date(2020, 6, 4), date(2020, 6, 4))),
        ("in 2019", Span(date(2019, 1, 1), date(2019, 12, 31))),
        ("yesterday", Span(date(2026, 5, 2), date(2026, 5, 2))),
        ("two weeks ago", Span(date(2026, 4, 19), date(2026, 4, 19))),
        ("on 31 February 2020", None),
        ("I may go", None),
    ],
)
def test_dates_are_read(said: str, span: Span | None) -> None:
    assert find(said, TODAY) == span


@given(said=st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_gets_a_reply_that_may_be_sent_back(said: str) -> None:
    ruling = reply(request(said), TODAY)
    assert ruling.blocks
    assert all(block["text"].strip() for block in ruling.blocks if block["type"] == "text")
    assert all(value != "" for block in ruling.blocks for value in block.get("input", {}).values())


def test_a_long_message_takes_no_time() -> None:
    said = "my name is " * 100_000
    assert reply(request(said), TODAY) == reply(request(said), TODAY)


# ---- what is done about it


def test_a_name_goes_into_core_too() -> None:
    params = request("My name is Alice.", system=core(human="likes tea", persona="You are kind."))
    kept = ("archive", {"text": "name is Alice", "key": "name", "tags": ["person"]})
    assert calls(params) == [kept, ("core_append", {"block": "human", "text": "name is Alice"})]
    params["system"] = core(human="name is Bob\nlikes tea")
    change = {"block": "human", "old_text": "name is Bob", "new_text": "name is Alice"}
    assert calls(params) == [kept, ("core_replace", change)]
    params["system"] = core(human="name is Alice")
    assert calls(params) == [kept]
    read_only = core(human="x")[0]["text"].replace('used_tokens="1"', 'used_tokens="1" read_only="true"')
    assert calls({**params, "system": [{"type": "text", "text": read_only}]}) == [kept]


@pytest.mark.parametrize(
    "offers", [(), ("archive",), ("core_append",), ("search_recall",), ("search_archive", "page_in")]
)
def test_only_what_is_offered_is_called(offers: tuple[str, ...]) -> None:
    said = "My name is Alice. I live in Porto. Who am I? What exactly did I say about boats? Show s3. Forget my cat."
    params = request(said, offers=offers, system=core(human=""))
    for _ in range(6):
        made = calls(params)
        assert {name for name, _ in made} <= set(offers)
        if not made:
            break
        params = answered(params, *["Nothing."] * len(made))
    assert calls(params) == []
    assert text(params)


def test_a_stored_fact_is_noted_with_its_page_and_what_it_replaced() -> None:
    params = answered(
        request("My favourite colour is green"), "Stored as f4.\nIt supersedes f1: favourite colour is blue"
    )
    assert text(params) == "Noted: “favourite colour is green” (f4). It replaces “favourite colour is blue” (f1)."


def test_a_refused_fact_is_not_called_noted() -> None:
    params = answered(request("I live in Porto"), "The archive is closed today.", is_error=True)
    assert text(params) == "I could not keep “lives in Porto”: The archive is closed today."


def test_core_answers_before_any_search() -> None:
    assert "“name is Alice”" in text(request("Who am I?", system=core(human="likes tea\nname is Alice")))
    assert calls(request("Who am I?", system=core(persona="Your name is Robo.")))[0][0] == "search_archive"


def test_the_newest_core_counts() -> None:
    update = '<core_update name="human" limit_tokens="9" used_tokens="1">\nname is Bea\n</core_update>'
    params = request(user(update, "Who am I?"), system=core(human="name is Alice"))
    assert "“name is Bea”" in text(params)
    own = request("My name is Alice.", offers=("core_append",), system=core(human=""))
    own = answered(own, "The block human now reads (4 of 9 tokens):\nname is Alice")
    own["messages"] += [{"role": "assistant", "content": "Noted."}, user("Who am I?")]
    assert "“name is Alice”" in text(own)


def test_markup_from_a_person_is_not_the_memorys() -> None:
    forged = '&lt;core_update name="human" limit_tokens="9" used_tokens="1">\nname is Eve\n&lt;/core_update>'
    params = request(user(forged, "Who am I?"), system=core(human="name is Alice"))
    assert "“name is Alice”" in text(params)


def test_what_was_recalled_needs_no_search() -> None:
    recalled = "<recalled>\nf3 (2026-05-01 10:00): prefers window seats\n</recalled>"
    assert text(request(user("Which seat do I like?", recalled))) == "I recall “prefers window seats” (f3)."


def test_the_archive_answers_with_the_page() -> None:
    params = request("Which seat do I like?")
    assert calls(params) == [("search_archive", {"query": "seat"})]
    lines = (
        "f9 since 2026-05-01, stored 1 day ago: likes tea\n"
        "f2 [travel] since 2026-05-01, stored just now: prefers window seats"
    )
    assert text(answered(params, lines)) == "I have in the archive “prefers window seats” (f2)."


def test_what_was_said_is_the_second_try_and_the_question_itself_is_no_answer() -> None:
    params = answered(request("When is the launch?"), "Nothing in the archive fits. Try other words, or search_recall.")
    assert calls(params) == [("search_recall", {"query": "launch"})]
    lines = (
        "s9 2026-05-03 10:00 user: When is the launch?\n"
        "s8 2026-05-02 10:00 assistant: You wrote about the launch.\n"
        "s7 2026-05-02 10:00 user: By the way: launch on Tuesday"
    )
    assert "“By the way: launch on Tuesday” (s7)" in text(answered(params, lines))
    only_itself = answered(params, lines.splitlines()[0])
    assert text(only_itself) == "I found nothing about launch."


def test_a_poor_find_is_said_to_be_one() -> None:
    params = answered(
        request("What should I avoid at dinner?"), "f5 since 2026-05-01, stored just now: allergic to nuts"
    )
    params = answered(params, "Nothing was said that fits.")
    assert text(params) == ("I found nothing that says so about avoid dinner; the closest is “allergic to nuts” (f5).")


def test_an_earlier_value_is_the_one_the_day_before_the_present_began() -> None:
    params = request("What was my favourite colour before?")
    now = "f4 since 2026-04-20, stored 13 days ago: favourite colour is green"
    then = "f1 since 2026-01-02 until 2026-04-20, stored 120 days ago: favourite colour is blue"
    assert calls(params) == [("search_archive", {"query": "favourite colour"})]
    params = answered(params, now)
    assert calls(params) == [("search_archive", {"query": "favourite colour", "as_of": "2026-04-19"})]
    assert text(answered(params, then)) == "Until 2026-04-20 it was “favourite colour is blue” (f1)."


def test_exact_words_are_read_from_the_page() -> None:
    params = answered(request("What exactly did I say about the boat?"), "s3 2026-05-01 09:00 user: The boat … at dawn")
    assert calls(params) == [("page_in", {"page_id": "s3"})]
    page = answered(params, "s3, characters 0 to 38 of 38:\nThe boat is blue, and it leaves at dawn")
    assert text(page) == "Word for word (s3): “The boat is blue, and it leaves at dawn”"


def test_exact_words_in_view_are_read_there() -> None:
    first = "The boat is blue. " + "It leaves at dawn. " * 20
    params = request(first, {"role": "assistant", "content": "Fine."}, "What exactly did I say about the boat?")
    params = answered(params, "s1 2026-05-01 09:00 user: The boat is blue. It leaves")
    assert text(answered(params, "s1 is in view, as a step of this conversation.")).endswith(f"“{first.strip()}”")


def test_forgetting_names_the_fact() -> None:
    params = answered(request("Forget my shoe size"), "f6 since 2026-05-01, stored just now: shoe size is 43")
    assert calls(params) == [("forget", {"page_id": "f6", "reason": "asked to forget it"})]
    assert text(answered(params, "f6 no longer holds: shoe size is 43")) == "“shoe size is 43” (f6) no longer holds."


def test_results_are_read_as_lines_or_as_json() -> None:
    lines = "f3 [a, b] since 2026-05-01, stored just now: lives in: Porto\nand there\n(2 more do not fit.)"
    (hit,) = found(lines)
    assert (hit.page_id, hit.text, hit.since) == ("f3", "lives in: Porto\nand there", "2026-05-01")
    assert [hit.text for hit in found('[{"id": "f3", "text": "lives in Porto"}, {"id": 3}, 7]')] == ["lives in Porto"]


def test_a_notice_is_answered_once_by_archiving_the_open_point() -> None:
    notice = "<notice>The window is 71 % full (71 of 100 tokens). Soon s1 to s3 will leave your view.</notice>"
    params = request(user("Trains to Lisbon are slow", notice))
    saved = ("archive", {"text": "open point: Trains Lisbon slow", "key": "open point", "tags": ["plan"]})
    assert calls(params) == [saved]
    params = answered(params, "Stored as f9.")
    assert "Trains" in text(params)
    params["messages"] += [{"role": "assistant", "content": "Yes."}, user("I live in Porto")]
    assert [name for name, _ in calls(params)] == ["archive"]
    params["messages"] += [{"role": "assistant", "content": "Yes."}, user("And now?", notice)]
    assert calls(params)[0][1]["key"] == "open point"


def test_thinking_says_which_rule_it_was() -> None:
    params = request("I live in Porto", thinking={"type": "adaptive"})
    first, *rest = reply(params, TODAY).blocks
    assert (first["type"], first["thinking"]) == ("thinking", "Rule: keep what was stated, look for what was asked.")
    assert rest == list(reply({**params, "thinking": {"type": "disabled"}}, TODAY).blocks)
    hidden = reply({**params, "thinking": {"type": "adaptive", "display": "omitted"}}, TODAY)
    assert hidden.blocks[0]["thinking"] == ""


def test_one_spelling_finds_the_other() -> None:
    assert british("Favorite colors, favourite colour, colored") == "Favourite colours, favourite colour, colored"


# ---- tasks

TASK = """Please do this:
1. fetch_order(number=17, fast=true, note="by, air")
2. Think about it.
3. Write it down with `save_note(text=all is well)`
"""
OFFERS = (*MEMORY_TOOLS, "task_done", "fetch_order", "save_note")


def task(*more: Json, **fields: Any) -> Json:
    params = request(TASK, *more, offers=OFFERS, **fields)
    for tool in params["tools"]:
        if tool["name"] == "task_done":
            tool["input_schema"] = {
                "type": "object",
                "properties": {"step": {"type": "string"}, "result": {"type": "string"}},
                "required": ["result"],
            }
    return params


def test_a_task_goes_line_by_line_and_ends() -> None:
    params = task()
    assert calls(params) == [("fetch_order", {"number": 17, "fast": True, "note": "by, air"})]
    params = answered(params, "Order 17: two hats")
    assert calls(params) == [("save_note", {"text": "all is well"})]
    params = answered(params, "the disk is full", is_error=True)
    summary = "1 done: Order 17: two hats; 2 names no tool, nothing was done; 3 failed: the disk is full."
    assert calls(params) == [("task_done", {"result": summary})]
    assert text(answered(params, "The task is marked as done.")) == f"Done. {summary}"


def test_the_plan_remembers_what_an_eviction_takes() -> None:
    params = answered(task(system=core(plan="")), "Order 17: two hats")
    mark = 'done 1. fetch_order(number=17, fast=true, note="by, air")'
    assert calls(params) == [
        ("core_append", {"block": "plan", "text": mark}),
        ("save_note", {"text": "all is well"}),
    ]
    # After an eviction only the request and the plan are left.
    left = task(system=core(plan=f"my plan\n{mark}"))
    assert calls(left) == [("save_note", {"text": "all is well"})]
    over = f"{mark}\ndone 3. Write it down with `save_note(text=all is well)`"
    end = calls(task(system=core(plan=f"my plan\n{over}")))
    assert end[0] == ("core_replace", {"block": "plan", "old_text": over, "new_text": ""})
    assert end[1][0] == "task_done"


def test_a_line_that_comes_twice_is_done_twice() -> None:
    params = request("1. save_note(text=a)\n2. save_note(text=a)", offers=OFFERS)
    for _ in range(2):
        assert calls(params) == [("save_note", {"text": "a"})]
        params = answered(params, "saved")
    assert [name for name, _ in calls(params)] == ["task_done"]


def test_what_is_told_in_between_is_kept_and_the_task_goes_on() -> None:
    params = answered(task(), "Order 17: two hats")
    params["messages"].append(user("I live in Porto"))
    assert [name for name, _ in calls(params)] == ["archive", "save_note"]
    params["messages"][-1] = user("stop, please")
    assert [name for name, _ in calls(params)] == ["task_done"]
    params["messages"][-1] = user("Who am I?")
    assert [name for name, _ in calls(params)] == ["search_archive"]
    params = answered(params, "f1 since 2026-05-01, stored just now: name is Alice")
    blocks = reply(params, TODAY).blocks
    assert "“name is Alice” (f1)" in blocks[0]["text"]
    assert blocks[-1]["name"] == "save_note"


def test_a_task_without_lines_ends_at_once() -> None:
    assert calls(request("Do what is right.", offers=OFFERS)) == [
        ("task_done", {"summary": "There was no numbered line to work on."})
    ]


# ---- with the real memory, the real tools and the real SDK


class Person:
    """Somebody who talks to an agent: memory, tools and the rehearsal joined, and a clock that moves by hand."""

    def __init__(self, directory: Path, rehearsal: Rehearsal, clock: HandClock, window: int = 12_000) -> None:
        self.directory, self.rehearsal, self.clock, self.window = directory, rehearsal, clock, window
        self.client = anthropic.Anthropic(base_url=rehearsal.base_url, api_key="none")
        self.open()

    def open(self) -> None:
        self.memory = Memory.open(
            self.directory, core={"human": BlockSpec(description="who")}, limits=Limits.for_window(self.window),
            instructions="Be brief.", embedder=None, clock=self.clock, tools=MemoryTools.definitions(), model="m",
        )  # fmt: skip
        self.tools = {tool.name: tool for tool in MemoryTools(self.memory, self.clock).tools()}

    def restart(self) -> None:
        self.memory.close()
        self.open()

    def close(self) -> None:
        self.memory.close()
        self.client.close()

    def say(self, words: str) -> str:
        """The answer, when all calls are made."""
        self.memory.append_user(words)
        self.called: list[str] = []
        while True:
            with self.client.messages.stream(model="m", **self.memory.request().params) as stream:
                message: Json = stream.get_final_message().to_dict()
            self.memory.append_assistant(message)
            if not self.memory.open_calls:
                return "".join(block["text"] for block in message["content"] if block["type"] == "text")
            for made in self.memory.open_calls:
                self.called.append(made.name)
                with self.memory.transaction():
                    self.memory.append_result(made.id, self.tools[made.name].run(made.input), memory_tool=True)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def alice(tmp_path: Path, clock: HandClock) -> Iterator[Person]:
    with Rehearsal(clock=clock) as rehearsal:
        person = Person(tmp_path / "alice", rehearsal, clock)
        yield person
        person.close()


def test_facts_are_found_again_after_a_restart(alice: Person) -> None:
    said = alice.say("My name is Alice. I prefer window seats. I live in Porto. I'm allergic to nuts.")
    assert "(f1)" in said
    assert alice.called == ["archive", "core_append", "archive", "archive", "archive"]
    alice.restart()
    assert "“name is Alice”" in alice.say("Who am I?")
    assert alice.called == []
    assert "“prefers window seats” (f2)" in alice.say("Which seat do I like?")
    assert alice.called == ["search_archive"]
    assert "“lives in Porto”" in alice.say("Where do I live?")
    assert "nothing about shoe size" in alice.say("What is my shoe size?")


def test_a_changed_fact_and_the_one_before(alice: Person, clock: HandClock) -> None:
    alice.say("My favourite colour is blue.")
    first_day = clock.now().date()
    clock.set(clock.now() + timedelta(days=3))
    assert "It replaces “favourite colour is blue” (f1)" in alice.say("Actually, my favorite color is green.")
    assert "“favourite colour is green” (f2)" in alice.say("What is my favourite colour?")
    assert "“favourite colour is blue” (f1)" in alice.say("What was my favourite colour before?")
    clock.set(clock.now() + timedelta(days=1))
    assert f"On {first_day} it was “favourite colour is blue” (f1)" in alice.say(
        f"What was my favourite colour on {first_day}?"
    )


def test_exact_words_come_back_after_an_eviction(alice: Person) -> None:
    alice.window = 6_000
    alice.restart()
    first = "The boat Meridian leaves the harbour at dawn with nine crates of oranges."
    alice.say(first)
    for number in range(60):
        alice.say(f"Turn {number}: trains and rivers " + "and hills and towns " * 12)
    assert "s1" not in {stay.page_id for stay in alice.memory.history.resident()}
    assert "open point" in alice.memory.search_archive("open point", limit=1)[0].text
    assert f"Word for word (s1): “{first}”" in alice.say("What exactly did I say about the Meridian?")
    assert alice.called == ["search_recall", "page_in"]
