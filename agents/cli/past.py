"""`restore`, `rekey`, `erase`: an agent as it was, the keys of encrypted agents, and the end of an agent."""

from datetime import datetime

import click

from agents.cli.common import FAILED, INTERRUPTED, Shared, agent_name, command, json_option
from agents.cli.terminal import as_json
from agents.cli.visible import confirm, say
from pager.clock import SystemClock, read_duration
from pager.errors import RejectedError


@command("restore", as_name="The name of the agent that is made. It must not be taken.")
@agent_name
@click.option("--at", metavar="TIME", required=True, help="Such as 2026-05-03T14:30+02:00, or 2h, 3d: so long ago.")
@json_option("Print the result as JSON.")
def restore_command(shared: Shared, name: str, at: str, as_line: bool) -> None:
    """Make another agent of the agent NAME as it was at a TIME, on a home in Postgres.

    NAME stays as it is and may be running. A time without a zone is in this machine's. The home keeps the last 7 days,
    or what `keep_days` in its address says. Memories of helpers are not restored.
    """
    if not shared.as_name:
        raise click.UsageError("give the agent that is made a name with --as.")
    shared.home.restore(name, _moment(at), into=shared.as_name)
    text = f"{shared.as_name} is {name} as it was at {at}."
    say(as_json({"restored": name, "at": at, "agent": shared.as_name}) if as_line else text)


def _moment(text: str) -> str | datetime:
    try:
        span = read_duration(text.removesuffix("ago").strip())
    except RejectedError:
        if text.endswith("ago"):
            raise
        return text
    return SystemClock().now() - span


@command("rekey", as_name=None)
@click.argument("name", metavar="[NAME]", required=False)
@json_option("Print the result as JSON.")
def rekey_command(shared: Shared, name: str | None, as_line: bool) -> None:
    """Change keys of encrypted agents, on a home in Postgres.

    Without NAME, wrap the key of every agent with the first master key: after that, earlier ones are not needed. Agents
    may be running.

    With NAME, encrypt this agent and its helpers with a new key, also one that was in clear until now. Its earlier
    states are dropped. It must not be running.

    The master keys are in the file that $SELFPAGER_MASTER_KEY_FILE names, or in $SELFPAGER_MASTER_KEY: 32 bytes in
    base64 each (openssl rand -base64 32), the newest first.
    """
    if name:
        with shared.or_over_http(name, "POST", "/rekey"):
            count = shared.home.change_key(name)
        text = f"{name} has a new key; {count} memor{'ies were' if count != 1 else 'y was'} encrypted with it."
        say(as_json({"rekeyed": name, "memories": count}) if as_line else text)
        return
    wrapped, total = shared.home.wrap_keys()
    text = f"{wrapped} of {total} keys were wrapped with the first master key; the others were already."
    say(as_json({"wrapped": wrapped, "keys": total}) if as_line else text)


@command("erase")
@agent_name
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option("Print the result as JSON; needs --yes.")
def erase_command(shared: Shared, name: str, yes: bool, as_line: bool) -> int | None:
    """Destroy the agent NAME with its helpers: everything it remembers and, if it is encrypted, its key.

    Without its key no copy of its rows can be read: docs/fleet.md says which copies of the key there may be. The agent
    must not be running.
    """
    if as_line and not yes:
        raise click.UsageError("--json cannot ask for confirmation; add --yes.")
    name, place = shared.existing(name)
    try:
        if not yes and not confirm(f"Destroy {place.name} for good, with everything it remembers?"):
            say("nothing was erased.", err=True)
            return FAILED
    except click.Abort:  # Ctrl-C, or the end of the input
        say("\nnothing was erased; --yes erases without asking.", err=True)
        return INTERRUPTED
    with shared.or_over_http(name, "DELETE"):
        shared.home.remove(name)
    say(as_json({"erased": name}) if as_line else f"{name} was erased.")
    return None
