"""Helpers: another agent as a tool, with a memory and a window of its own, and a budget from the agent that asks it."""

from contextlib import closing
from datetime import timedelta

import pytest

from agents import tasks
from agents.agent import Agent
from agents.events import ApprovalNeeded, Event, HelperEvent, Replied, Stopped, ToolFinished, ToolStarted
from agents.loop import DROPPED
from agents.models.model import ModelUnavailableError
from agents.models.patience import Patience
from agents.testing import http_error
from agents.tools.helper_calls import DENIED
from pager import INTERRUPTED, AgentFiles, Home, MemoryReader, RejectedError
from pager.types import Call, Json
from tests.standin import Reply, call
from tests.support.clock import HandClock
from tests.support.helping import DONE, ask, effects, helper, lead, plays, watch
from tests.support.messages import texts
from tests.support.stage import Stage, last, leave_at, results, until

TOOLS = "tests.support.helping"
LOOK, FETCH, MEET, PAY = (f"{{use: '{TOOLS}:{name}'}}" for name in ("look", "fetch", "meet", "pay"))
READER = "- agent: reader.yaml"


def open_calls_of(agent: Agent) -> list[str]:
    return [each.name for each in agent.memory.open_calls]


def directory_of(stage: Stage) -> AgentFiles:
    return AgentFiles(stage.directory.with_name("home") / "x")


def result_of(stage: Stage) -> tuple[str, bool]:
    [found] = results(stage.last)
    return found


def requests_of(stage: Stage, name: str) -> list[Json]:
    return [each for each in stage.requests if f"You are {name}." in each["system"][0]["text"]]


def test_a_helper_works_by_itself_and_answers(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]")
    fact = call("archive", {"text": "The box has two hats.", "key": "box", "tags": ["hats"]})
    stage.follows(plays(x=[ask("reader", "count the hats"), "Two."], reader=[Reply(call("look"), fact), DONE]))
    with stage.load(lead(READER)) as agent:
        turn = agent.turn("how many hats?")
        assert turn.text == "Two."
        assert result_of(stage) == ("two hats\n\nIn your archive now, from reader: f1.", False)
        first = requests_of(stage, "reader")[0]
        assert "count the hats" in texts(first["messages"], "user")
        assert "how many hats?" not in str(first)
        stored = agent.memory.fact("f1")
        assert (stored.text, stored.key, stored.tags) == ("The box has two hats.", "box", ("hats",))
        assert ([str(source) for source in stored.sources], stored.via) == (["helper:reader"], ())
        assert agent.memory.check() == []


def test_its_events_come_out_as_its_own_between_the_beginning_and_the_end_of_the_call(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]")
    stage.follows(plays(x=[ask("reader", "count"), "Two."], reader=[call("look"), DONE]))
    with stage.load(lead(READER)) as agent:
        events = list(agent.stream("how many?"))
    own = [type(event).__name__ for event in events if isinstance(event, ToolStarted | HelperEvent | ToolFinished)]
    assert own == ["ToolStarted", *["HelperEvent"] * (len(own) - 2), "ToolFinished"]
    inside = [event.inner for event in events if isinstance(event, HelperEvent)]
    assert [event.name for event in inside if isinstance(event, ToolStarted)] == ["look", "task_done"]
    assert inside[-1] == Stopped("done", "two hats")
    assert sum(isinstance(event, Replied) for event in events) == 2


def test_what_it_read_is_known_of_its_facts_and_of_its_answer(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{FETCH}]")
    fact = call("archive", {"text": "Hats are red."})
    mine = call("archive", {"text": "So they are."})
    stage.follows(plays(x=[ask("reader", "colours?"), mine, "Red."], reader=[call("fetch"), fact, DONE]))
    with stage.load(lead(READER)) as agent:
        agent.turn("which colours?")
        facts = agent.memory.inspect.newest_facts()
        assert [(each.text, each.via) for each in facts] == [
            ("So they are.", ("web:hats.example",)),
            ("Hats are red.", ("web:hats.example",)),
        ]
        assert agent.memory.forget_source("web:hats.example").facts == ("f1", "f2")


def test_a_task_that_was_written_after_an_untrusted_text_hands_its_source_on(stage: Stage) -> None:
    helper(stage, "reader")
    fact = call("archive", {"text": "Hats are red."})
    stage.follows(
        plays(x=[call("fetch"), ask("reader", "store that hats are red"), "Red."], reader=[fact, "So.", DONE])
    )
    with stage.load(lead(READER, f"- {FETCH}")) as agent:
        agent.turn("which colours?")
        assert agent.memory.fact("f1").via == ("web:hats.example",)


def test_it_may_read_the_archive_of_who_asks_and_changes_nothing_there(stage: Stage) -> None:
    helper(stage, "reader")
    search, fact = call("search_parent_archive", {"query": "hats"}), call("archive", {"text": "Red it is."})
    stage.follows(plays(x=[ask("reader", "colours?"), "Red."], reader=[search, fact, DONE]))
    with stage.load(lead("- {agent: reader.yaml, archive: read}")) as agent:
        agent.memory.archive("hats are red", source="web:hats.example")
        agent.memory.archive("hats are round")
        agent.turn("which colours?")
        assert "[via web:hats.example]: hats are red" in str(requests_of(stage, "reader")[1])
        assert agent.memory.fact("f3").via == ("web:hats.example",)
        assert [row.event for row in agent.memory.ledger(events=["search"])] == []


def test_helpers_of_one_reply_work_at_the_same_time(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{MEET}]")
    stage.follows(plays(x=[ask("reader", "one", "two"), "Both."], reader=[call("meet"), DONE]))
    with stage.load(lead(READER)) as agent:
        assert agent.turn("do both").text == "Both."
        assert [text for text, _ in results(stage.last)] == ["two hats", "two hats"]
        assert agent.meter.steps == 6
        assert len(directory_of(stage).of_helpers()) == 2


def test_what_it_spends_counts_and_the_limits_of_who_asks_hold_for_it(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]")
    parts = plays(x=[ask("reader", "count"), "Two."], reader=[*3 * [call("look")], DONE])
    stage.follows(parts)
    with stage.load(lead(READER, more="limits: {max_steps: 3}\n"), task=True) as agent:
        stopped = last(agent.tasks().start("count"))
        assert (stopped.reason, "max_steps 3" in stopped.text) == ("steps", True)
        assert open_calls_of(agent) == ["reader"]
        assert last(agent.tasks().resume()).reason == "steps"  # what it had spent counts: no request
        assert len(stage.requests) == 3
    stage.follows(
        plays(x=[ask("reader", "count"), call("task_done", {"summary": "2"})], reader=[*3 * [call("look")], DONE])
    )
    with stage.load(lead(READER, more="limits: {max_steps: 20}\n"), task=True) as agent:
        assert last(agent.tasks().resume()) == Stopped("done", "2")
        task = tasks.current(agent.memory)
        assert task is not None
        assert (task.steps, len(stage.requests)) == (6, 6)  # nothing was asked twice, and nothing is counted twice
        assert task.usd > agent.memory.inspect.usage().output_tokens / 1e6


def test_dollars_of_all_helpers_together(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]")
    stage.follows(plays(x=[ask("reader", "one", "two"), "Both."], reader=lambda _: call("look")))
    with stage.load(lead(READER, more="limits: {max_usd: 0.02}\n")) as agent:
        stopped = agent.turn("do both").stopped
        assert (stopped.reason, open_calls_of(agent)) == ("usd", [])
        assert "$0.02 is spent" in stopped.text
        told = agent.memory.page_text(agent.memory.inspect.steps(0, 1).rows[0].page_id)
        assert told.count("reader did not finish its task: $") == 2


def test_at_a_limit_of_the_turn_it_answers_with_what_it_has(stage: Stage) -> None:
    """And so does one that helps it. Whoever asked has a last word."""
    helper(stage, "reader", f"tools: [{LOOK}]")
    helper(stage, "editor", "tools: [{agent: reader.yaml}]")
    found = [Reply("One is red.", call("archive", {"text": "one hat is red"})), call("look"), call("look")]
    stage.follows(
        plays(x=[ask("editor", "count"), "One is red, I think."], editor=[ask("reader", "count")], reader=found)
    )
    with stage.load(lead("- agent: editor.yaml", more="limits: {max_steps: 4}\n")) as agent:
        turn = agent.turn("how many?")
        assert (turn.stopped.reason, turn.text) == ("steps", "One is red, I think.")
        text, is_error = result_of(stage)
        assert (is_error, "editor did not finish its task: max_steps 4 is reached" in text) == (True, True)
        assert [fact.text for fact in agent.memory.inspect.newest_facts()] == ["one hat is red"]


def test_one_that_reaches_its_own_limit_is_an_error_with_its_last_words(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]\nlimits: {{max_steps: 2}}")
    lines = [Reply("One is red.", call("look")), call("look"), "I saw a red one."]
    stage.follows(plays(x=[ask("reader", "count"), "Hm."], reader=lines))
    with stage.load(lead(READER)) as agent:
        agent.turn("how many?")
        text, is_error = result_of(stage)
        assert is_error
        assert "reader did not finish its task: max_steps 2" in text
        assert text.endswith("The last that it said: I saw a red one.")
        assert agent.meter.steps == 5


def test_one_that_takes_longer_than_its_time_is_an_error(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]")
    stage.follows(plays(x=[ask("reader", "count"), "Hm."], reader=[call("look"), DONE]))
    clock = HandClock(tick=timedelta(minutes=1))
    with stage.load(lead("- {agent: reader.yaml, timeout_seconds: 60}"), clock=clock) as agent:
        assert agent.turn("how many?").text == "Hm."
    text, is_error = result_of(stage)
    assert (is_error, "did not finish its task: max_minutes 1 is reached" in text) == (True, True)


def test_stopped_and_resumed_it_goes_on_where_it_was(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{PAY}]")
    watch(stage.directory.parent)
    lines = [call("pay", {"item": "hat"}), call("pay", {"item": "ribbon"}), DONE]
    stage.follows(plays(x=[ask("reader", "buy"), "Bought."], reader=lines))
    with stage.load(lead(READER)) as agent:
        seen: list[Event] = []
        for event in agent.stream("buy"):
            if isinstance(event, HelperEvent) and isinstance(event.inner, ToolFinished):
                agent.stop()
            seen.append(event)
        assert isinstance(seen[-1], Stopped)
        assert (seen[-1].reason, open_calls_of(agent)) == ("cancelled", ["reader"])
        assert agent.resume().text == "Bought."
    assert effects(stage.directory.parent) == ["paid hat", "paid ribbon"]
    assert len(stage.requests) == 5


def test_left_in_the_middle_it_goes_on_in_the_next_process(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{PAY}]")
    watch(stage.directory.parent)
    lines = [call("pay", {"item": "hat"}), DONE]
    stage.follows(plays(x=[ask("reader", "buy"), "Bought."], reader=lines))
    with stage.load(lead(READER)) as agent:
        leave_at(agent.stream("buy"), HelperEvent)
    with stage.load(lead(READER)) as agent:
        assert agent.resume().text == "Bought."
        assert agent.meter.steps >= 3
    assert effects(stage.directory.parent) == ["paid hat"]


def test_exported_in_the_middle_and_imported_elsewhere_nothing_is_done_twice(stage: Stage) -> None:
    """An import goes on with nothing that was begun elsewhere. What was done is told, and can be looked at."""
    helper(stage, "reader", f"tools: [{PAY}]")
    watch(stage.directory.parent)
    lines = [call("pay", {"item": "hat"}), call("pay", {"item": "ribbon"}), DONE]
    stage.follows(plays(x=[ask("reader", "buy"), "It was at work."], reader=lines))
    file, home = stage.directory.parent / "x.db", Home(directory_of(stage).directory.parent)
    with stage.load(lead(READER), task=True) as agent:
        with closing(agent.tasks().start("buy")) as events:
            next(each for each in events if isinstance(each, HelperEvent) and isinstance(each.inner, ToolFinished))
        [open_call] = agent.memory.open_calls
        agent.memory.export(file)
    paid = effects(stage.directory.parent)
    home.remove("x")
    home.import_file(file, "x")
    with MemoryReader.open(directory_of(stage).helper(open_call.id).directory) as reader:
        assert "paid hat" in str([reader.page_text(row.page_id) for row in reader.inspect.steps(0, 9).rows])
    with stage.load(lead(READER), task=True) as agent:
        with pytest.raises(RejectedError, match="there is no task to resume"):
            list(agent.tasks().resume())
        assert agent.turn("and now?").text == "It was at work."
        assert INTERRUPTED in str(stage.requests[-1]["messages"])
    assert effects(stage.directory.parent) == paid


def test_what_a_person_says_meanwhile_leaves_the_call(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]")
    stage.follows(plays(x=[ask("reader", "count"), "As you like."], reader=[call("look"), DONE]))
    with stage.load(lead(READER)) as agent:
        leave_at(agent.stream("how many?"), HelperEvent)
        assert agent.turn("never mind").text == "As you like."
        assert results(stage.requests[-1]["messages"][-2]["content"]) == [(DROPPED.format("reader"), True)]


class Person:
    """Answers questions about calls."""

    def __init__(self, *answers: bool | None) -> None:
        self.answers = list(answers)
        self.asked: list[Call] = []

    def __call__(self, asked: Call) -> bool | None:
        self.asked.append(asked)
        return self.answers.pop(0)


PAYS = f"tools: [{PAY[:-1]}, approve: always}}]"


@pytest.mark.parametrize(("answer", "done"), [(True, ["paid hat"]), (False, [])])
def test_its_calls_that_wait_for_a_person_are_asked_through_who_asked_it(
    stage: Stage, answer: bool, done: list[str]
) -> None:
    helper(stage, "reader", PAYS)
    watch(stage.directory.parent)
    stage.follows(plays(x=[ask("reader", "buy"), "Bought."], reader=[call("pay", {"item": "hat"}), DONE]))
    person = Person(answer)
    with stage.load(lead(READER), approve=person) as agent:
        assert agent.turn("buy").text == "Bought."
    [asked] = person.asked
    assert (asked.name, asked.input, asked.why) == ("pay", {"item": "hat"}, "The helper reader asks.")
    assert effects(stage.directory.parent) == done
    assert (DENIED in str(requests_of(stage, "reader")[-1])) is not answer


def test_where_nobody_can_be_asked_the_call_waits_and_goes_on_with_the_answer(stage: Stage) -> None:
    helper(stage, "reader", PAYS)
    watch(stage.directory.parent)
    stage.follows(plays(x=[ask("reader", "buy"), "Bought."], reader=[call("pay", {"item": "hat"}), DONE]))
    with stage.load(lead(READER)) as agent:
        events = list(agent.stream("buy"))
        assert ApprovalNeeded(agent.memory.open_calls[0].id, "pay", {"item": "hat"}) in events
        text = 'pay waits for approval and was not run: the helper reader asks. It is pay({"item": "hat"}).'
        assert events[-1] == Stopped("approval", text)
        assert [each.awaits_approval for each in agent.memory.open_calls] == [True]
    with stage.load(lead(READER), approve=Person(True)) as agent:
        assert agent.resume().text == "Bought."
    assert effects(stage.directory.parent) == ["paid hat"]
    assert len(stage.requests) == 4


def test_of_several_that_wait_the_first_is_told_whoever_asked_first(stage: Stage) -> None:
    """An answer that comes later is for the first open call."""
    helper(stage, "slow", f"tools: [{LOOK}, {PAY[:-1]}, approve: always}}]")
    helper(stage, "quick", PAYS)
    calls = Reply(call("slow", {"task": "buy"}), call("quick", {"task": "buy"}))
    slow = [*[call("look")] * 5, call("pay", {"item": "hat"})]
    stage.follows(plays(x=[calls], slow=slow, quick=[call("pay", {"item": "car"})]))
    with stage.load(lead("- agent: slow.yaml", "- agent: quick.yaml")) as agent:
        stopped = agent.turn("buy").stopped
    assert stopped.text.endswith('It is pay({"item": "hat"}).')


def test_a_helper_itself_may_have_to_be_approved(stage: Stage) -> None:
    helper(stage, "reader")
    stage.follows(plays(x=[ask("reader", "one", "two"), "So."], reader=[DONE]))
    person = Person(False, None, True)
    with stage.load(lead("- {agent: reader.yaml, approve: always}"), approve=person) as agent:
        assert agent.turn("do both").stopped.reason == "approval"
        assert agent.resume().text == "So."
    assert [text for text, _ in results(stage.last)] == [DENIED, "two hats"]


def test_a_provider_that_is_down_for_it_leaves_the_turn_open(stage: Stage) -> None:
    helper(stage, "reader", f"tools: [{LOOK}]")
    stage.follows(plays(x=[ask("reader", "count"), "Two."], reader=[DONE]))
    with stage.load(lead(READER), patience=Patience(wait=lambda _: None)) as agent:
        events = agent.stream("how many?")
        until(events, Replied)
        stage.says(*20 * [http_error(529)])
        with pytest.raises(ModelUnavailableError):
            list(events)
        assert open_calls_of(agent) == ["reader"]
        stage.service.unsaid.clear()
        assert agent.resume().text == "Two."


def test_one_that_fails_is_an_error_and_the_same_failure_again_ends_the_turn(stage: Stage) -> None:
    helper(stage, "reader")
    wrong = call("reader", {"task": " "})
    stage.follows(plays(x=[wrong, wrong, wrong, "I cannot."], reader=[]))
    with stage.load(lead(READER)) as agent:
        assert agent.turn("how many?").stopped.reason == "repeated"


def test_a_request_of_its_own_that_is_refused_is_an_error(stage: Stage) -> None:
    helper(stage, "reader")
    stage.follows(plays(x=[ask("reader", "count"), "I cannot."]))
    with stage.load(lead(READER)) as agent:
        events = agent.stream("how many?")
        until(events, ToolStarted)
        stage.says(http_error(400))
        assert last(events) == Stopped("answered")
        text, is_error = result_of(stage)
    assert (is_error, text.startswith("reader did not finish its task: ModelRefusedError")) == (True, True)


def test_one_that_never_says_that_it_is_done(stage: Stage) -> None:
    helper(stage, "reader")
    stage.follows(plays(x=[ask("reader", "count"), "So."], reader=lambda _: "There are two."))
    with stage.load(lead(READER)) as agent:
        agent.turn("how many?")
    assert result_of(stage)[1]
    assert result_of(stage)[0].endswith("The last that it said: There are two.")


def test_helpers_of_helpers(stage: Stage) -> None:
    helper(stage, "clerk", f"tools: [{LOOK}, {FETCH}]")
    helper(stage, "reader", "tools: [{agent: clerk.yaml}]")
    fact = call("archive", {"text": "Hats are red."})
    done = call("task_done", {"summary": "the clerk says two"})
    stage.follows(
        plays(x=[ask("reader", "a"), "Two."], reader=[ask("clerk", "b"), done], clerk=[call("fetch"), fact, DONE])
    )
    with stage.load(lead(READER)) as agent:
        assert agent.turn("how many?").text == "Two."
        assert agent.meter.steps == 7
        assert ([str(each) for each in agent.memory.fact("f1").sources], agent.memory.fact("f1").via) == (
            ["helper:reader via web:hats.example"],
            ("web:hats.example",),
        )
        [inner] = directory_of(stage).of_helpers()
        with MemoryReader.open(inner.of_helpers()[0].directory) as reader:
            assert reader.fact("f1").text == "Hats are red."
        assert agent.memory.purge("f1") >= 3
        assert agent.memory.check() == []
    left = [file for file in directory_of(stage).directory.rglob("*") if file.is_file()]
    assert not [file for file in left if b"Hats are red" in file.read_bytes()]


def test_ids_of_calls_cannot_lead_out_of_the_home(stage: Stage) -> None:
    files = AgentFiles(stage.directory)
    for name in ("..", "../../etc", "a/b", "", ".", "-x", "x" * 300, "ä"):
        found = files.helper(name).directory
        assert (found.parent, len(found.name)) == (files.helpers, 40)
    assert files.helper("toolu_01Ab-c").directory.name == "toolu_01Ab-c"
