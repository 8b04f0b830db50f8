"""`list` and `facts`: the agents of a home, and the facts of one, for people and for programs."""

from collections.abc import Sequence

import click

from agents.cli.common import Shared, agent_name, command, json_option
from agents.cli.terminal import as_json
from agents.cli.visible import counted, say, visible
from agents.explain.json_form import to_json
from agents.fleet import AgentOverview, overview
from pager import Fact, Hit, shortened
from pager.clock import format_minute
from pager.home import Home
from pager.safety.sources import label

NO_AGENT = "no agent is in {} yet; `selfpager init` writes a first one, and `selfpager chat` on it begins its memory."
TASK_CHARS = 40
AT_ONCE = 200  # agents in a list: of each its memory is opened
NARROWEST = 80  # columns of a terminal for a table
KINDS = ("current", "ended", "used", "unused", "all")


@command("list", as_name=None)
@click.option("--from", "begin", metavar="NAME", default="", help="Begin with this name, or the next one there is.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=AT_ONCE, help=f"Show at most N. Default: {AT_ONCE}."
)
@json_option("Print it as a line of JSON; `next` is the name that --from goes on with.")
def list_command(shared: Shared, begin: str, limit: int, as_line: bool) -> None:
    """List the agents of the home: what each is doing, how full its window is, what it knows and has cost."""
    print_agents(shared.home, begin=begin, limit=limit, as_line=as_line)


def print_agents(home: Home, *, begin: str = "", limit: int = AT_ONCE, as_line: bool) -> None:
    """Print agents of a home as a table, from a name on."""
    names = home.names(begin=begin, limit=limit + 1)
    agents, following = list(overview(home, names[:limit])), names[limit] if len(names) > limit else None
    if as_line:
        say(as_json({"home": home.address, "agents": to_json(agents), "next": following}))
        return
    if not agents:
        say(f"no agent's name is {begin} or behind it." if begin else NO_AGENT.format(home.address))
        return
    _print_table(agents)
    if following:
        say(visible(f"There are more; `selfpager list --from {following}` goes on."), err=True)


def _print_table(agents: Sequence[AgentOverview]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if console.width < NARROWEST:
        for agent in agents:
            console.print(Text(visible(f"{agent.name}: {_on_a_line(agent)}")))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading, justify in (
        ("agent", "left"), ("state", "left"), ("window", "right"), ("steps", "right"), ("facts", "right"),
        ("tokens", "right"), ("cost", "right"), ("last seen", "left"),
    ):  # fmt: skip
        table.add_column(heading, justify="left" if justify == "left" else "right", no_wrap=heading == "agent")
    for agent in agents:
        table.add_row(*(Text(visible(cell)) for cell in _cells(agent)))
    console.print(table)
    for agent in agents:
        if agent.error:
            say(visible(f"{agent.name}: {agent.error}"), err=True)


def _on_a_line(agent: AgentOverview) -> str:
    """Return all that a row of the table says but for the name."""
    if agent.state == "unreadable":
        return f"{agent.state}: {agent.error}"
    _, state, share, _, _, _, cost, seen = _cells(agent)
    window = [f"window {share}"] if share else []
    spent = [cost] if cost else []
    numbers = [counted(agent.steps, "step"), counted(agent.facts, "fact"), counted(agent.tokens, "token"), *spent]
    return " · ".join([state, *window, *numbers, f"last seen {seen}"])


def _cells(agent: AgentOverview) -> tuple[str, ...]:
    task = f": {shortened(agent.task, TASK_CHARS)}" if agent.task else ""
    if agent.state == "unreadable":
        return (agent.name, agent.state, "", "", "", "", "", "")
    share = "" if agent.window_share is None else f"{agent.window_share:.0%}"
    cost = "" if agent.usd is None else f"${agent.usd:.2f}"
    seen = format_minute(agent.last_at) if agent.last_at else "never"
    return (
        agent.name, agent.state + task, share, f"{agent.steps:,}", f"{agent.facts:,}", f"{agent.tokens:,}", cost, seen
    )  # fmt: skip


@command("facts")
@agent_name
@click.argument("text", required=False, default="")
@click.option("--kind", type=click.Choice(KINDS), default="current", help="Default: those that are true now.")
@click.option("--source", metavar="SOURCE", default="", help="Only what came from it, such as web:example.org.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 1000), default=50, help="Show at most N. Default: 50.")
@json_option("Print it as a line of JSON.")
def facts_command(shared: Shared, name: str, text: str, kind: str, source: str, limit: int, as_line: bool) -> None:
    """List the facts of the agent NAME, newest first, or those that contain TEXT. The agent may be running."""
    name, _ = shared.existing(name)
    with shared.home.read(name) as reader:
        found = reader.inspect.facts(kind, text=text, source=source, limit=limit)
    facts = [use.fact for use in found.rows]
    if as_line:
        say(as_json({"agent": name, "total": found.total, "facts": to_json(facts)}))
        return
    for fact in facts:
        say(visible(line_of(fact)))
    if found.total > len(facts):
        say(f"{found.total - len(facts)} more; --limit shows them.", err=True)
    elif not facts:
        say(f"{name}: {_nothing_found(kind, narrowed=bool(text or source))}")


def _nothing_found(kind: str, *, narrowed: bool) -> str:
    if narrowed:
        return "no such fact; `selfpager search` finds it in other words."
    return "no fact is true now; --kind all lists those that have ended, too." if kind == "current" else "no such fact."


def line_of(fact: Fact) -> str:
    """Return a fact as one line, which is not yet safe to print."""
    marks = "".join(f" #{tag}" for tag in fact.tags)
    key = f" {fact.key}:" if fact.key else ""
    via = f" (via {', '.join(fact.via)})" if fact.via else ""
    return f"{fact.id} {format_minute(fact.at)}{key} {' '.join(fact.text.split())}{marks}{via}"


def line_of_hit(hit: Hit) -> str:
    """Return what a search found as one line, which is not yet safe to print."""
    return f"{hit.page_id}{label(hit.via)} {format_minute(hit.at)} {hit.who}: {' '.join(hit.text.split())}"
