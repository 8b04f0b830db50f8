"""Print the events of a turn: the answer as it streams, and dimmed what moves in the memory."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import is_dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from agents.cli.common import Shared
from agents.cli.visible import Harmless, confirm, say, visible
from agents.events import (
    ApprovalNeeded,
    Event,
    HelperEvent,
    Paged,
    Replied,
    Stopped,
    StreamLost,
    Text,
    ToolFinished,
    ToolStarted,
)
from agents.explain.json_form import to_json
from agents.importing import import_conversations
from pager import shortened
from pager.errors import PagerError
from pager.types import Call

if TYPE_CHECKING:
    from agents.agent import Agent, BackgroundWork
    from agents.cli.answer_screen import AnswerScreen

MOVEMENTS = {  # ledger event -> how it is printed; an eviction opens an epoch, which is
    "archive": "archived", "repeat": "known already", "supersede": "superseded", "forget": "forgot",
    "restore": "restored", "reopen": "reopened",
    "core": "core changed",
    "page_in": "paged in", "page_out": "paged out", "pin": "pinned", "recall": "recalled", "spill": "spilled",
    "notice": "notified that the window fills", "epoch": "new epoch",
}  # fmt: skip
DIMMED_CHARS = 100
MIN_TEXTS_TO_REPORT = 256  # fewer are embedded at once


def as_json(value: Any) -> str:
    """Return a value as one line of JSON in ASCII; a movement in the same form as in `show --json`."""
    data = to_json(value)
    return json.dumps(_with_kind(value, data) if is_dataclass(value) else data, default=str)


def _with_kind(value: Any, data: Any) -> Any:
    inner = {"inner": _with_kind(value.inner, data["inner"])} if isinstance(value, HelperEvent) else {}
    return {"event": type(value).__name__.lower(), **data, **inner}


@contextmanager
def _reserved(out: TextIO) -> Generator[TextIO]:
    """Reserve standard output: what tools and their processes print goes to standard error, since it is no JSON."""
    try:
        number = out.fileno()
    except OSError:  # not a file, as in a test
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


def _new_screen() -> AnswerScreen:
    from rich.console import Console

    from agents.cli.answer_screen import AnswerScreen

    return AnswerScreen(Console())


class Printer:
    """Prints events as text, or each as a line of JSON."""

    def __init__(self, *, json_lines: bool, quiet: bool = False, draws: bool = False) -> None:
        self.json_lines = json_lines
        self.draws = draws  # on a terminal that can: the answer as Markdown, and a clock while nothing comes
        self.running_tool: str | None = None
        self.leaving = False  # the person has typed that they leave, in the middle of a turn
        self._is_busy = False
        self._screen = _new_screen() if draws else None
        self._pieces: list[str] = []  # of the reply that is being streamed
        self._out = sys.stdout
        self._quiet = quiet
        self._in_line = False
        self._stream = Harmless()  # the answer, which comes in pieces

    def show(self, events: Iterable[Event]) -> Stopped:
        """Print all events. Return how the turn stopped. However it ends, the terminal is free again."""
        stopped = Stopped("answered")
        self._pieces.clear()
        self._is_busy = True
        if self._screen:
            self._screen.wait()
        try:
            with _reserved(sys.stdout) if self.json_lines else nullcontext(sys.stdout) as self._out:
                for event in events:
                    self._follow(event)
                    if isinstance(event, Stopped):
                        stopped = event
                    self.print(event)
        finally:
            self._is_busy, self.running_tool = False, None
            self._end_line()
        return stopped

    def cut(self) -> str:
        """Return what was streamed of the reply that was cut off."""
        text = "".join(self._pieces)
        self._pieces.clear()
        return text

    def _follow(self, event: Event) -> None:
        """Note what is going on."""
        match event:
            case Text(text):
                self._pieces.append(text)
            case Replied() | StreamLost():
                self._pieces.clear()
            case ToolStarted(_, name, _):
                self.running_tool = name
            case ToolFinished():
                self.running_tool = None
            case _:
                pass

    def print(self, event: Event) -> None:
        """Print one event."""
        if self.json_lines:
            print(as_json(event), file=self._out, flush=True)
            return
        match event:
            case Text(text):
                self._print_text(text)
            case StreamLost(reason, seconds):
                self.print_whole(f"{reason}; trying again in {seconds:.0f} s")
            case ToolStarted(_, name, arguments):
                self.print_dimmed(f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})")
            case ToolFinished(_, name, text, True):
                self.error(f"{name}: {shortened(text, DIMMED_CHARS)}")
            case Paged(movement) if movement.event in MOVEMENTS:
                about = f" {movement.page_id}" if movement.page_id else f" ({movement.reason})" * bool(movement.reason)
                self.print_dimmed(f"{MOVEMENTS[movement.event]}{about}")
            case ApprovalNeeded(_, name, _):
                self.print_dimmed(f"{name} waits for approval")
            case HelperEvent(_, name, inner):
                self._print_helper(name, inner)
            case _:
                pass

    def _print_text(self, text: str) -> None:
        if self._screen:
            self._screen.feed(text)
            return
        say(text, nl=False, stream=self._stream)
        self._in_line = not text.endswith("\n")
        sys.stdout.flush()

    def _print_helper(self, name: str, event: Event) -> None:
        """Print what happened in a helper, indented and short: calls, failures and its end."""
        match event:
            case HelperEvent(_, inner_name, inner):
                self._print_helper(f"{name} > {inner_name}", inner)
            case ToolStarted(_, tool, arguments):
                self.print_dimmed(f"{name} > {tool}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})", depth=1)
            case ToolFinished(_, tool, text, True):
                self.print_dimmed(f"{name} > {tool} failed: {text}", depth=1)
            case StreamLost(reason, _):
                self.print_dimmed(f"{name} > {reason}; trying again", depth=1)
            case Stopped(reason):
                self.print_dimmed(f"{name} > {reason}", depth=1)
            case _:
                pass

    def print_dimmed(self, text: str, *, depth: int = 0) -> None:
        """Print a dimmed line to standard error, cut to `DIMMED_CHARS`; nothing with `--quiet`."""
        if self._quiet:
            return
        self._to_stderr(shortened(text, DIMMED_CHARS), depth=depth, dim=True)

    def print_whole(self, text: str) -> None:
        """Print a dimmed line to standard error, however long it is; nothing with `--quiet`."""
        if not self._quiet:
            self._to_stderr(text, dim=True)

    def embedding(self, background: BackgroundWork) -> None:
        """Print the progress of the embedding while it takes long."""
        done, total = background.progress
        if background.is_busy and total >= MIN_TEXTS_TO_REPORT and not self.json_lines:
            self.print_dimmed(f"embedding: {done:,} of {total:,} texts; the rest is found by words meanwhile")

    def error(self, text: str) -> None:
        """Print an error in full."""
        self._to_stderr(text, fg="red")

    def interject(self, text: str) -> None:
        """Print a line in the middle of a turn, from any thread or a signal's handler."""
        if self._screen:
            self._screen.say(text)
        else:
            say(text, err=True)

    def ask(self, call: Call) -> bool | None:
        """Ask the person at the terminal to allow a call. Return None if there is no terminal."""
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return None
        self._end_line()
        if call.why:
            self.error(call.why)
        arguments = json.dumps(call.input, ensure_ascii=False)
        say(visible(f"{call.name}({arguments})", strict=True))
        question = f"Allow {call.name}?"  # on its own line: long arguments could end like another one
        if not self.draws:
            return confirm(question)
        from agents.cli.line_editor import shown_typing

        with shown_typing():
            return confirm(question)

    def _to_stderr(self, line: str, *, depth: int = 0, **style: Any) -> None:
        self._end_line()
        say(f"  {'  ' * depth}· {line}", err=True, **style)
        if self._screen and self._is_busy:
            self._screen.wait(self.running_tool or "thinking")

    def _end_line(self) -> None:
        if self._screen:
            self._screen.finish()
        self._stream = Harmless()
        if self._in_line:
            say("")
            self._in_line = False


@contextmanager
def opened(shared: Shared, file: Path, **options: Any) -> Generator[Agent]:
    """Open the agent of a file. Raise ModelRefusedError if its model cannot answer. A new agent leaves no files if
    nothing is said in it."""
    from agents.agent import Agent
    from agents.models.model import ModelRefusedError

    made = ""
    try:
        with Agent.load(file, home=shared.home_address, as_name=shared.as_name, **options) as agent:
            made = (shared.as_name or agent.config.name) if agent.is_new else ""
            if problem := agent.model.problem():
                raise ModelRefusedError(problem)
            yield agent
    finally:
        if made:
            with suppress(PagerError):  # another process has opened it since
                shared.home.remove_if_unused(made)


def begin(agent: Agent, printer: Printer, conversations: Path | None) -> None:
    """Print the remarks of an agent that was just opened, and import the conversations of `--import`."""
    for remark in agent.remarks:
        printer.print_dimmed(remark)
    if conversations:
        count = import_conversations(agent.memory, conversations)
        printer.print_dimmed(f"imported {count} messages from {conversations}")
        agent.background.wake()
    printer.embedding(agent.background)


@contextmanager
def stoppable(agent: Agent, printer: Printer, *, cuts: bool = False) -> Generator[None]:
    """Stop the agent at its next step at the first Ctrl-C, and at once at the second; where answers may be cut off, an
    answer on its way is at the first one."""
    before = signal.getsignal(signal.SIGINT)

    def on_interrupt(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tool = printer.running_tool
        if cuts and tool is None:
            raise KeyboardInterrupt
        agent.stop()  # before it is said: who reads that it stops may count on it
        when, then = f"when {tool} is done" if tool else "at the next step", ", and drops what it has not done"
        printer.interject(f"stopping {when}; Ctrl-C again stops now{then if cuts else ''}")

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
