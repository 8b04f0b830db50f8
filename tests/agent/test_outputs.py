"""The result of a task: it fits what is asked for, or the agent is told why not, and at last the task has failed."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from agents import tasks
from agents.agent import Agent
from agents.config.errors import ConfigError
from agents.events import Stopped, ToolFinished
from agents.meter import RunLimits
from pager import RejectedError
from tests.standin import Reply, call
from tests.support.stage import Stage, last, said_to


class Report(BaseModel):
    hats: int
    note: str = ""

    @field_validator("hats")
    @classmethod
    def _some(cls, hats: int) -> int:
        if hats == 0:
            raise ValueError("there are some")
        return hats


def done(result: Any = None, summary: str = "counted") -> dict[str, Any]:
    return call("task_done", {"summary": summary} | ({} if result is None else {"result": result}))


def results(stage: Stage) -> list[dict[str, Any]]:
    """The results in the last request."""
    messages = stage.requests[-1]["messages"]
    return [block for message in messages for block in message["content"] if block["type"] == "tool_result"]


def test_the_schema_is_in_the_tool_and_the_result_is_an_object(stage: Stage) -> None:
    agent = stage.says(done({"hats": 2})).agent(task=True, output=Report)
    outcome = agent.run("Count the hats.")
    assert (outcome.summary, outcome.result, outcome.stopped.reason) == ("counted", Report(hats=2), "done")
    assert outcome.usage.output_tokens > 0
    [tool] = [tool for tool in stage.requests[0]["tools"] if tool["name"] == "task_done"]
    assert tool["input_schema"]["properties"]["result"]["properties"]["hats"]["type"] == "integer"
    assert said_to(stage) == ["Count the hats."]


def test_what_does_not_fit_is_told_twice(stage: Stage) -> None:
    agent = stage.says(done(), Reply(done({"hats": "many"})), done({"hats": 3})).agent(task=True, output=Report)
    finished = [event for event in agent.tasks().start("Count.") if isinstance(event, ToolFinished)]
    assert [event.is_error for event in finished] == [True, True, False]
    assert "the result: Input should be an object" in finished[0].text
    assert "hats: Input should be a valid integer" in finished[1].text
    assert [block.get("is_error") for block in results(stage)] == [True, True]
    task = tasks.current(agent.memory)
    assert task
    assert (task.state, task.result, task.misfits) == ("done", {"hats": 3}, 2)


def test_then_the_task_has_failed_with_its_summary(stage: Stage) -> None:
    agent = stage.says(*3 * [done({"hats": 0}, "none")]).agent(task=True, output=Report)
    outcome = agent.run("Count.")
    assert (outcome.summary, outcome.result, outcome.stopped) == ("none", None, Stopped("failed", "none"))
    assert last(agent.tasks().resume()) == Stopped("failed", "none")  # without a request
    stage.says(done({"hats": 1}))
    assert agent.run("Count again.").result == Report(hats=1)
    stage.assert_over()


def test_a_run_may_ask_for_its_own(stage: Stage) -> None:
    agent = stage.says(done({"hats": 0}), done({"hats": 2}), done([1])).agent(task=True)
    outcome = agent.run("Count the hats.", output=Report)
    assert outcome.result == Report(hats=2)
    assert len([text for text in said_to(stage) if '"hats"' in text]) == 1  # the agent reads what is asked for
    task = tasks.current(agent.memory)
    assert task
    assert task.text == "Count the hats."
    assert task.misfits == 1  # the class says more than its schema
    assert agent.run("Count anything.").result == [1]  # which holds for that run alone


def test_what_a_run_asked_for_holds_when_it_is_resumed_without_its_class(stage: Stage) -> None:
    agent = stage.says("I shall.", done({"hats": "many"}), done({"hats": 2})).agent(
        task=True, limits=RunLimits(max_steps=1)
    )
    assert agent.run("Count.", output=Report).stopped.reason == "steps"
    agent.close()
    again = stage.agent(task=True)
    outcome = again.resume_run()
    assert (outcome.result, outcome.stopped.reason) == ({"hats": 2}, "done")
    task = tasks.current(again.memory)
    assert task
    assert task.misfits == 1


def test_a_file_has_the_schema(stage: Stage) -> None:
    file = stage.directory.with_name("report.json")
    file.write_text(json.dumps({"type": "object", "required": ["hats"]}), encoding="utf-8")
    with stage.says(done({}), done({"hats": None})).load("output: report.json\n", task=True) as agent:
        assert agent.run("Count.").result == {"hats": None}


def test_a_class_is_named(stage: Stage) -> None:
    code = "import pydantic\nclass Hats(pydantic.BaseModel):\n    hats: int\n"
    stage.directory.with_name("named_report.py").write_text(code, encoding="utf-8")
    with stage.says(done({"hats": 4})).load("output: named_report:Hats\n", task=True) as agent:
        assert agent.run("Count.").result.hats == 4


@pytest.mark.parametrize("named", ["nothing.json", "no_such_module:Report", "threading:Thread"])
def test_what_cannot_be_used_has_its_place(stage: Stage, named: str) -> None:
    with pytest.raises(ConfigError, match=r"x\.yaml:5:9: output: "):
        stage.load(f"output: {named}\n", task=True)


def test_an_agent_without_tasks_says_so(stage: Stage) -> None:
    with pytest.raises(RejectedError, match="task=True"):
        stage.agent().run("Count.")


def test_skills_of_an_agent_without_yaml(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "plan"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: plan\ndescription: Plan.\n---\nDo A.", encoding="utf-8")
    reads = [call("page_in", {"page_id": "plan"}), call("page_in", {"page_id": "k1", "pin": True})]
    agent: Agent = stage.says(*reads, "Done.").agent(task=True, skills=tmp_path / "skills", core={})
    assert agent.turn("go").text == "Done."
    told = [block["content"][0]["text"] for block in results(stage)]
    assert "plan is a core block, which is always in view" in told[0]
    assert "The skill of that name is k1." in told[0]
    assert told[1] == "k1, characters 0 to 5 of 5:\nDo A."


@pytest.mark.parametrize("kind", ["few", "none", "anthropic"])
def test_a_skill_is_read_by_name_where_no_tool_reads_pages(stage: Stage, tmp_path: Path, kind: Any) -> None:
    folder = tmp_path / "skills" / "a"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: trips\ndescription: Plan.\n---\nDo A.", encoding="utf-8")
    calls = [call("read_skill", {"name": name}) for name in ("trips", "k1")]
    stage.says(Reply(*calls), "Done.")
    agent = stage.agent(skills=str(tmp_path / "skills"), memory_tools=kind)
    agent.turn("go")
    assert "with read_skill" in stage.requests[0]["system"][0]["text"]
    told = [block["content"][0]["text"] for block in results(stage)]
    assert told[0] == "k1, characters 0 to 5 of 5:\nDo A."
    assert told[1].startswith("there is no skill 'k1'; there are trips.")
    [row] = agent.memory.ledger(events=["page_in"])
    assert (row.page_id, row.actor) == ("k1", "agent")
