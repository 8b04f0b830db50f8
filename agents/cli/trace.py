"""`selfpager trace NAME "text"`: the life of a text, and why the agent does or does not see it."""

from __future__ import annotations

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json
from agents.explain.json_form import to_json
from agents.explain.trace import trace
from pager.reader import MemoryReader


@click.command("trace", short_help="Where a text has been: written, moved, evicted, searched.")
@click.argument("name", type=AgentName())
@click.argument("text")
@click.option("--at", "step", metavar="STEP", help="Answer for the request that this step answered, such as s45.")
@click.option("--json", "as_line", is_flag=True, help="Print it as a line of JSON.")
@common
@click.pass_obj
def trace_command(shared: Shared, name: str, text: str, step: str | None, as_line: bool) -> int:
    """Tell whether the agent NAME sees TEXT, and if not, why.

    TEXT is a piece of what was said or stored, in any case, or the id of a page: s45, f12, x3. The agent may be
    running. The answer comes first, for now or for --at STEP. Then comes the life of the text, oldest event first.
    """
    name, directory = shared.existing(name)
    with MemoryReader.open(directory) as reader:
        found = trace(reader, text, step)
    if as_line:
        click.echo(as_json({"agent": name, **to_json(found)}))
    else:
        from rich.console import Console

        from agents.cli.trace_drawing import drawn

        Console().print(drawn(found))
    return DONE
