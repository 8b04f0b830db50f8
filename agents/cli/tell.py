"""`selfpager tell NAME "text"`: a message to an agent that another process runs."""

from __future__ import annotations

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json
from pager.clock import SystemClock
from pager.upkeep import inbox


@click.command("tell", short_help="A message to a running agent, taken at its next step.")
@click.argument("name", type=AgentName())
@click.argument("text")
@click.option("--from", "speaker", metavar="WHO", help="The name of the speaker.")
@click.option("--json", "as_line", is_flag=True, help="Print the command's id as JSON.")
@common
@click.pass_obj
def tell_command(shared: Shared, name: str, text: str, speaker: str | None, as_line: bool) -> int:
    """Leave TEXT for the agent NAME. One that is at work takes it at its next step; any other when it next has work."""
    if not text.strip():
        raise click.UsageError("the message is empty; say something.")
    name, directory = shared.existing(name)
    arguments = {"text": text, **({"name": speaker} if speaker else {})}
    command = inbox.send_command(directory, "message", arguments, SystemClock())
    told = f"left for {name}; it is taken at its next step, now or when it works again."
    click.echo(as_json({"command": command}) if as_line else told)
    return DONE
