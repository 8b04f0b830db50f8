"""Configuration: from a YAML file, or arguments, to a checked `AgentConfig`. Makes no model and knows no terminal.

The room promises that a file is either read completely or refused with every problem at its file, line and column.
Nothing is guessed: unknown keys, duplicate keys and numbers written as text are errors.

- `agent_config`: `AgentConfig` and `load`. Callers start here.
- `arguments`: the same from the arguments of `Agent(...)`; a problem's place is the argument.
- `sections`, `tool_sections`, `field_types`: every key with its default, its meaning and what it accepts.
- `yaml_file`, `variables`: files, `extends` and `${VAR}` become plain data and the place of each value.
- `error_messages`, `errors`: what pydantic rejects, in plain words; `ConfigError`.
- `script`: the script of `provider: scripted`, as `agents.models.scripted` runs it.
- `render`, `schema`: the resolved configuration as YAML or JSON; the JSON schema for editors.
- `cron`: times that repeat, in a time zone.
- `embedders`: the embedder that a configuration names, and the one with which a stored agent ran last.

Called by `agents.agent`, `assembly`, `cli` and `mcp`. What `AgentConfig` names is exported here.
"""

from typing import TYPE_CHECKING

from agents.lazy import lazy_names

if TYPE_CHECKING:
    from agents.config.agent_config import AgentConfig, load
    from agents.config.cron import Cron
    from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
    from agents.config.sections import (
        ArchivalConfig,
        BlockConfig,
        CoreConfig,
        EmbedderConfig,
        IndexServerConfig,
        LimitsConfig,
        MemoryConfig,
        ModelConfig,
        MountConfig,
        PrefetchConfig,
        PricesConfig,
        RecallConfig,
        ScheduleConfig,
        Section,
        SleepConfig,
        SummarizeConfig,
        SummaryConfig,
        WindowConfig,
    )
    from agents.config.tool_sections import (
        FilesTool,
        FunctionTool,
        HelperTool,
        ProviderTool,
        ServerConfig,
        ServerTools,
        ShellTool,
        ToolConfig,
        WebTool,
    )

__all__ = [
    "AgentConfig", "ArchivalConfig", "BlockConfig", "ConfigError", "ConfigPlace", "ConfigProblem", "CoreConfig", "Cron",
    "EmbedderConfig", "FilesTool", "FunctionTool", "HelperTool", "IndexServerConfig", "LimitsConfig", "MemoryConfig",
    "ModelConfig", "MountConfig", "PrefetchConfig", "PricesConfig", "ProviderTool", "RecallConfig", "ScheduleConfig",
    "Section", "ServerConfig", "ServerTools", "ShellTool", "SleepConfig", "SummarizeConfig", "SummaryConfig",
    "ToolConfig", "WebTool", "WindowConfig", "load",
]  # fmt: skip
__getattr__ = lazy_names(__name__, __all__, ("errors", "agent_config", "cron", "sections", "tool_sections"))
