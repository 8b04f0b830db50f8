"""`selfpager run AGENT.yaml "task"`: a long task with a progress line, which can be resumed after any end."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import click

from agents import tasks
from agents.agent import Agent
from agents.cli.common import FAILED, STOPPED, Shared, common
from agents.cli.completion import AgentFile
from agents.cli.terminal import Printer, begin, progress, stopped_gently
from agents.cli.visible import harmless
from agents.events import Event, Replied, Stopped, ToolStarted
from agents.loop import Patience
from pager.errors import RejectedError
from pager.types import Call

OUTAGE_SECONDS = 12 * 3600.0


@click.command("run")
@click.argument("file", metavar="AGENT.yaml", type=AgentFile())
@click.argument("task", required=False)
@click.option("--resume", is_flag=True, help="Continue the open task, however it stopped.")
@click.option("--new", is_flag=True, help="Drop the open task and start another one.")
@click.option("--approve/--deny", "approval", default=None, help="Answer the tool call that waits for approval.")
@click.option(
    "--history", "history_file", type=click.Path(path_type=Path), help="A file with earlier conversations to remember."
)
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
    """Work on TASK until it is done or a limit is reached.

    The first Ctrl-C stops at the next step, the second at once. `--resume` continues, even after a crash. A running
    task reads what `selfpager tell NAME "..."` sends at its next step.
    """
    if bool(task) == resume:
        raise click.UsageError("give the task as text, or --resume to continue the open one.")
    if resume and new:
        raise click.UsageError("--new drops the open task, --resume continues it; give one of them.")
    if task is not None and not task.strip():
        raise click.UsageError("the task is empty; write what is to be done.")
    if approval is not None and not resume:
        raise click.UsageError("--approve and --deny answer a call that waits; give them with --resume.")
    printer = Printer(json_lines=json_lines)
    answers = Answers(approval, printer)
    with Agent.load(
        file, home=shared.home_path, as_name=shared.as_name, approve=answers,
        patience=Patience(total_seconds=OUTAGE_SECONDS), task=True,
    ) as agent:  # fmt: skip
        begin(agent, printer, history_file)
        answers.expect([call.id for call in agent.memory.open_calls if call.waiting])
        runner = agent.tasks()
        if new:
            runner.drop()
        with stopped_gently(agent):
            stopped = printer.show(
                _with_progress(agent, printer, runner.resume() if resume else runner.start(task or ""))
            )
        return _report(stopped, agent, printer)


class Answers:
    """Answers the call that waits for approval with `--approve` or `--deny`, and asks a person about any other."""

    def __init__(self, approval: bool | None, printer: Printer) -> None:
        self._approval = approval
        self._printer = printer
        self._waiting: list[str] = []

    def expect(self, waiting: list[str]) -> None:
        """Set the calls that wait. Raises RejectedError if there is none to answer."""
        if self._approval is not None and not waiting:
            raise RejectedError("no call waits for approval; resume without --approve and --deny.")
        self._waiting = waiting[:1]

    def __call__(self, call: Call) -> bool | None:
        return self._approval if call.id in self._waiting else self._printer.ask(call)


def _with_progress(agent: Agent, printer: Printer, events: Generator[Event]) -> Generator[Event]:
    doing = "thinking"
    for event in events:
        if isinstance(event, ToolStarted):
            doing = event.name
        yield event
        if isinstance(event, Replied) and not printer.json_lines:
            meter = agent.meter
            printer.note(progress(event, steps=meter.steps, tokens=meter.tokens, usd=meter.usd, doing=doing))
            printer.embedding(agent.background)
            doing = "thinking"


def _report(stopped: Stopped, agent: Agent, printer: Printer) -> int:
    if not printer.json_lines:
        task = tasks.current(agent.memory)
        if stopped.reason == "done" and task:
            click.echo(harmless(f"done after {task.steps} steps: {task.summary}"))
        elif stopped.reason == "approval":
            click.echo(f"{stopped.text} Answer with: selfpager run ... --resume --approve (or --deny)", err=True)
        else:
            click.echo(harmless(f"stopped ({stopped.reason}): {stopped.text}"), err=True)
    # A task that stopped without being done has not failed, but it is not done either.
    return FAILED if stopped.reason == "answered" else STOPPED[stopped.reason]
