"""`selfpager view [NAME]`: the debug view in a browser."""

from __future__ import annotations

from contextlib import suppress
from threading import Event

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.completion import AgentName
from agents.cli.terminal import as_json


@click.command("view", short_help="The debug view in a browser.")
@click.argument("name", type=AgentName(), required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on. Default: any free one.")
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--json", "as_line", is_flag=True, help="Print the address as a line of JSON.")
@common
@click.pass_obj
def view_command(shared: Shared, name: str | None, port: int, read_only: bool, no_browser: bool, as_line: bool) -> int:
    """Show what the agents of this home remember, and why they forgot: live, in a browser.

    It opens on the agent NAME, or on the first one. Agents may be running. Only this machine can reach the page, and
    whoever has its address can read and change memories: keep it secret. Ctrl-C ends it.
    """
    from agents.view.readers import Readers
    from agents.view.serving import ViewServer

    name = shared.as_name or name
    if name:
        shared.existing(name)
    try:
        server = ViewServer(Readers(shared.home), port=port, read_only=read_only)
    except OSError as error:
        raise click.UsageError(
            f"port {port} cannot be used ({error.strerror}); give another one, or none for any free port."
        ) from None
    with server, suppress(KeyboardInterrupt):
        address = server.address + (f"#{name}" if name else "")
        click.echo(as_json({"address": address}) if as_line else f"{address}\nCtrl-C ends it.")
        if not no_browser:
            import webbrowser

            webbrowser.open(address)
        Event().wait()
    return DONE
