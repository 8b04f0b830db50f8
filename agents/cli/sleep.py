"""`sleep`: tidy a memory. See what is proposed, apply or refuse it, and take it back."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from agents.agent import Agent
from agents.cli.common import FAILED, Shared, agent_name, command, config_option, json_option
from agents.cli.terminal import as_json
from agents.cli.visible import say, visible
from agents.config import embedders
from agents.config.agent_config import load
from pager import NotFoundError, one_line
from pager.home import Place
from pager.sleep import Edit, Proposal
from pager.types import Json

PENDING = "sent to {}, which is running and does it at its next step."
NOTHING = "nothing has come since the last sleep."
COMMANDS = {"apply": "sleep_apply", "refuse": "sleep_refuse", "undo": "sleep_undo"}


@command("sleep")
@agent_name
@click.argument("number", metavar="[N]", type=click.IntRange(1), required=False)
@click.option("--show", "action", flag_value="show", help="Show a proposal, edit by edit.")
@click.option("--apply", "action", flag_value="apply", help="Apply the open edits of a proposal.")
@click.option("--refuse", "action", flag_value="refuse", help="Refuse the open edits: they are not proposed again.")
@click.option("--undo", "action", flag_value="undo", help="Take back what a sleep has changed.")
@click.option("--edit", "edits", metavar="ID", multiple=True, type=int, help="With --apply or --refuse: only this one.")
@config_option
@json_option("Print the result as JSON.")
def sleep_command(
    shared: Shared, name: str, number: int | None, action: str | None, edits: Sequence[int], file: Path | None,
    as_line: bool,
) -> int | None:  # fmt: skip
    """Let the agent NAME sleep, or decide what came of sleep N (without N: the newest).

    Without --config no model is asked: repeats, what has run out, keys that mean the same and full blocks are found all
    the same. With the agent's file its model reads what has left the window, too. Nothing changes before --apply,
    and --undo takes that back.
    """
    if edits and action not in ("apply", "refuse"):
        raise click.UsageError("--edit is for --apply and --refuse.")
    if action is None and number is not None:
        raise click.UsageError("with a number say what to do: --show, --apply, --refuse or --undo.")
    name, place = shared.existing(name)
    if action is None:
        with shared.or_over_http(name, "POST", "/sleeps"):
            proposal = _sleep(shared, name, place, file)
        if as_line:
            say(as_json({"agent": name, "sleep": proposal}))
        elif proposal is None:
            say(NOTHING)
        else:
            _print(proposal)
            say(line_of_sleep(proposal, name))
        return None
    number = number or _newest(shared, name, action)
    state, text = "done", ""
    if action in COMMANDS:
        given: Json = {"sleep": str(number), **({"edits": [str(each) for each in edits]} if edits else {})}
        outcome = shared.home.send(name, COMMANDS[action], given)
        state, text = outcome.state, outcome.text
    with shared.home.read(name) as reader:
        proposal = reader.sleeps.proposal(number)
    if as_line:
        say(as_json({"agent": name, "state": state, "sleep": proposal, **({"error": text} if text else {})}))
    elif state == "done":
        _print(proposal)
    else:
        say(f"{name} refused it: {text}" if state == "refused" else PENDING.format(name), err=state == "refused")
    return FAILED if state == "refused" else None


def _sleep(shared: Shared, name: str, place: Place, file: Path | None) -> Proposal | None:
    if file is not None:
        as_name = name if name != load(file, os.environ).name else None
        with Agent.load(file, home=shared.home_address, as_name=as_name) as agent:
            return agent.sleep()
    with shared.home.read(name) as reader:
        limits = reader.limits
    with shared.home.open(name, limits=limits, **embedders.for_command(place, None)) as memory:
        return memory.sleeps.propose()


def _newest(shared: Shared, name: str, action: str) -> int:
    """Return the newest proposal that an action is about."""
    with shared.home.read(name) as reader:
        for proposal in reader.sleeps.proposals():
            wanted = {
                "apply": proposal.count("open"),
                "refuse": proposal.count("open"),
                "undo": proposal.count("applied"),
            }
            if wanted.get(action, 1):
                return proposal.number
    what = {"undo": "of which anything is applied"}.get(action, "with open edits" if action != "show" else "")
    raise NotFoundError(f"{name} has no sleep {what}".rstrip() + f". Make one with: selfpager sleep {name}")


def line_of_sleep(proposal: Proposal, name: str) -> str:
    """Return what came of a sleep in a line, and what to do."""
    applied, still = proposal.count("applied"), proposal.count("open")
    done = f"{applied} edits are applied (selfpager sleep {name} {proposal.number} --undo)" if applied else ""
    left = f"{still} are proposed (selfpager sleep {name} {proposal.number} --show, --apply)" if still else ""
    return f"sleep {proposal.number}: {'; '.join(filter(None, (done, left))) or 'nothing is proposed'}"


def _print(proposal: Proposal) -> None:
    at = proposal.at.strftime("%Y-%m-%d %H:%M")
    say(f"sleep {proposal.number}, {at}" + ("" if proposal.finished else ", interrupted"), bold=True)
    for edit in proposal.edits:
        for line in _lines(edit):
            say(visible(line))
    detail = proposal.detail
    if detail.get("requests"):
        cost = f"${detail['usd']:.4f}" if detail.get("usd") else "no prices"
        say(f"{detail['requests']} requests to {detail.get('model')}, {detail['tokens']:,} tokens, {cost}")
    for why, count in detail.get("dropped", {}).items():
        say(visible(f"{count} dropped: {why}"))
    for failure in detail.get("failures", ()):
        say(visible(f"the model failed: {failure}"))
    for full in detail.get("full_blocks", ()):
        say(visible(f"a full block of core: {full} tokens"))


def _lines(edit: Edit) -> list[str]:
    """Return an edit as a person reads it: what goes, what comes, and from where."""
    state = edit.state + (f" ({edit.why})" if edit.why else "")
    lines = [f"  {edit.number}  {edit.kind}: {edit.reason}  [{state}]"]
    if edit.block is not None:
        before, value = edit.before[0] if edit.before else "", edit.value or ""
        lines += [f"      - {line}" for line in before.splitlines() if line not in value.splitlines()]
        lines += [f"      + {line}" for line in value.splitlines() if line not in before.splitlines()]
    else:
        lines += [f"      - {page} {one_line(text)}" for page, text in zip(edit.pages, edit.before, strict=True)]
    for fact in edit.after:
        about = f" (key {fact.key})" if fact.key else ""
        lines.append(f"      + {one_line(fact.text)}{about}")
    lines += [f"        {quote.step}: “{one_line(quote.text)}”" for quote in edit.quotes if quote.text]
    if edit.sources:
        lines.append(f"        from {'; '.join(dict.fromkeys(map(str, edit.sources)))}")
    if edit.asks and edit.state == "open":
        lines.append(f"        a person decides: {edit.asks}")
    return lines
