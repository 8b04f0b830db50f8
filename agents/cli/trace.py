"""`selfpager trace NAME "text"`: where a text has been, and why the agent does or does not see it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json
from agents.explain.trace import trace
from agents.explain.trace_parts import Trace
from pager.reader import MemoryReader


@click.command("trace", short_help="Where a text has been: written, moved, evicted, searched.")
@click.argument("name", type=AgentName())
@click.argument("text")
@click.option("--at", "step", metavar="STEP", help="Was it in the request that this step answered, such as s45?")
@click.option("--json", "as_line", is_flag=True, help="Print it as a line of JSON.")
@common
@click.pass_obj
def trace_command(shared: Shared, name: str, text: str, step: str | None, as_line: bool) -> int:
    """Why did the agent NAME forget TEXT, or does it see it?

    TEXT is a piece of what was said or stored, in any case; or the id of a page: s45, f12, x3. The agent may be
    running. First comes the answer for now, or for --at STEP, then the life of the text, oldest moment first.
    """
    name, directory = shared.existing(name)
    with MemoryReader.open(directory) as reading:
        told = trace(reading, text, step)
    if as_line:
        click.echo(as_json({"agent": name, **as_data(told)}))
    else:
        _draw(told)
    return DONE


def as_data(told: Trace) -> dict[str, Any]:
    data = asdict(told)
    for event in data["events"]:
        event["at"] = event["at"].isoformat()
    data["verdict"]["present"] = told.verdict.present
    return data


def _draw(told: Trace) -> None:
    from rich.console import Console

    from agents.cli.trace_drawing import drawn

    Console().print(drawn(told))
