"""How the demo looks: headings, speech, checks, the bar of the window, a table; plain where there is no terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from agents import palette
from agents.cli.drawing import Drawing
from agents.cli.visible import visible
from agents.demo.stage import DemoFailed, Turn
from agents.explain.snapshot import Snapshot

WIDEST = 100
BAR_CELLS = 36
LABEL_CELLS = 6
CALL_CHARS = 140


class Page:
    """Prints to the terminal, in no more than a hundred columns."""

    def __init__(self) -> None:
        console = Console(highlight=False)
        self._console = Console(highlight=False, width=min(WIDEST, console.width))
        self._drawing = Drawing(self._console)

    @property
    def width(self) -> int:
        return self._console.width

    def put(self, *what: RenderableType) -> None:
        """Print, and let it be seen at once."""
        for each in what:
            self._console.print(each)
        self._console.file.flush()

    def heading(self, text: str) -> None:
        self.put("", Rule(Text(text, style="bold"), style=palette.CORE, align="left"), "")

    def prose(self, text: str) -> None:
        self.put(Text(textwrap.fill(" ".join(text.split()), self.width)))

    def quiet(self, text: str) -> None:
        self.put(Text(text, style=palette.QUIET))

    def command(self, line: str, told: str = "") -> None:
        beside = f"   {told}" if told else ""
        if told and len(line) + len(beside) + 2 > self.width:
            self.quiet(f"# {told}")
            beside = ""
        self.whole_line(Text.assemble("$ ", (line, f"bold {palette.RECALL}"), (beside, palette.QUIET)))

    def whole_line(self, line: str | Text) -> None:
        """What can be copied: a line break that we put into it would be copied too."""
        self._console.print(line, soft_wrap=True)

    def result(self, tool: str, text: str) -> None:
        """One line of what a tool has answered."""
        line = Text.assemble(f"  \u00b7 {tool}: ", visible(" ".join(text.split())), style=palette.QUIET)
        self._console.print(line, no_wrap=True, overflow="ellipsis")

    def file(self, text: str) -> None:
        self.put(Text(textwrap.indent(text.strip(), "  "), style=palette.QUIET))

    def turn(self, who: str, turn: Turn) -> None:
        """A message, the calls that it led to, the answer."""
        self._labelled(who, turn.asked, "bold")
        for call in turn.calls:
            told = str(call)
            self._labelled("\u00b7", told if len(told) <= CALL_CHARS else f"{told[:CALL_CHARS]}\u2026", palette.QUIET)
        self._labelled("agent", turn.answer, "")

    def _labelled(self, label: str, text: str, style: str) -> None:
        lines = textwrap.wrap(visible(text), self.width - LABEL_CELLS - 1) or [""]
        for place, line in enumerate(lines):
            told = label if place == 0 else ""
            self.put(Text.assemble((f"{told:>{LABEL_CELLS}} ", palette.QUIET), (line, style)))

    def check(self, holds: object, told: str) -> None:
        """Say what has just been looked up in the state. When it is not so, the demo ends here."""
        if not holds:
            raise DemoFailed(f"this should be so, and is not: {told}")
        lines = textwrap.wrap(visible(told), self.width - 2)
        for place, line in enumerate(lines):
            self.put(Text.assemble(("  " if place else "\u2713 ", "bold"), line, style=palette.ARCHIVAL))

    def window(self, snapshot: Snapshot) -> None:
        """The window with its marks and the names of its parts."""
        self.put(*self._drawing.window(snapshot), "")

    def bar(self, label: str, snapshot: Snapshot, told: str) -> None:
        """The window in one line."""
        line = Text(f"{label:>4} ")
        line.append_text(self._drawing.cells(snapshot.window, BAR_CELLS))
        line.append(f" {snapshot.window.used_tokens:>5,}  ")
        line.append(visible(told), style=palette.QUIET)
        self._console.print(line, no_wrap=True, overflow="ellipsis")

    def moved(self, told: str) -> None:
        self.put(Text(f"     \u25bc {told}", style=palette.WARNING))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", show_edge=False)
        for column in columns:
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*row)
        self.put(table)
