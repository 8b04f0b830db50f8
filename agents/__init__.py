"""An agent on top of `pager`: YAML, model clients, tools, the loop, long tasks, the command line.

    >>> from agents import Agent
    >>> agent = Agent.load("configs/assistant.yaml", home="state")
    >>> agent.turn("hello").text

`Agent` is the facade: a turn goes through `agent`, `loop`, `meter` and the model, and `assembly` joins them. The rooms:
`config` (the YAML), `models`, `tools`, `mcp` (tools of others, and our memory as tools for others), `importing`,
`explain` and `view` (what the memory holds and why), `cli`, `testing`, `demo`. Everything that a public signature names
is exported here; what a memory takes and returns (`Usage`, `Movement`, `Call`, `Clock`) is exported by `pager`.

Importing this loads neither a provider's SDK nor Chroma.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.agent import Agent, BackgroundWork, Progress, Turn
    from agents.config.agent_config import AgentConfig
    from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
    from agents.events import (
        ApprovalNeeded,
        Event,
        Paged,
        Replied,
        Stopped,
        StopReason,
        StreamLost,
        Text,
        Thinking,
        ToolFinished,
        ToolStarted,
    )
    from agents.loop import Approve, Patience
    from agents.meter import Meter, Prices, RunLimits
    from agents.models.anthropic import AnthropicModel
    from agents.models.model import (
        FinishedReply,
        Model,
        ModelError,
        ModelRefusedError,
        ModelUnavailableError,
        PromptTooLongError,
        UnreadableReplyError,
    )
    from agents.tasks import Task, TaskRunner
    from agents.tools.functions import Output, Tool, ToolCallError, ToolConfigError

__all__ = [
    "Agent", "AgentConfig", "AnthropicModel", "ApprovalNeeded", "Approve", "BackgroundWork", "ConfigError",
    "ConfigPlace", "ConfigProblem", "Event", "FinishedReply", "Meter", "Model", "ModelError", "ModelRefusedError",
    "ModelUnavailableError", "Output", "Paged", "Patience", "Prices", "Progress", "PromptTooLongError", "Replied",
    "RunLimits", "StopReason", "Stopped", "StreamLost", "Task", "TaskRunner", "Text", "Thinking", "Tool",
    "ToolCallError", "ToolConfigError", "ToolFinished", "ToolStarted", "Turn", "UnreadableReplyError",
]  # fmt: skip
_MODULES = (
    *("config.errors", "events", "meter", "models.model", "models.anthropic", "tools.functions"),
    *("config.agent_config", "loop", "tasks", "agent"),
)


def __getattr__(name: str) -> Any:
    """Load the module that has the name, at its first use."""
    for module in _MODULES if name in __all__ else ():
        found = getattr(import_module(f"agents.{module}"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'agents' has no attribute {name!r}")
