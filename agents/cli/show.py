"""`show`, `trace`, `search`, `view`, `mcp`: what an agent remembers, for people and for other programs."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

import click

from agents.cli.common import PORT, AgentName, Shared, agent_name, command, config_option, json_option
from agents.cli.listing import line_of_hit, print_agents
from agents.cli.terminal import as_json
from agents.cli.visible import say, visible
from agents.explain.json_form import to_json
from agents.explain.snapshot import take
from pager.clock import SystemClock
from pager.errors import RejectedError, StorageError
from pager.home import Place
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.types import Hit

POLL_SECONDS = 0.5
TOKEN_VARIABLE = "SELFPAGER_MCP_TOKEN"
PAGES_HELP = "Show at most N pages that hold it, and N searches for it. Default: 5."
AT_HELP = "Show the request that this step answered, such as s45, or the next one that was answered after it."


@command("show")
@click.argument("name", type=AgentName(), required=False)
@click.option("--at", "step", metavar="STEP", help=AT_HELP)
@click.option("--watch", is_flag=True, help="Show every change until Ctrl-C.")
@json_option("Print a line of JSON; with --watch a line for each change.")
def show_command(shared: Shared, name: str | None, step: str | None, watch: bool, as_line: bool) -> None:
    """Show what the agent NAME has in its prompt, and what it remembers. Without NAME list all agents.

    The bar is its window: the tokens of each part, and the thresholds where the agent gets a notice, where its oldest
    steps leave, and down to where.
    """
    if step and watch:
        raise click.UsageError("--at shows a moment that no longer changes; leave out --watch.")
    if not (name or shared.as_name):
        if step or watch:
            raise click.UsageError("--at and --watch show one agent; name it.")
        print_agents(shared.home, as_line=as_line)
        return
    name, place = shared.existing(name or "")
    with MemoryReader.open(place) as reader:
        step = reader.inspect.reply_for(step) if step else None
        if as_line:
            show = lambda: say(as_json({"agent": name, **to_json(take(reader, step))}))  # noqa: E731
            follow(reader, show) if watch else show()
        else:
            _draw(name, reader, step, watch=watch)


def follow(reader: MemoryReader, show: Callable[[], object]) -> None:
    """Call `show` now and after every commit of another process, until Ctrl-C."""
    stop, shown = Event(), None
    with suppress(KeyboardInterrupt):
        while not stop.is_set():
            revision = reader.revision()  # read first: what is committed meanwhile is shown the next time
            if revision != shown:
                show()
                shown = revision
            stop.wait(POLL_SECONDS)


def _draw(name: str, reader: MemoryReader, step: str | None, *, watch: bool) -> None:
    """Draw once, or follow on the whole screen. Without a terminal, drawings follow each other."""
    from rich.console import Console
    from rich.live import Live

    from agents.cli.drawing import Drawing

    console = Console()
    drawing = Drawing(console, brief=watch and console.is_terminal)

    def draw():
        return drawing.whole(name, take(reader, step))

    if not watch:
        console.print(draw())
    elif not console.is_terminal:
        follow(reader, lambda: console.print(draw(), ""))
    else:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            follow(reader, lambda: live.update(draw(), refresh=True))


@command("trace")
@agent_name
@click.argument("text")
@click.option("--at", "step", metavar="STEP", help="Answer for the request that this step answered, such as s45.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 100), default=5, help=PAGES_HELP)
@json_option("Print it as a line of JSON.")
def trace_command(shared: Shared, name: str, text: str, step: str | None, limit: int, as_line: bool) -> None:
    """Show if the agent NAME sees TEXT, and if not, why.

    TEXT is a piece of what was said or stored, in any case, or the id of a page: s45, f12, x3, k1. The agent may
    be running. The answer comes first, for now or for --at STEP. Then come the pages that hold the text, those in
    the prompt and the newest first, each with its life; then the newest searches for it.
    """
    from agents.explain.trace import trace

    name, place = shared.existing(name)
    with MemoryReader.open(place) as reader:
        found = trace(reader, text, step, limit=limit)
    if as_line:
        say(as_json({"agent": name, **to_json(found)}))
    else:
        from rich.console import Console

        from agents.cli.drawing import drawn_trace

        Console().print(drawn_trace(found))


@command("search")
@agent_name
@click.argument("text")
@click.option("--limit", metavar="N", type=click.IntRange(1, 100), default=10, help="Show at most N. Default: 10.")
@config_option
@json_option("Print it as a line of JSON.")
def search_command(shared: Shared, name: str, text: str, limit: int, file: Path | None, as_line: bool) -> None:
    """Show what the agent NAME would find for TEXT, best first: facts and what was said. It may be running.

    With its file (--config), also what it would find in the memories that the file mounts.
    """
    from agents.config import embedders

    name, place = shared.existing(name)
    with MemoryReader.open(place, **embedders.for_command(place, file)) as reader:
        hits = reader.search(text, limit=limit)
    if file is not None:
        hits = sorted([*hits, *_shared_hits(file, place, text, limit)], key=lambda hit: -hit.score)[:limit]
    if as_line:
        say(as_json({"agent": name, "hits": to_json(hits)}))
        return
    for hit in hits:
        say(visible(line_of_hit(hit)))
    if not hits:
        say(f"{name} would find nothing for this.")


def _shared_hits(file: Path, place: Place, text: str, limit: int) -> Iterator[Hit]:
    """Yield the facts that are found in the memories which an agent's file mounts."""
    from agents.assembly import mounts_of
    from agents.config import embedders
    from agents.config.agent_config import load

    for mount in mounts_of(load(file, os.environ), place):
        if mount.archive and mount.place.exists():
            try:
                with MemoryReader.open(mount.place, **embedders.for_command(mount.place, None)) as reader:
                    hits = reader.search_archive(text, limit=limit)
            except StorageError as error:  # the agent would go on without it, too
                say(f"{mount.name} was not searched: {error}", err=True)
                continue
            yield from (replace(hit, page_id=f"{mount.name}/{hit.page_id}") for hit in hits)


@command("view")
@click.argument("name", type=AgentName(), required=False)
@click.option("--port", metavar="PORT", type=PORT, default=0, help="The port to listen on. Default: any free one.")
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@json_option("Print the address as a line of JSON.")
def view_command(shared: Shared, name: str | None, port: int, read_only: bool, no_browser: bool, as_line: bool) -> None:
    """Show what the agents of this home remember, and why a text left the prompt: live, in a browser.

    It opens on the agent NAME, or on the list of all agents. Agents may be running. Only this machine can reach the
    page, and whoever has its address can read and change memories: keep it secret. If no page appears, open the
    printed address; some browsers may not read the file that leads to it. Ctrl-C ends it.
    """
    from agents.view.readers import Readers
    from agents.view.serving import ViewServer

    name = shared.as_name or name
    if name:
        shared.existing(name)
    server = ViewServer(Readers(shared.home), port=port, read_only=read_only)
    with server, suppress(KeyboardInterrupt):
        address = server.address + (f"#{name}" if name else "")
        say(as_json({"address": address}) if as_line else f"{address}\nCtrl-C ends it.")
        if not no_browser:
            from agents.view.opening import open_in_browser

            open_in_browser(server, address)
        Event().wait()


@command("mcp")
@agent_name
@click.option("--write", is_flag=True, help="Let clients change the memory, too. The agent must not be running.")
@click.option("--http", "port", metavar="PORT", type=PORT, help="Serve http://127.0.0.1:PORT/mcp instead of stdio.")
@config_option
def mcp_command(shared: Shared, name: str, write: bool, port: int | None, file: Path | None) -> None:
    """Serve the memory of the agent NAME to an MCP client: search, pages and core blocks.

    A client starts `selfpager mcp NAME` itself and talks to it over stdio. The agent may be running; with --write,
    which offers everything that the agent itself can do, it must not be.

    With --http, clients send the header "Authorization: Bearer TOKEN". The token is that of SELFPAGER_MCP_TOKEN, which
    a client's settings can hold; without the variable it is a new one, and printed.
    """
    from agents.config import embedders
    from agents.mcp import client

    try:
        from agents.mcp import server
    except ImportError:
        raise RejectedError(client.MISSING) from None
    name, place = shared.existing(name)
    kind, clock = Memory if write else MemoryReader, SystemClock()
    with kind.open(place, **embedders.for_command(place, file), clock=clock) as memory:
        tools = server.memory_tools(memory, clock)
        if port is None:
            server.serve_stdio(name, tools)
        else:
            fixed = os.environ.get(TOKEN_VARIABLE)
            token = fixed or secrets.token_urlsafe(18)
            which = f"the token in {TOKEN_VARIABLE}" if fixed else token
            on_ready = f"{name} is served at {{}} until Ctrl-C.\nClients send the header: Authorization: Bearer {which}"
            server.serve_http(name, tools, port, token, lambda address: say(on_ready.format(address), err=True))
