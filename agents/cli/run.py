"""`selfpager run AGENT.yaml "task"`: a long task with a progress line, that can be resumed after any end."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import click

from agents import history, tasks
from agents.agent import Agent
from agents.cli.common import FAILED, STOPPED, Shared, common
from agents.cli.completion import AgentFile
from agents.cli.terminal import Printer, progress, stopped_gently
from agents.events import Event, Replied, Stopped, ToolStarted
from agents.loop import Approve, Patience
from pager.types import Call

OUTAGE_SECONDS = 12 * 3600.0


@click.command("run", short_help="A long task with progress; --resume after any end.")
@click.argument("file", metavar="AGENT.yaml", type=AgentFile())
@click.argument("task", required=False)
@click.option("--resume", is_flag=True, help="Go on with the open task, however it ended.")
@click.option("--new", is_flag=True, help="Drop a task that is still open.")
@click.option("--approve/--deny", "approval", default=None, help="Answer the call that waits for approval.")
@click.option("--history", "history_file", type=click.Path(path_type=Path), help="Turns to remember, as JSON lines.")
@click.option("--json", "json_lines", is_flag=True, help="Print each event as a line of JSON.")
@common
@click.pass_obj
def run_command(
    shared: Shared,
    file: Path,
    task: str | None,
    resume: bool,
    new: bool,
    approval: bool | None,
    history_file: Path | None,
    json_lines: bool,
) -> int:
    """Work on TASK until it is done or a limit holds.

    Ctrl-C once stops at the step, twice at once; `--resume` goes on, also after a crash. `selfpager tell NAME "..."`
    reaches the running task at its next step.
    """
    if bool(task) == resume:
        raise click.UsageError("give the task as text, or --resume to go on with the open one.")
    printer = Printer(json_lines=json_lines)
    with Agent.load(
        file, home=shared.home, as_name=shared.as_name, approve=_answers(approval, printer),
        patience=Patience(total_seconds=OUTAGE_SECONDS), task=True,
    ) as agent:  # fmt: skip
        for remark in agent.remarks:
            printer.note(remark)
        if history_file:
            printer.note(f"{history.take(agent.memory, history_file)} turns were taken from {history_file}")
        runner = agent.tasks()
        if new:
            runner.drop()
        with stopped_gently(agent):
            stopped = printer.show(
                _with_progress(agent, printer, runner.resume() if resume else runner.start(task or ""))
            )
        return _report(stopped, agent, printer)


def _answers(approval: bool | None, printer: Printer) -> Approve:
    """`--approve` and `--deny` answer the one call that waits; later ones are asked at the terminal."""
    left = [approval] if approval is not None else []

    def answer(call: Call) -> bool | None:
        return left.pop() if left else printer.ask(call)

    return answer


def _with_progress(agent: Agent, printer: Printer, events: Generator[Event]) -> Generator[Event]:
    doing = "thinking"
    for event in events:
        if isinstance(event, ToolStarted):
            doing = event.name
        yield event
        if isinstance(event, Replied) and not printer.json_lines:
            meter = agent.meter
            printer.note(progress(event, steps=meter.steps, tokens=meter.tokens, usd=meter.usd, doing=doing))
            doing = "thinking"


def _report(stopped: Stopped, agent: Agent, printer: Printer) -> int:
    if not printer.json_lines:
        task = tasks.current(agent.memory)
        if stopped.reason == "done" and task:
            click.echo(f"done after {task.steps} steps: {task.summary}")
        elif stopped.reason == "approval":
            click.echo(f"{stopped.text} Answer with: selfpager run ... --resume --approve (or --deny)", err=True)
        else:
            click.echo(f"stopped ({stopped.reason}): {stopped.text}", err=True)
    # A task that stopped without being done has not failed, but it is not done either.
    return FAILED if stopped.reason == "answered" else STOPPED[stopped.reason]
