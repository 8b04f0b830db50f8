"""`mcp`: an agent's memory for other programs."""

from __future__ import annotations

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from pager.clock import SystemClock
from pager.errors import RejectedError
from pager.memory import Memory
from pager.reader import MemoryReader


@click.command("mcp", short_help="Serve an agent's memory to any MCP client.")
@click.argument("name", type=AgentName())
@click.option("--write", is_flag=True, help="Let clients change it, too. The agent must not be running.")
@click.option("--http", "port", type=click.IntRange(0, 65535), help="Serve http://127.0.0.1:PORT/mcp instead of stdio.")
@common
@click.pass_obj
def mcp_command(shared: Shared, name: str, write: bool, port: int | None) -> int:
    """Serve the memory of the agent NAME: search, pages and core; with --write all that the agent itself can do.

    A client starts it by itself, with the command `selfpager mcp NAME`. MemoryReader goes beside the running agent.
    """
    from agents.config import embedders
    from agents.mcp import client as mcp_client
    from agents.mcp import served_memory

    name, directory = shared.existing(name)
    embedder = embedders.stored(directory)
    try:
        from agents.mcp import server as mcp_server
    except ImportError:
        raise RejectedError(mcp_client.MISSING) from None
    clock = SystemClock()
    opened = Memory.open(directory, embedder=embedder) if write else MemoryReader.open(directory, embedder=embedder)
    with opened as memory:
        tools = served_memory.tools(memory, clock)
        if port is None:
            mcp_server.serve_stdio(name, tools)
        else:
            said = f"{name} is served at {{}} until Ctrl-C."
            mcp_server.serve_http(name, tools, port, lambda address: click.echo(said.format(address), err=True))
    return DONE
