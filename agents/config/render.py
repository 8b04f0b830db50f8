"""A configuration with every default filled in, as YAML that `load` reads again, or as JSON. Secrets are hidden.

What only a run can know, such as the window of a model, stands below the YAML as comments.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

from agents.config import embedders
from agents.config.agent_config import AgentConfig
from agents.config.tool_sections import ServerTools
from agents.config.variables import escape
from agents.config.yaml_file import dump
from agents.meter import TURN_STEPS
from pager.safety.redaction import HIDDEN, public_address


def render(config: AgentConfig) -> str:
    """Return the configuration as YAML; a `${` in a text is escaped, so that reading expands nothing."""
    return escape(dump(_without_secrets(config))) + "".join(f"# {line}\n" for line in _decided_later(config))


def render_json(config: AgentConfig) -> str:
    """Return the configuration as a line of JSON for programs, which expand nothing: `${` stays as it is."""
    return json.dumps(_without_secrets(config), ensure_ascii=False) + "\n"


def _decided_later(config: AgentConfig) -> Iterator[str]:
    if config.window.limit_tokens is None:
        yield "window.limit_tokens: the model's own window, at most 200000; what is derived from it is in the docs"
    if config.limits.max_steps is None:
        yield f"limits.max_steps: {TURN_STEPS} for a turn of `chat`, no limit for a task of `run`"
    for name in ("max_usd", "max_minutes"):
        if getattr(config.limits, name) is None:
            yield f"limits.{name}: no limit"
    if config.prices is None:
        yield "prices: none, so dollars are not counted"


def _derived(config: AgentConfig) -> AgentConfig:
    """Return the configuration with the numbers that follow from its window, if it names one."""
    if config.window.limit_tokens is None:
        return config
    limits = config.limits_of(config.window.limit_tokens)
    sections = {
        "model": config.model.model_copy(update={"max_output_tokens": limits.max_output_tokens}),
        "window": config.window.model_copy(update={"max_part_tokens": limits.max_part_tokens}),
        "core": config.core.model_copy(update={"limit_tokens": limits.core_tokens}),
    }
    return config.model_copy(update=sections)


def _without_secrets(config: AgentConfig) -> dict[str, Any]:
    data = _derived(config).model_dump(mode="json", exclude_none=True)
    if config.model.api_key:
        data["model"]["api_key"] = HIDDEN
    if config.model.base_url:
        data["model"]["base_url"] = public_address(config.model.base_url)
    servers = [tool["mcp"] for tool in data["tools"] if "mcp" in tool]
    for server, tool in zip(servers, (tool for tool in config.tools if isinstance(tool, ServerTools)), strict=True):
        server["command"] = tool.mcp.public_command
        if tool.mcp.url:
            server["url"] = tool.mcp.redacted(public_address(tool.mcp.url))
    for secrets in [server[key] for server in servers for key in ("env", "headers")]:
        secrets.update(dict.fromkeys(secrets, HIDDEN))
    if isinstance(index := data["archival"]["index"], dict):
        secrets = cast("dict[str, str]", index["headers"])
        secrets.update(dict.fromkeys(secrets, HIDDEN))
    if isinstance(data["archival"]["embedder"], dict):
        arguments = cast("dict[str, Any]", data["archival"]["embedder"]["config"])
        arguments.update(embedders.public_arguments(arguments))
    return data
