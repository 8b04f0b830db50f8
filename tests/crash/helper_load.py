"""An agent with a helper at work on a task, in a process that may die at any point of it.

What each of them says depends on nothing but how many replies its conversation holds. What the helper's tools do
stands in a file, a line per effect.
"""

from datetime import timedelta
from pathlib import Path

from agents.agent import Agent
from agents.events import Event, HelperEvent, Replied, ToolFinished
from pager.types import Json
from tests.crash.children import die, say
from tests.crash.commit_points import CommitPoints
from tests.crash.loop_load import standin
from tests.standin import Reply, call
from tests.support import helping
from tests.support.clock import START, HandClock
from tests.support.stage import Stage, stage_in
from tests.support.talk import database_of

TASK = "Have two things bought."
FACT = "The hat cost 20."
PARTS = {
    "x": [helping.ask("reader", "buy"), call("task_done", {"summary": "all is bought"})],
    "reader": [
        call("pay", {"item": "hat"}),
        Reply(call("archive", {"text": FACT}), call("pay", {"item": "ribbon"})),
        helping.DONE,
    ],
}
STEPS = sum(map(len, PARTS.values()))


def open_agent(stage: Stage, *, life: int) -> Agent:
    stage.directory.parent.mkdir(exist_ok=True)
    helping.helper(stage, "reader", "tools: [{use: 'tests.support.helping:pay'}]")
    helping.watch(stage.directory.parent)
    stage.follows(helping.plays(**PARTS))
    clock = HandClock(START + timedelta(days=life))
    return stage.load(helping.lead("- agent: reader.yaml"), task=True, clock=clock)


def live(directory: Path, when: str, deadly: int) -> None:
    """The whole task, until death before or after its commit number `deadly`."""
    points = CommitPoints(deadly, after=when == "after")
    with stage_in(directory, standin()) as stage:
        agent = open_agent(stage, life=1)
        points.watch(database_of(agent.memory))
        for event in agent.tasks().start(TASK):
            points.returned()
            acknowledge(event)
        agent.close()
        say([commit.kind for commit in points.commits])


def die_at_the_second(directory: Path) -> None:
    """The same, until death in the middle of the helper's second payment: it is paid, and nobody was told."""
    real = helping.pay

    def pay(item: str) -> str:
        """Pay for an item."""
        said = real(item)
        if item == "ribbon":
            die()
        return said

    helping.pay = pay
    with stage_in(directory, standin()) as stage:
        for event in open_agent(stage, life=1).tasks().start(TASK):
            acknowledge(event)


def acknowledge(event: Event) -> None:
    match event:
        case HelperEvent(inner=Replied(step=step)):
            say("helper replied", step)
        case HelperEvent(inner=ToolFinished(name="pay", text=text)):
            say("helper finished", text)
        case Replied(step=step):
            say("replied", step)
        case _:
            pass


def asked(stage: Stage, name: str) -> list[int]:
    """The numbers of the lines that were asked for in this life."""
    mine: list[Json] = [each for each in stage.requests if f"You are {name}." in each["system"][0]["text"]]
    return [sum(message["role"] == "assistant" for message in each["messages"]) for each in mine]
