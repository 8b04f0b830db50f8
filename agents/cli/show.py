"""`selfpager show NAME`: the window, the tiers and the last movements of an agent, now, then, or live."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json
from agents.explain.json_form import to_json
from agents.explain.snapshot import take
from pager.reader import MemoryReader

POLL_SECONDS = 0.5


@click.command("show", short_help="The tiers of an agent in the terminal.")
@click.argument("name", type=AgentName())
@click.option(
    "--at",
    "step",
    metavar="STEP",
    help="Show the request that this step answered, such as s45, or the next one that was answered after it.",
)
@click.option("--watch", is_flag=True, help="Show every change until Ctrl-C.")
@click.option("--json", "as_line", is_flag=True, help="Print a line of JSON; with --watch a line for each change.")
@common
@click.pass_obj
def show_command(shared: Shared, name: str, step: str | None, watch: bool, as_line: bool) -> int:
    """Show what the agent NAME has in its prompt, and what it remembers. It may be running.

    The bar is its window: the tokens of each part, and the thresholds where the agent gets a notice, where its oldest
    steps leave, and down to where.
    """
    if step and watch:
        raise click.UsageError("--at shows a moment that no longer changes; leave out --watch.")
    name, directory = shared.existing(name)
    with MemoryReader.open(directory) as reader:
        step = reader.inspect.reply_for(step) if step else None
        if as_line:
            show = lambda: click.echo(as_json({"agent": name, **to_json(take(reader, step))}))  # noqa: E731
            follow(reader, show) if watch else show()
        else:
            _draw(name, reader, step, watch=watch)
    return DONE


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
