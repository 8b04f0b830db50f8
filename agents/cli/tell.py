"""`selfpager tell NAME "text"`: send a message to an agent that another process runs."""

from __future__ import annotations

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json


@click.command("tell")
@click.argument("name", type=AgentName())
@click.argument("text")
@click.option("--from", "speaker", metavar="WHO", help="The name of the speaker.")
@click.option("--json", "as_line", is_flag=True, help="Print the id of the message as JSON.")
@common
@click.pass_obj
def tell_command(shared: Shared, name: str, text: str, speaker: str | None, as_line: bool) -> int:
    """Send TEXT to the agent NAME. It reads the message at its next step, or when it runs again."""
    if not text.strip():
        raise click.UsageError("the message is empty; write something.")
    name, _ = shared.existing(name)
    arguments = {"text": text, **({"name": speaker} if speaker else {})}
    command = shared.home.send(name, "message", arguments).command
    done = f"sent to {name}; it reads the message at its next step, or when it runs again."
    click.echo(as_json({"command": command}) if as_line else done)
    return DONE
