"""An agent on top of `pager`: YAML, model clients, tools, the loop, long tasks, the command line.

    >>> from agents import Agent
    >>> agent = Agent.load("configs/assistant.yaml", home="state")  # or Agent(name=, model=, tools=[...])
    >>> agent.turn("hello").text

`Agent` is the facade: a turn goes through `agent`, `loop`, `meter` and the model, and `assembly` joins them. The rooms:
`config` (the YAML), `models`, `tools`, `mcp` (tools of others, and our memory as tools for others), `importing`,
`explain` and `view` (what the memory holds and why), `cli`, `testing`, `demo`. Everything that a public signature names
is exported here; but `pager` has what a memory takes and returns (`Usage`, `Movement`), `agents.config` what an
`AgentConfig` consists of.

Importing this loads neither a provider's SDK nor Chroma.
"""

from typing import TYPE_CHECKING

from agents.lazy import lazy_names

if TYPE_CHECKING:
    from agents.agent import Agent, BackgroundWork, Progress, TaskResult, Turn
    from agents.config.agent_config import AgentConfig
    from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
    from agents.events import (
        ApprovalNeeded,
        Event,
        HelperEvent,
        Paged,
        Planned,
        Replied,
        Stopped,
        StopReason,
        StreamLost,
        Text,
        Thinking,
        ToolFinished,
        ToolStarted,
    )
    from agents.loop import Approve, Loop
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
    from agents.models.openai import OpenAIModel
    from agents.models.patience import Patience
    from agents.tasks import Task, TaskRunner, TaskTools
    from agents.tools.functions import Output, Sourced, Tool, ToolCallError, ToolConfigError
    from agents.tools.results import ResultSchema

__all__ = [
    "Agent", "AgentConfig", "AnthropicModel", "ApprovalNeeded", "Approve", "BackgroundWork", "ConfigError",
    "ConfigPlace", "ConfigProblem", "Event", "FinishedReply", "HelperEvent", "Loop", "Meter", "Model", "ModelError",
    "ModelRefusedError", "ModelUnavailableError", "OpenAIModel", "Output", "Paged", "Patience", "Planned", "Prices",
    "Progress", "PromptTooLongError", "Replied", "ResultSchema", "RunLimits", "Sourced", "StopReason", "Stopped",
    "StreamLost", "Task", "TaskResult", "TaskRunner", "TaskTools", "Text", "Thinking", "Tool", "ToolCallError",
    "ToolConfigError", "ToolFinished", "ToolStarted", "Turn", "UnreadableReplyError",
]  # fmt: skip
__getattr__ = lazy_names(
    __name__, __all__,
    ("config.errors", "events", "meter", "models.model", "models.anthropic", "models.openai", "models.patience",
     "tools.functions", "tools.results", "config.agent_config", "loop", "tasks", "agent"),
)  # fmt: skip
