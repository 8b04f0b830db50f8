"""`serve`: agents over HTTP, and the work that goes on without a request."""

import os
import secrets
import signal
import sys
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import click

from agents.cli.common import DONE, PATH, PORT, Shared, command, json_option
from agents.cli.terminal import as_json
from agents.cli.visible import say
from pager.home import ADDRESSES
from pager.safety.redaction import redacted

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class WorkerUrl(click.types.StringParamType):
    """Where other workers reach this one: to it the path of a request is added."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: D102 - of click
        url = str(value)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or "@" in parts.netloc:
            self.fail(f"{redacted(url)!r} is not one; give an address such as http://10.0.0.7:8300.", param, ctx)
        return url


@command("serve", as_name=None)
@click.argument("files", metavar="[AGENT.yaml]...", nargs=-1, type=PATH)
@click.option("--host", default="127.0.0.1", help="The address to listen on. Default: 127.0.0.1, this machine only.")
@click.option("--port", metavar="PORT", type=PORT, default=8300, help="The port to listen on. Default: 8300; 0: any.")
@click.option(
    "--advertise", metavar="URL", type=WorkerUrl(), help="Where other workers on this Postgres reach this one."
)
@click.option("--threads", type=click.IntRange(1, 1000), default=16, help="How many turns run at once. Default: 16.")
@click.option("--open", "open_agents", type=click.IntRange(1), default=100, help="Agents that stay open. Default: 100.")
@click.option("--line", type=click.IntRange(1), default=8, help="How many requests wait for one agent. Default: 8.")
@click.option("--whole-line", type=click.IntRange(1), default=256, help="The same for all agents. Default: 256.")
@click.option("--grace", type=click.FloatRange(0), default=20.0, help="Seconds for turns to end in. Default: 20.")
@json_option("Print the address as a line of JSON.")
def serve_command(
    shared: Shared, files: tuple[Path, ...], host: str, port: int, advertise: str | None, threads: int,
    open_agents: int, line: int, whole_line: int, grace: float, as_line: bool,
) -> int:  # fmt: skip
    """Serve the agents of this home over HTTP: turns, tasks, their memory, and the debug view at /view.

    Each AGENT.yaml is a configuration, by its name. POST /v1/agents {"id": "mine", "config": "assistant"} makes an
    agent of one; POST /v1/agents/mine/turns {"text": "hello"} talks to it. /docs lists all requests.

    On a home in Postgres any number of workers can run, on any number of machines: each with its own --advertise, by
    which the others pass requests on for the agents that it has open. They share the keys, and a secret of the home
    (or SELFPAGER_WORKER_KEY).

    Without a key (`selfpager keys add`), only this machine is served, with a token that is printed. What was left open
    goes on. The first Ctrl-C, or SIGTERM, lets turns end for a while, a second one ends at once; the rest is resumed at
    the next start.
    """
    from agents.httpd import HttpServer
    from agents.serve.app import make_app
    from agents.serve.limits import ServeLimits, allow_files
    from agents.serve.server import Server

    limits = ServeLimits(
        open_agents=open_agents, threads=threads, line=line, whole_line=whole_line, grace_seconds=grace
    )
    allow_files(open_agents)
    token = secrets.token_urlsafe(24)
    server = Server(shared.home, files, limits=limits)
    if server.keys.is_any_valid:
        token = ""
    elif host not in LOOPBACK:
        text = f"this home has no key, so only this machine can be served, not {host}"
        raise click.UsageError(f"{text}; make one first: {shared.command('keys', 'add', 'NAME')}")
    else:
        server.let_in(token)
    if advertise:
        if not shared.home.address.startswith(ADDRESSES):
            raise click.UsageError("--advertise is for several workers on a home in Postgres; a directory has one.")
        server.advertise(advertise)
    stopping = Event()

    _stop_on_signals(stopping)
    handler = server.log.adopt()
    http = HttpServer(make_app(server), host=host, port=port)
    try:
        server.start()
        http.start()
        _announce(http.url, token, as_line=as_line)
        stopping.wait()
    finally:
        server.log.write("stopping")
        is_clean = server.close()
        http.close()
        server.log.remove(handler)
    if not is_clean:  # a tool does not come back: what it was called for is on disk, and Python would wait for it
        sys.stdout.flush()
        os._exit(DONE)
    return DONE


def _stop_on_signals(stopping: Event) -> None:
    def stop(number: int, _: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)  # a second one ends at once: what was acknowledged is on disk

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)


def _announce(url: str, token: str, *, as_line: bool) -> None:
    if as_line:
        say(as_json({"address": url, "token": token or None}))
        return
    say(url)
    if token:
        say(f"There is no key yet. Until there is one, send the header: Authorization: Bearer {token}", err=True)
