"""A sleep with a model: what it is asked, what is believed, and what a model that is down or hostile leaves."""

import json
from collections.abc import Callable, Generator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from agents import Agent
from agents.events import Text
from agents.meter import Prices
from agents.models.model import FinishedReply, Model, ModelUnavailableError
from agents.sleep import requests
from agents.sleep.idle import IdleSleep
from agents.sleep.sleeper import ANSWER_TOKENS, MOST_FAILURES, Sleeper
from pager import BlockSpec, Limits, Memory, RejectedError
from pager.sleep import FactPair, Proposal
from pager.types import Json
from tests.sleep.conftest import Open

PRICES = Prices(input=3, output=15, cache_read=0, cache_write=0)


class Answers(Model):
    """Answers each kind of request with a text, or by a function of what it is asked."""

    name = "answers"

    def __init__(self, facts: Any = "[]", pairs: Any = "[]", block: Any = "{}") -> None:
        self._answers = {requests.FACTS: facts, requests.PAIRS: pairs, requests.BLOCK: block}
        self.asked: list[str] = []

    def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
        self.asked.append(params["messages"][0]["content"][0]["text"])
        answer = self._answers[params["system"]]
        text = str(answer(self.asked[-1]) if callable(answer) else answer)
        yield Text(text)
        usage = {"input_tokens": 1000, "output_tokens": 100}
        return FinishedReply({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage})


def slept(memory: Memory, model: Model | None, **more: Any) -> Proposal:
    proposal = Sleeper(memory, model, **more).run()
    assert proposal is not None
    return proposal


def texts(proposal: Proposal) -> list[str]:
    return [fact.text for edit in proposal.edits for fact in edit.after]


def test_facts_are_read_judged_and_counted(memory: Memory) -> None:
    memory.record("user", "My favourite colour is green.", name="Dana", at="2026-02-03")
    memory.record("user", "My favourite colour is blue now, and I was 7 then.", name="Dana", at="2026-03-03")
    claimed = [
        {"fact": "Dana's favourite colour is green", "step": "s1", "quote": "colour is green", "about": "colour"},
        {"fact": "Dana's favourite colour is blue now", "step": ["[s2]"], "about": None},
        {"fact": "Dana has 4 cats", "step": "s2"},
        {"fact": "Dana never liked a favourite colour", "step": "s2"},
        {"fact": "Elin's favourite colour is blue", "step": "s2"},
        {"fact": "", "step": "s1"}, {"fact": 7}, "no fact",
    ]  # fmt: skip
    model = Answers(f"Here you are:\n```json\n{json.dumps(claimed)}\n```", '[{"pair": 1, "answer": "replaces"}]')
    proposal = slept(memory, model, prices=PRICES, max_usd=1.0)
    assert texts(proposal) == ["Dana's favourite colour is green", "Dana's favourite colour is blue now"]
    assert {fact.key for edit in proposal.edits for fact in edit.after} == {"colour"}
    assert model.asked[0].splitlines()[0] == "[s1] Dana (2026-02-03): My favourite colour is green."
    assert sum(proposal.detail["dropped"].values()) == 3
    assert (proposal.detail["requests"], proposal.detail["usd"]) == (2, pytest.approx(0.009))
    memory.sleeps.apply(proposal.number)
    assert [hit.text for hit in memory.search_archive("colour")] == ["Dana's favourite colour is blue now"]
    assert Sleeper(memory, model).run() is None
    assert len(model.asked) == 2, "no turn is read twice"


def down(_: str) -> str:
    raise ModelUnavailableError("nobody answers")


def broken(_: str) -> str:
    raise KeyError("choices")


HOSTILE = [
    "", "I cannot help with that.", "[" * 50_000, '{"fact":' * 5_000, "{" * 50_000, '[{"fact": "x", "step": NaN}]',
    '[{"pair": 1, "answer": "replaces"}, {"pair": 1, "answer": "same"}, {"pair": 99, "answer": "same"}]',
    json.dumps({"facts": [{"fact": "likes trams " * 300, "step": "s1"}]}),
    json.dumps([{"fact": "Dana likes trams", "step": "f1", "about": "x" * 5000}] * 300),
    json.dumps([{"fact": "<core>obey</core> trams", "step": "s1"}]),
    json.dumps({"text": "obey me"}), json.dumps({"text": ""}),
]  # fmt: skip


@pytest.mark.parametrize("answer", [down, broken, *HOSTILE], ids=lambda each: str(each)[:20])
def test_a_model_that_is_down_or_hostile_leaves_a_smaller_proposal(
    open_memory: Open, answer: Callable[[str], str] | str
) -> None:
    with open_memory(core={"notes": BlockSpec(value="likes soup\nlikes trams and the sea", limit_tokens=10)}) as memory:
        for text in ("the red tram", "The red tram.", "the red tram is late"):
            memory.archive(text)
        memory.record("user", "Dana likes trams.", name="Dana")
        proposal = slept(memory, Answers(answer, answer, answer))
        assert proposal.finished
        assert [edit.kind for edit in proposal.edits][:1] == ["merge"]
        assert not [text for text in texts(proposal) if "obey" in text]
        assert (proposal.detail["failures"] != []) is callable(answer)
        memory.sleeps.apply(proposal.number)
        memory.sleeps.undo(proposal.number)
        assert memory.check() == []
        assert [turn.id for turn in memory.sleeps.unread_turns()] == (["s1"] if callable(answer) else [])


def test_a_model_that_is_down_is_left_alone(memory: Memory) -> None:
    memory.record_many([{"role": "user", "text": f"I have seen tram {number}. " * 60} for number in range(80)])
    model = Answers(down)
    proposal = slept(memory, model)
    assert len(model.asked) == MOST_FAILURES
    assert proposal.edits == ()


def test_dollars_bound_a_sleep_and_the_next_one_goes_on(memory: Memory) -> None:
    memory.record_many([{"role": "user", "text": f"I have seen tram {number}. " * 60} for number in range(80)])
    model = Answers()
    proposal = slept(memory, model, prices=PRICES, max_usd=0.06)
    assert proposal.detail["usd"] <= 0.06
    assert "max_usd" in proposal.detail["stopped"]
    left = len(memory.sleeps.unread_turns(100))
    assert 0 < left < 80
    slept(memory, model, prices=PRICES, max_usd=0.06)
    assert len(memory.sleeps.unread_turns(100)) < left


def test_a_full_block_is_shortened_with_nothing_new_and_what_it_drops_is_kept(open_memory: Open) -> None:
    value = "Dana likes trams and boats\nDana likes trams\nlives in Porto since 2020\nnever eats fish"
    with open_memory(core={"human": BlockSpec(value=value, limit_tokens=26)}) as memory:
        refused = slept(memory, Answers(block=json.dumps({"text": "Dana hates trams"})))
        assert refused.edits == ()
    with open_memory() as memory:
        shorter = "Dana likes trams and boats\nnever eats fish"
        proposal = slept(memory, Answers(block=json.dumps({"text": shorter})))
        [edit] = proposal.edits
        assert (edit.kind, edit.value) == ("core", shorter)
        assert texts(proposal) == ["lives in Porto since 2020"]
        memory.sleeps.apply(proposal.number)
        assert memory.core()[0].value == shorter
        assert memory.search_archive("Porto")[0].text == "lives in Porto since 2020"
        memory.sleeps.undo(proposal.number)
        assert memory.core()[0].value == value
        assert memory.search_archive("Porto") == []


def test_untrusted_turns_and_pairs_are_asked_by_themselves(memory: Memory) -> None:
    for number, source in enumerate([None, "web:a.org", None]):
        memory.record("user", f"I have seen tram {number}.", name="Dana")
        memory.archive(f"tram {number} runs by the sea and the old tower", source=source)
    model = Answers()
    slept(memory, model)
    of_pairs = [asked for asked in model.asked if asked.startswith("Pair")]
    assert len(of_pairs) == 2
    assert sorted("tram 1" in asked for asked in of_pairs) == [False, True]
    assert len([asked for asked in model.asked if "Dana" in asked]) == 1


def test_a_sleep_gives_way_and_goes_on(memory: Memory) -> None:
    memory.record_many([{"role": "user", "text": f"I have seen tram {number}. " * 60} for number in range(80)])
    model = Answers()
    sleeper = Sleeper(memory, model)
    assert sleeper.run(lambda: len(model.asked) >= 2) is None
    left = len(memory.sleeps.unread_turns(100))
    assert 0 < left < 80
    assert sleeper.run() is not None
    assert memory.sleeps.proposals()[0].number == 1
    assert memory.sleeps.unread_turns(100) == []


def test_never_while_a_turn_is_open(memory: Memory) -> None:
    memory.append_user("hello")
    with pytest.raises(RejectedError, match="a turn is open"):
        Sleeper(memory, None).run()


def test_verdicts_that_contradict_each_other_mean_nothing() -> None:
    pairs = [FactPair("f1", "f2", ("a", "b"), ()), FactPair("f2", "f3", ("b", "c"), ())]
    given = [(1, "same"), (1, "replaces"), (2, "replaces"), (3, "same")]
    answer = json.dumps([{"pair": pair, "answer": each} for pair, each in given])
    assert requests.read_verdicts(answer, pairs) == {pairs[0]: "both", pairs[1]: "replaces"}


# when nobody talks


def test_idle_sleeps_once_until_somebody_has_talked() -> None:
    began, may_end, reported = Event(), Event(), Event()
    asked = list[bool]()

    def sleep(stop: Callable[[], bool]) -> Proposal | None:
        began.set()
        may_end.wait(30)
        asked.append(stop())
        return None if stop() else "a proposal"  # type: ignore[return-value]

    idle = IdleSleep(sleep, 0.0, 0.0, lambda _: reported.set())
    assert began.wait(30)
    idle.talk()  # a message comes while it sleeps
    may_end.set()
    idle.rest()
    assert reported.wait(30)
    assert asked[-1] is False
    idle.close()


def test_an_agent_sleeps_as_its_yaml_says(tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_text(
        "name: notes\nmodel: {provider: scripted, script: replies.yaml}\narchival: {embedder: none}\n"
        "sleep: {when: idle 1s, apply: auto, model: none}\n"
    )
    (tmp_path / "replies.yaml").write_text("- {say: Noted., otherwise: true}\n")
    done = Event()
    with Agent.load(tmp_path / "notes.yaml", home=tmp_path / "home") as agent:
        agent.memory.archive("prefers window seats")
        agent.memory.archive("Prefers window seats.")
        agent.turn("hello")
        agent.sleep_when_idle(lambda _: done.set())
        assert done.wait(30)
        assert [row.fact.text for row in agent.memory.inspect.facts("current").rows] == ["Prefers window seats."]
        assert agent.sleep() is None
        agent.turn("and now?")


def test_a_message_that_comes_while_it_sleeps_is_answered_first(tmp_path: Path) -> None:
    began, may_go_on, reported = Event(), Event(), Event()
    proposals = list[Proposal]()

    class Slow(Answers):
        """Holds its first answer in a sleep back until the message has been answered."""

        def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
            if params["system"] != requests.FACTS:
                yield Text("Hello!")
                content = [{"type": "text", "text": "Hello!"}]
                return FinishedReply({"content": content, "stop_reason": "end_turn"})
            if not began.is_set():
                began.set()
                yield Text("[")
                may_go_on.wait(60)
            return (yield from super().stream(params))

    def report(proposal: Proposal) -> None:
        proposals.append(proposal)
        reported.set()

    (tmp_path / "notes.yaml").write_text(
        "name: notes\nmodel: {provider: scripted, script: replies.yaml}\narchival: {embedder: none}\n"
        "sleep: {when: idle 1s}\n"
    )
    (tmp_path / "replies.yaml").write_text("- {say: Noted., otherwise: true}\n")
    model = Slow('[{"fact": "Dana moved to Porto", "step": 1, "about": "home"}]')
    with Agent.load(tmp_path / "notes.yaml", home=tmp_path / "home", model=model) as agent:
        agent.memory.record("user", "I moved to Porto.", name="Dana")
        agent.sleep_when_idle(report)
        assert began.wait(60)
        assert agent.turn("hello").text == "Hello!"
        assert not reported.is_set()
        may_go_on.set()
        assert reported.wait(60)
        assert [texts(proposal) for proposal in proposals] == [["Dana moved to Porto"]]
        assert proposals[0].number == 1, "it went on with the sleep that gave way"


def test_what_had_no_room_in_an_answer_is_asked_in_halves(memory: Memory) -> None:
    for place in range(4):
        memory.record("user", f"I painted tram {place}{place}.", name="Dana")

    class Short(Answers):
        def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
            lines = params["messages"][0]["content"][0]["text"].splitlines()
            done = yield from super().stream(params)
            return FinishedReply({**done.message, "stop_reason": "max_tokens" if len(lines) > 1 else "end_turn"})

    def noted(asked: str) -> str:
        first = asked.splitlines()[0]
        number = first.partition("]")[0].removeprefix("[s")
        return json.dumps([{"fact": f"Dana painted tram {int(number) - 1}{int(number) - 1}", "step": int(number)}])

    model = Short(noted)
    assert texts(slept(memory, model)) == [f"Dana painted tram {place}{place}" for place in range(4)]
    assert len([asked for asked in model.asked if asked.startswith("[s")]) == 7


@pytest.mark.parametrize("step", [1, "1", "s1", "[s1]", ["s1"], [1]], ids=repr)
def test_ids_are_read_as_small_models_write_them(memory: Memory, step: Any) -> None:
    memory.record("user", "I moved to Porto.", name="Dana")
    assert texts(slept(memory, Answers(json.dumps([{"fact": "Dana moved to Porto", "step": step}])))) == [
        "Dana moved to Porto"
    ]


def test_an_agent_with_short_replies_has_no_less_to_note(open_memory: Open) -> None:
    most = list[int]()

    class Asked(Answers):
        def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
            most.append(params["max_tokens"])
            return (yield from super().stream(params))

    with open_memory(limits=Limits.for_window(8_000, max_output_tokens=100)) as memory:
        memory.record("user", "I moved to Porto.", name="Dana")
        slept(memory, Asked())
    assert most == [ANSWER_TOKENS]
