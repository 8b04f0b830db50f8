"""`selfpager mcp NAME`: serve an agent's memory to other programs."""

from __future__ import annotations

from contextlib import ExitStack

import click

from agents.cli.common import DONE, Shared, agent_name, common
from pager.clock import SystemClock
from pager.errors import RejectedError
from pager.memory import Memory
from pager.reader import MemoryReader


@click.command("mcp")
@agent_name
@click.option("--write", is_flag=True, help="Let clients change the memory, too. The agent must not be running.")
@click.option("--http", "port", type=click.IntRange(0, 65535), help="Serve http://127.0.0.1:PORT/mcp instead of stdio.")
@common
@click.pass_obj
def mcp_command(shared: Shared, name: str, write: bool, port: int | None) -> int:
    """Serve the memory of the agent NAME to an MCP client: search, pages and core blocks.

    A client starts `selfpager mcp NAME` itself and talks to it over stdio. The agent may be running; with --write,
    which offers everything that the agent itself can do, it must not be.
    """
    from agents.config import embedders
    from agents.mcp import client

    try:
        from agents.mcp import server
    except ImportError:
        raise RejectedError(client.MISSING) from None
    name, directory = shared.existing(name)
    embedder, clock = embedders.stored(directory), SystemClock()
    with ExitStack() as stack:
        if write:
            memory = stack.enter_context(Memory.open(directory, embedder=embedder, clock=clock))
            tools = server.writing_tools(memory, clock)
        else:
            reader = stack.enter_context(MemoryReader.open(directory, embedder=embedder, clock=clock))
            tools = server.reading_tools(reader, clock)
        if port is None:
            server.serve_stdio(name, tools)
        else:
            on_ready = f"{name} is served at {{}} until Ctrl-C."
            server.serve_http(name, tools, port, lambda address: click.echo(on_ready.format(address), err=True))
    return DONE
