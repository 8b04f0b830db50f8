"""`recall.digest: summarize`: another model writes the digest; an eviction never depends on it."""

import json
from typing import Any

import pytest

from agents import Agent
from agents.meter import Meter, Prices, RunLimits
from agents.models.model import ModelUnavailableError
from agents.models.summaries import Summarizer
from agents.testing import Fault, disconnect, http_error, stall, truncate
from pager.prompt.summary import SummaryRequest
from tests.standin import Reply
from tests.support.clock import HandClock
from tests.support.stage import Stage

Json = dict[str, Any]
PRICES = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}


def agent_at(stage: Stage, **summarize: Any) -> Agent:
    digest = json.dumps({"summarize": summarize} if summarize else "summarize")
    more = f"recall: {{digest: {digest}}}\nprices: {json.dumps(PRICES)}\n"
    return stage.load(more, window=7_000, clock=HandClock())


def requests_for(stage: Stage, model: str) -> list[Json]:
    return [request for request in stage.requests if request["model"] == model]


@pytest.mark.parametrize(("by", "model"), [({"model": "small"}, "small"), ({}, "m")])
def test_a_model_writes_what_stands_for_the_steps_that_left(stage: Stage, by: Json, model: str) -> None:
    def said(params: Json) -> Reply:
        summarizes = params.get("system", "") and isinstance(params["system"], str)
        return Reply("Dana planned\n\na journey to Porto." if summarizes else "It is noted. " * 20)

    stage.follows(said)
    with agent_at(stage, **by) as agent:
        for number in range(40):
            agent.turn(f"Note {number} about the journey: " + "we walk along the river and eat by the sea " * 5)
        summaries = [request for request in stage.requests if isinstance(request.get("system"), str)]
        assert len(summaries) >= 2
        assert {request["model"] for request in summaries} == {model}
        assert "Note 0 about the journey" in summaries[0]["messages"][0]["content"]
        assert "Dana planned a journey to Porto." in summaries[1]["messages"][0]["content"]
        digest = requests_for(stage, "m")[-1]["messages"][0]["content"][0]["text"]
        assert "turns, " in digest
        assert "Dana planned a journey to Porto." in digest
        assert not agent.memory.check()
    stage.assert_over()


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_an_unfinished_summary_is_none(stage: Stage, stop: str) -> None:
    stage.follows(lambda params: Reply("Dana", stop_reason=stop) if params["model"] == "small" else Reply("Yes. " * 60))
    with agent_at(stage, model="small") as agent:
        for number in range(30):
            assert agent.turn(f"Note {number}: " + "we walk along the river " * 9).text
        assert requests_for(stage, "small")
        assert ": Note " in requests_for(stage, "m")[-1]["messages"][0]["content"][0]["text"]
        assert {row.reason.split(":")[0] for row in agent.memory.ledger(events=["digest"])} == {
            "no summary, the built digest stands"
        }
    stage.assert_over()


REQUEST = SummaryRequest("", "s1, user:\nhello", 100)


@pytest.fixture
def meter() -> Meter:
    return Meter(HandClock(), RunLimits(), Prices(**PRICES))


@pytest.mark.parametrize("fault", [http_error(529), http_error(429), stall("It"), disconnect("It"), truncate("It")])
def test_it_is_asked_once_and_a_slow_or_broken_answer_is_none(stage: Stage, meter: Meter, fault: Fault) -> None:
    stage.says(fault)
    with pytest.raises(ModelUnavailableError):
        Summarizer(stage.model(read_seconds=1), meter, 10_000)(REQUEST)
    assert stage.service.asked == 1
    assert meter.usd == 0


def test_a_summary_costs_what_it_costs_and_is_no_step(stage: Stage, meter: Meter) -> None:
    assert Summarizer(stage.says("A summary.").model(), meter, 10_000)(REQUEST) == "A summary."
    assert meter.usd > 0
    assert meter.steps == 0
