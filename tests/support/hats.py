"""A long task for tests: an agent that counts hats in a box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.agent import Agent
from agents.events import Stopped
from agents.tools.functions import Tool
from tests.standin import call
from tests.support.stage import Stage, last

TASK = "Count the hats in the box."
DONE = call("task_done", {"summary": "two hats"})


def look() -> str:
    """Look into the box."""
    return "a red one, a blue one"


def open_agent(stage: Stage, *functions: Callable[..., Any] | Tool, **options: Any) -> Agent:
    return stage.agent(look, *functions, task=True, **options)


def run(agent: Agent, text: str = TASK) -> Stopped:
    return last(agent.tasks().start(text))


def resume(agent: Agent) -> Stopped:
    return last(agent.tasks().resume())
