"""`selfpager run AGENT.yaml "task"`: a long task with a progress line, which can be resumed after any end."""

import json
from collections.abc import Generator
from pathlib import Path

import click

from agents import tasks
from agents.agent import Agent
from agents.cli.common import AS_HELP, FAILED, STOPPED, Shared, agent_file, command, import_option
from agents.cli.task_report import asking, asks_next, summary
from agents.cli.terminal import Printer, begin, opened, stoppable
from agents.cli.visible import counted, say, visible
from agents.events import Event, Planned, Replied, Stopped
from agents.models.model import ModelRefusedError
from agents.models.patience import Patience
from pager import shortened
from pager.errors import PagerError, RejectedError
from pager.types import Call

OUTAGE_SECONDS = 12 * 3600.0


@command("run", as_name=AS_HELP)
@agent_file
@click.argument("task", required=False)
@click.option("--resume", is_flag=True, help="Continue the open task, however it stopped.")
@click.option("--new", is_flag=True, help="Drop the open task and start another one.")
@click.option("--approve/--deny", "approval", default=None, help="Answer the tool call that waits for approval.")
@import_option
@click.option("--json", "json_lines", is_flag=True, help="Print each event as a line of JSON.")
def run_command(
    shared: Shared, file: Path, task: str | None, resume: bool, new: bool, approval: bool | None,
    conversations: Path | None, json_lines: bool,
) -> int:  # fmt: skip
    """Work on TASK until it is done or a limit is reached.

    The first Ctrl-C stops at the next step, the second at once. `--resume` continues, even after a crash. A running
    task reads what `selfpager tell NAME "..."` sends at its next step.
    """
    _check_usage(task, resume=resume, new=new, answers=approval is not None)
    printer = Printer(json_lines=json_lines)
    waiting: list[str] = []  # the call that --approve or --deny answers; a person is asked about any other
    again = f"{shared.command('run', file)} --resume"

    def approve(call: Call) -> bool | None:
        # Once: a helper may ask again, for another call of its own, under the id of the same one.
        return approval if waiting == [call.id] and waiting.pop() else printer.ask(call)

    with opened(shared, file, approve=approve, patience=Patience(total_seconds=OUTAGE_SECONDS), task=True) as agent:
        begin(agent, printer, conversations)
        held = str(agent.meter.limits)
        printer.print_dimmed(f"limits: {held}" if held else "no limits: it works until it is done (YAML: limits)")
        waiting += [call.id for call in agent.memory.open_calls if call.awaits_approval][:1]
        if approval is not None and not waiting:
            raise RejectedError(f"no call waits for approval; go on with: {again}")
        runner = agent.tasks()
        if new:
            runner.drop()
        _check_state(shared, file, task, tasks.current(agent.memory), again)
        if why := agent.model.unreachable():
            _report_unreachable(why, file, printer, begins=not resume)
        events = runner.resume() if resume else runner.start(task or "")
        try:
            with stoppable(agent, printer):
                stopped = printer.show(_with_progress(agent, printer, events))
        except (PagerError, click.Abort, KeyboardInterrupt):
            if not json_lines:
                say(f"the task is on disk; go on with: {again}", err=True)
            raise
        if not printer.json_lines:
            _report(stopped, agent, printer, shared, file)
    # A task that stopped without being done has not failed, but it is not done either.
    return FAILED if stopped.reason == "answered" else STOPPED[stopped.reason]


def _check_usage(task: str | None, *, resume: bool, new: bool, answers: bool) -> None:
    if bool(task) == resume:
        raise click.UsageError("give the task as text, or --resume to continue the open one.")
    if resume and new:
        raise click.UsageError("--new drops the open task, --resume continues it; give one of them.")
    if task is not None and not task.strip():
        raise click.UsageError("the task is empty; write what is to be done.")
    if answers and not resume:
        raise click.UsageError("--approve and --deny answer a call that waits; give them with --resume.")


def _check_state(shared: Shared, file: Path, task: str | None, current: tasks.Task | None, again: str) -> None:
    """Raise RejectedError if there is an open task beside the one that is given, or none to go on with."""
    if task and current and current.state == "open":
        drop = f"{shared.command('run', file, task)} --new"
        raise RejectedError(
            f"a task is open: {shortened(current.text, 80)!r}. Go on with it: {again}\nOr drop it: {drop}"
        )
    if not task and (current is None or current.state == "dropped"):
        raise RejectedError(f'there is no task to resume; start one: {shared.command("run", file)} "..."')


def _report_unreachable(why: str, file: Path, printer: Printer, *, begins: bool) -> None:
    """Raise ModelRefusedError before a task begins that the model will not answer. An open one waits for the model."""
    if begins:
        todo = f"Nothing was begun and nothing is stored. Mend it, or `model` in {file}, and give the command again."
        raise ModelRefusedError(f"{why}\n{todo}")
    if not printer.json_lines:
        printer.error(why)


def _with_progress(agent: Agent, printer: Printer, events: Generator[Event]) -> Generator[Event]:
    """Yield the events; print before each request that the model is asked. What tools do, the printer says itself."""
    if printer.json_lines:
        yield from events
        return
    share: float | None = None
    if not agent.memory.open_calls:
        printer.print_dimmed(asking(agent, share))
    for event in events:
        if isinstance(event, Replied):
            share = event.window_tokens / max(1, event.usable_tokens)
        yield event
        if isinstance(event, Planned):
            item = f", next: {event.current}" if event.current else ""
            printer.print_dimmed(f"plan: {event.done} of {event.total} done{item}")
        if asks_next(agent, event):
            printer.print_dimmed(asking(agent, share))
            printer.embedding(agent.background)


def _report(stopped: Stopped, agent: Agent, printer: Printer, shared: Shared, file: Path) -> None:
    task, again = tasks.current(agent.memory), f"{shared.command('run', file)} --resume"
    took = f"after {counted(task.steps, 'step')}" if task else ""
    if stopped.reason == "done" and task:
        say(f"done {took}: {task.summary}")
        if task.result is not None:
            say(json.dumps(task.result, ensure_ascii=False, indent=2))
    elif stopped.reason == "failed" and task:
        say(f"failed {took}, its result does not fit what is asked for: {task.summary}", err=True)
    elif stopped.reason == "approval":
        say(visible(stopped.text, strict=True), err=True)
        say(f"Answer with: {again} --approve (or --deny)", err=True)
    else:
        say(f"stopped ({stopped.reason}): {stopped.text}", err=True)
    for line in summary(agent, task, file) if task else ():
        printer.print_whole(line)
    if stopped.reason in ("done", "failed"):
        printer.print_whole(f"talk about it: {shared.command('chat', file)}")
    elif stopped.reason != "approval":
        say(f"go on with: {again}", err=True)
