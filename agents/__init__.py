"""An agent on top of `pager`: YAML, model clients, tools, the loop, long tasks, the command line.

    >>> from agents import Agent
    >>> agent = Agent.load("configs/assistant.yaml", home="state")
    >>> agent.turn("hello").text

Importing this loads neither a provider's SDK nor Chroma.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.agent import Agent, Turn

__all__ = ["Agent", "Turn"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from agents import agent

        return getattr(agent, name)
    raise AttributeError(f"module 'agents' has no attribute {name!r}")
