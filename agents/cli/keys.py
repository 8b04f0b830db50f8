"""`keys`: make, list and end the keys of the HTTP API."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from agents.cli.common import HOME_HELP, Shared, command, json_option, shared_options
from agents.cli.terminal import as_json
from agents.cli.visible import say, visible
from pager.clock import SystemClock
from pager.types import Json

if TYPE_CHECKING:
    from agents.serve.keys import Key, Keys, Scope

SCOPES = ("read", "write", "admin")


@click.group("keys")
def keys_command() -> None:
    """Make, list and end keys of the HTTP API that `selfpager serve` offers for the agents of this home.

    A key is shown once, when it is made: the home keeps only what it is recognized by. A running server knows new keys,
    and those that were revoked, within a second.
    """


@command("add", as_name=None)
@click.argument("name")
@click.option("--tenant", default="", help="Whose agents it is for. Default: those without a tenant, which are yours.")
@click.option("--scope", type=click.Choice(SCOPES), default="write", help="What it may do. Default: write.")
@click.option("--days", type=click.IntRange(1, 36500), help="For how many days it is valid. Default: for good.")
@json_option("Print it as a line of JSON.")
def add_command(shared: Shared, name: str, tenant: str, scope: "Scope", days: int | None, as_line: bool) -> None:
    """Make a key, called NAME, and print it. It cannot be shown again.

    read: see what agents remember; write: talk to them and edit, too; admin: make and remove agents, too.
    """
    key, text = _keys(shared).add(name, tenant, scope, timedelta(days=days) if days else None)
    if as_line:
        say(as_json({**_shown(key), "key": text}))
        return
    say(text)
    say(f"Store it now: it is not shown again. `selfpager keys revoke {key.id}` ends it.", err=True)


@command("list", as_name=None)
@json_option("Print them as a line of JSON.")
def list_keys(shared: Shared, as_line: bool) -> None:
    """List the keys: id, name, tenant, scope, and until when they are valid."""
    keys = list(_keys(shared).all().values())
    if as_line:
        say(as_json({"keys": [_shown(key) for key in keys]}))
        return
    for key in keys:
        until = _shown(key)["state"] + (f" {key.expires[:10]}" if key.expires and not key.revoked else "")
        say(visible(f"{key.id}  {key.scope:5}  {key.tenant or '-':12}  {until:16}  {key.name}"))
    if not keys:
        say("there is no key; make one: selfpager keys add NAME")


@command("revoke", as_name=None)
@click.argument("key_id", metavar="ID")
def revoke_command(shared: Shared, key_id: str) -> None:
    """End the key of this ID, the first part behind `sp_`, at once."""
    key = _keys(shared).revoke(key_id)
    say(visible(f"{key.id} ({key.name}) is revoked."))


def _keys(shared: Shared) -> "Keys":
    from agents.serve.keys import Keys

    return Keys(shared.home, SystemClock())


def _shown(key: "Key") -> Json:
    """Return what may be seen of a key."""
    now: datetime = SystemClock().now()
    state = key.ended(now) or ("until" if key.expires else "valid")
    return {
        "id": key.id, "name": key.name, "tenant": key.tenant, "scope": key.scope, "state": state,
        "created": key.created, "expires": key.expires, "revoked": key.revoked,
    }  # fmt: skip


for each in (add_command, list_keys, revoke_command):
    keys_command.add_command(each)
keys_command.params += shared_options(HOME_HELP, None)
