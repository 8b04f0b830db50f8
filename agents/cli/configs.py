"""`validate`, `render`, `schema`: check and resolve the YAML file of an agent without running the agent."""

import os
from pathlib import Path

from agents.cli.common import Shared, agent_file, command, json_option
from agents.cli.terminal import as_json
from agents.cli.visible import say


@command("validate", home=None, as_name=None)
@agent_file
@json_option("Print the result as JSON.")
def validate_command(_: Shared, file: Path, as_line: bool) -> None:
    """Check AGENT.yaml and everything that it names, including tools. Errors give file, line and column."""
    from agents.assembly import own_tools, try_out
    from agents.config.agent_config import load
    from agents.config.errors import ConfigError
    from pager.clock import SystemClock

    config = load(file, os.environ)
    tools = [tool.name for tool in own_tools(config)]
    try_out(config, SystemClock(), task=False)
    remarks: list[str] = []
    try:
        try_out(config, SystemClock(), task=True)
    except ConfigError as error:
        remarks.append(f"valid for `chat`, but not for `run`, which adds a plan and a tool: {error}")
    if as_line:
        say(as_json({"valid": True, "name": config.name, "tools": tools, "remarks": remarks}))
        return
    own = f", own tools {', '.join(tools)}" if tools else ""
    say(f"{file} is valid: the agent {config.name!r}, {config.model.provider} {config.model.id}{own}")
    for remark in remarks:
        say(remark, err=True)


@command("render", home=None, as_name=None)
@agent_file
@json_option("Print it as JSON.")
def render_command(_: Shared, file: Path, as_line: bool) -> None:
    """Show AGENT.yaml with `extends`, variables and defaults resolved; keys are masked."""
    from agents.assembly import own_tools
    from agents.config.agent_config import load
    from agents.config.render import render, render_json

    config = load(file, os.environ)
    own_tools(config)  # raises if one cannot be imported
    say(render_json(config) if as_line else render(config), nl=False)


@command("schema", home=None, as_name=None)
def schema_command(_: Shared) -> None:
    """Print the JSON schema of an agent's YAML. Editors use it to complete and check the file."""
    from agents.config.schema import rendered

    say(rendered(), nl=False)
