"""A configuration with every default filled in, as YAML that `load` reads again, or as JSON. Secrets are hidden."""

import json
from typing import Any, cast

from agents.config import embedders
from agents.config.agent_config import AgentConfig
from agents.config.tool_sections import ServerTools
from agents.config.variables import escape
from agents.config.yaml_file import dump
from pager.safety.redaction import HIDDEN, public_address


def render(config: AgentConfig) -> str:
    """Return the configuration as YAML; a `${` in a text is escaped, so that reading expands nothing."""
    return escape(dump(_without_secrets(config)))


def render_json(config: AgentConfig) -> str:
    """Return the configuration as a line of JSON for programs, which expand nothing: `${` stays as it is."""
    return json.dumps(_without_secrets(config), ensure_ascii=False) + "\n"


def _without_secrets(config: AgentConfig) -> dict[str, Any]:
    data = config.model_dump(mode="json", exclude_none=True)
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
