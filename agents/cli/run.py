"""`selfpager run AGENT.yaml "task"`: a long task with a progress line, that can be resumed after any end."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from agents import history, tasks
from agents.agent import Agent
from agents.cli.common import DONE, FAILED, INTERRUPTED, LIMIT, Shared, common
from agents.cli.completion import AgentFile
from agents.cli.terminal import Printer, ask_approval, progress
from agents.events import Event, Replied, Stopped, ToolStarted
from agents.loop import Patience
from pager.types import Call

OUTAGE_SECONDS = 12 * 3600.0
CODES = {"done": DONE, "steps": LIMIT, "usd": LIMIT, "minutes": LIMIT, "approval": LIMIT, "cancelled": INTERRUPTED}


@click.command("run", short_help="A long task with progress; --resume after any end.")
@click.argument("file", metavar="AGENT.yaml", type=AgentFile())
@click.argument("task", required=False)
@click.option("--resume", is_flag=True, help="Go on with the open task, however it ended.")
@click.option("--new", is_flag=True, help="Drop a task that is still open.")
@click.option("--approve/--deny", "approval", default=None, help="Answer the call that waits for approval.")
@click.option("--as", "as_name", metavar="NAME", help="Another instance of the same agent, with a memory of its own.")
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
    as_name: str | None,
    history_file: Path | None,
    json_lines: bool,
) -> int:
    """Work on TASK until it is done or a limit holds.

    Ctrl-C once stops at the step, twice at once; `--resume` goes on, also after a crash. `selfpager tell NAME "..."`
    reaches the running task at its next step.
    """
    if bool(task) == resume:
        raise click.UsageError("give the task as text, or --resume to go on with the open one.")
    answer = _answers(approval)
    printer = Printer(json_lines=json_lines)
    patience = Patience(total_seconds=OUTAGE_SECONDS)
    with Agent.load(file, home=shared.home, as_name=as_name, approve=answer, patience=patience, task=True) as agent:
        for remark in agent.remarks:
            printer.note(remark)
        if history_file:
            printer.note(f"{history.take(agent.memory, history_file)} turns were taken from {history_file}")
        runner = agent.tasks()
        if new:
            runner.drop()
        with _stopped_gently(agent):
            stopped = printer.show(
                _with_progress(agent, printer, runner.resume() if resume else runner.start(task or ""))
            )
        return _report(stopped, agent, printer)


def _answers(approval: bool | None):
    """`--approve` and `--deny` answer the one call that waits; later ones are asked at the terminal."""
    left = [approval] if approval is not None else []

    def answer(call: Call) -> bool | None:
        return left.pop() if left else ask_approval(call)

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


@contextmanager
def _stopped_gently(agent: Agent) -> Generator[None]:
    """The first Ctrl-C asks the loop to return at its next step; the second one interrupts."""
    before = signal.getsignal(signal.SIGINT)

    def gently(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        click.echo("stopping at the next step; Ctrl-C again stops now", err=True)
        agent.stop()

    signal.signal(signal.SIGINT, gently)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _report(stopped: Stopped, agent: Agent, printer: Printer) -> int:
    if not printer.json_lines:
        task = tasks.current(agent.memory)
        if stopped.reason == "done" and task:
            click.echo(f"done after {task.steps} steps: {task.summary}")
        elif stopped.reason == "approval":
            click.echo(f"{stopped.text} Answer with: selfpager run ... --resume --approve (or --deny)", err=True)
        else:
            click.echo(f"stopped ({stopped.reason}): {stopped.text}", err=True)
    return CODES.get(stopped.reason, FAILED)
