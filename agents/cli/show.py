"""`selfpager show NAME`: the window, the tiers and the last movements of an agent, now, then, or live."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json
from agents.explain import snapshot
from agents.explain.trace import answering
from pager.reader import MemoryReader

LOOK_SECONDS = 0.5


@click.command("show", short_help="The tiers of an agent in the terminal.")
@click.argument("name", type=AgentName())
@click.option(
    "--at",
    "step",
    metavar="STEP",
    help="As it was in the request that this step answered, such as s45; any other stands for the next that did.",
)
@click.option("--watch", is_flag=True, help="Go on and show every change; Ctrl-C ends it.")
@click.option(
    "--json", "as_line", is_flag=True, help="Print it as a line of JSON; with --watch a line for each change."
)
@common
@click.pass_obj
def show_command(shared: Shared, name: str, step: str | None, watch: bool, as_line: bool) -> int:
    """What the agent NAME has in view, and what it remembers. It may be running.

    The bar is its window: what each part takes of it, and where the agent is told that it fills, where its oldest
    steps leave, and down to where.
    """
    if step and watch:
        raise click.UsageError("--at shows a moment that does not change any more; leave out --watch.")
    name, directory = shared.existing(name)
    with MemoryReader.open(directory) as reading:
        step = answering(reading, step) if step else None
        if as_line:
            show = _lines(name, reading, step)
        elif watch:
            return _live(name, reading)
        else:
            show = _drawn(name, reading, step)
        follow(reading, show, Event()) if watch else show()
    return DONE


def follow(reading: MemoryReader, show: Callable[[], None], stop: Event) -> None:
    """Show, and show again whenever another process has committed something, until `stop` or Ctrl-C."""
    seen: int | None = None
    with suppress(KeyboardInterrupt):  # which is how a person ends it
        while not stop.is_set():
            revision = reading.revision()  # before looking: what is committed meanwhile is shown the next time
            if revision != seen:
                show()
                seen = revision
            stop.wait(LOOK_SECONDS)


def _lines(name: str, reading: MemoryReader, step: str | None) -> Callable[[], None]:
    return lambda: click.echo(as_json({"agent": name, **snapshot.as_data(snapshot.take(reading, step))}))


def _drawn(name: str, reading: MemoryReader, step: str | None) -> Callable[[], None]:
    from rich.console import Console

    from agents.cli.drawing import Drawing

    console = Console()
    drawing = Drawing(console)
    return lambda: console.print(drawing.whole(name, snapshot.take(reading, step)))


def _live(name: str, reading: MemoryReader) -> int:
    """The whole screen where there is one; else one drawing after the other."""
    from rich.console import Console
    from rich.live import Live

    from agents.cli.drawing import Drawing

    console = Console()
    drawing = Drawing(console, brief=console.is_terminal)

    def draw():
        return drawing.whole(name, snapshot.take(reading))

    if not console.is_terminal:
        follow(reading, lambda: console.print(draw(), ""), Event())
        return DONE
    with Live(console=console, screen=True, auto_refresh=False) as live:
        follow(reading, lambda: live.update(draw(), refresh=True), Event())
    return DONE
