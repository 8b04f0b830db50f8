"""`forget`: end a fact, or take back what came from a source, with all that was written after it had been read."""

from collections.abc import Iterator
from dataclasses import asdict

import click

from agents.cli.common import FAILED, Shared, agent_name, command, json_option
from agents.cli.terminal import as_json
from agents.cli.visible import say
from pager.errors import NotFoundError
from pager.types import SourceForgotten

PENDING = "sent to {}, which is running and does it at its next step."
DESCRIPTIONS = {  # field of SourceForgotten -> the sentence before its ids
    "facts": "ended, for no other source says it",
    "left": "stays, for another source says it",
    "restored": "is true again, as a new fact",
    "blocks": "core block that goes back to an earlier version",
    "lines": "line that goes with it",
    "pins": "unpinned",
    "steps": "step in the prompt that holds something of it; it leaves once it is answered (purge removes its text)",
}


@command("forget")
@agent_name
@click.argument("page_id", metavar="[ID]", required=False)
@click.option("--reason", default="a person asked for it", help="Why the fact ID is forgotten, for the ledger.")
@click.option("--source", metavar="SOURCE", help="Such as web:example.org, or web for all of the web.")
@click.option("--since", metavar="TIME", help="With --source: only what was stored from this day or time on.")
@click.option("--dry-run", is_flag=True, help="With --source: change nothing, print what would be done.")
@json_option("Print the result as JSON.")
def forget_command(
    shared: Shared, name: str, page_id: str | None, reason: str, source: str | None, since: str | None, dry_run: bool,
    as_line: bool,
) -> int | None:  # fmt: skip
    """End the fact ID (f12) of the agent NAME, or with --source all that came from there and what was made of it.

    With --source, facts with another source stay, what an ended fact had superseded is true again, and core blocks go
    back to their last version without the source. Everything ended stays findable by date; `purge` destroys a text.
    The agent may be running.
    """
    if bool(page_id) == bool(source):
        raise click.UsageError("give the id of a fact (selfpager facts NAME lists them), or --source.")
    if page_id and (since or dry_run):
        raise click.UsageError("--since and --dry-run are for --source; leave them out with an id.")
    name, _ = shared.existing(name)
    if source:
        return _forget_source(shared, name, source, since, dry_run=dry_run, as_line=as_line)
    with shared.home.read(name) as reader:
        try:
            fact = reader.fact(page_id or "")
        except NotFoundError:
            ways = f"  {shared.command('facts', name)}\n  {shared.command('facts', name, '--kind', 'all')}"
            raise NotFoundError(f"{name} has no fact {page_id}. These list facts with their ids:\n{ways}") from None
    outcome = shared.home.send(name, "forget", {"page_id": fact.id, "reason": reason})
    if as_line:
        error = {"error": outcome.text} if outcome.text else {}
        say(as_json({"agent": name, "state": outcome.state, "fact": fact.id, **error}))
    else:
        ended = {"done": f"{fact.id} is forgotten: {fact.text}", "refused": f"{name} refused it: {outcome.text}"}
        say(ended.get(outcome.state, PENDING.format(name)), err=outcome.state == "refused")
    return FAILED if outcome.state == "refused" else None


def _forget_source(
    shared: Shared, name: str, source: str, since: str | None, *, dry_run: bool, as_line: bool
) -> int | None:
    with shared.home.read(name) as reader:
        found = reader.inspect.of_source(source, since=since)
    state, text = "dry run", ""
    if not dry_run:
        given = {"source": found.source, **({"since": since} if since else {})}
        outcome = shared.home.send(name, "forget_source", given)
        state, text = outcome.state, outcome.text
    if as_line:
        say(as_json({"agent": name, "state": state, **asdict(found), **({"error": text} if text else {})}))
    else:
        for line in _lines(found):
            say(line)
        say(_ending(name, found, state, text), err=state == "refused")
    return FAILED if state == "refused" else None


def _lines(found: SourceForgotten) -> Iterator[str]:
    for field, words in DESCRIPTIONS.items():
        yield from (f"{each}: {words}" for each in getattr(found, field))


def _ending(name: str, found: SourceForgotten, state: str, text: str) -> str:
    if state == "refused":
        return f"{name} refused it: {text}"
    if state == "pending":
        return PENDING.format(name)
    if not any((found.facts, found.left, found.restored, found.blocks, found.pins)):
        where = " but these steps" if found.steps else ""
        return f"{name} holds nothing of {found.source}{where}."
    return "nothing was changed (--dry-run)." if state == "dry run" else f"{found.source} is forgotten."
