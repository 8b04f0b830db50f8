"""Events of a turn on a terminal: the answer as it streams, what moved in the memory dimly beside it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import is_dataclass
from datetime import date
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import click

from agents.cli.visible import escaped, harmless
from agents.events import (
    ApprovalNeeded,
    Event,
    Paged,
    Replied,
    Stopped,
    StreamLost,
    Text,
    ToolFinished,
    ToolStarted,
)
from agents.explain.json_form import to_json
from pager.types import Call, Movement

if TYPE_CHECKING:
    from agents.agent import Agent, BackgroundWork, Progress

SHOWN_MOVES = {
    "archive": "archived", "supersede": "superseded", "forget": "forgot", "core": "core changed", "evict": "evicted",
    "page_in": "paged in", "page_out": "paged out", "pin": "pinned", "recall": "recalled", "spill": "spilled",
    "notice": "told that the window fills", "epoch": "new epoch",
}  # fmt: skip
NOTE_CHARS = 100


def as_json(value: Any) -> str:
    """One line of JSON for a program that reads along; a movement as `show --json` tells it."""
    plain = to_json(value)
    if is_dataclass(value):
        plain = {"event": type(value).__name__.lower(), **plain}
    return escaped(json.dumps(plain, ensure_ascii=False, default=_in_json))


def _in_json(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


@contextmanager
def _alone(out: TextIO) -> Generator[TextIO]:
    """Standard output for us alone: what a tool prints, or a program that it starts, goes to standard error. To whoever
    reads along it would be no line of JSON."""
    try:
        number = out.fileno()
    except OSError:  # no file, as under a test
        with redirect_stdout(sys.stderr):
            yield out
        return
    out.flush()
    with os.fdopen(os.dup(number), "w", buffering=1, encoding=out.encoding, errors=out.errors) as own:
        os.dup2(sys.stderr.fileno(), number)
        try:
            with redirect_stdout(sys.stderr):
                yield own
        finally:
            own.flush()
            os.dup2(own.fileno(), number)


class Printer:
    """Prints events; `--json` prints each as a line."""

    def __init__(self, *, json_lines: bool, quiet: bool = False) -> None:
        self.json_lines = json_lines
        self._out = sys.stdout
        self._quiet = quiet
        self._in_line = False

    def show(self, events: Iterable[Event]) -> Stopped:
        """Print until the end; how it stopped."""
        stopped = Stopped("answered")
        with _alone(sys.stdout) if self.json_lines else nullcontext(sys.stdout) as self._out:
            for event in events:
                if isinstance(event, Stopped):
                    stopped = event
                self.print(event)
        self._end_line()
        return stopped

    def print(self, event: Event) -> None:
        if self.json_lines:
            click.echo(as_json(event), file=self._out)
            return
        match event:
            case Text(text):
                click.echo(harmless(text), nl=False)
                self._in_line = not text.endswith("\n")
                sys.stdout.flush()
            case StreamLost(reason, seconds):
                self.note(f"{reason}; trying again in {seconds:.0f} s")
            case ToolStarted(_, name, arguments):
                self.note(f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})")
            case ToolFinished(_, name, text, True):
                self.error(f"{name}: {text[:NOTE_CHARS]}")
            case Paged(movement):
                self._paged(movement)
            case ApprovalNeeded(_, name, _):
                self.note(f"{name} waits for approval")
            case _:
                pass

    def _paged(self, movement: Movement) -> None:
        told = SHOWN_MOVES.get(movement.event)
        if told and movement.event != "evict":
            self.note(f"{told} {movement.page_id or movement.reason}".strip())

    def note(self, text: str) -> None:
        if self._quiet:
            return
        line = " ".join(text.split())
        self._aside(line if len(line) <= NOTE_CHARS else line[: NOTE_CHARS - 1] + "…", dim=True)

    def embedding(self, background: BackgroundWork) -> None:
        """How far it has come, while there is enough to do."""
        if background.is_busy and not self.json_lines and (told := embedding(background.progress)):
            self.note(told)

    def error(self, text: str) -> None:
        """In full: it says what to do."""
        self._aside(text, fg="red")

    def ask(self, call: Call) -> bool | None:
        """Whether the person at the terminal allows a call; None when there is none."""
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return None
        self._end_line()
        arguments = json.dumps(call.input, ensure_ascii=False)
        return click.confirm(harmless(f"Allow {call.name}({arguments})?"), default=False)

    def _aside(self, line: str, **style: Any) -> None:
        self._end_line()
        click.secho(f"  · {harmless(line)}", err=True, **style)

    def _end_line(self) -> None:
        if self._in_line:
            click.echo()
            self._in_line = False


@contextmanager
def stopped_gently(agent: Agent) -> Generator[None]:
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


BAR_CELLS, WORTH_TELLING = 20, 256


def embedding(made: Progress) -> str:
    """How far the embedding has come, as a bar; empty when it is no more than a few texts."""
    if made.total < WORTH_TELLING:
        return ""
    full = BAR_CELLS * made.done // made.total
    bar = "█" * full + "░" * (BAR_CELLS - full)
    return f"embedding {bar} {made.done:,} of {made.total:,} texts; the rest is found by words meanwhile"


def progress(event: Replied, *, steps: int, tokens: int, usd: float, doing: str) -> str:
    """The progress line of a long task."""
    fill = round(100 * event.window_tokens / max(1, event.usable_tokens))
    money = f" · ${usd:.4f}" if event.usd is not None else ""
    return f"step {steps} · {tokens:,} tokens{money} · window {fill} % · {doing}"
