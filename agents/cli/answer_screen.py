"""Draw an answer on a terminal while it streams: as Markdown, block by block, with a clock until the first word.

A block that is finished is printed for good. The one that is being written is drawn again ten times a second, at most
as many of its last lines as fit. What a terminal would obey is made visible after Markdown has been read: an entity
such as `&#27;` is a control character only then.
"""

import re
from collections.abc import Iterator
from time import monotonic

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment

from agents.cli.visible import Harmless

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_SECOND = 10
LINES_BELOW = 2  # of the terminal that stay free
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def finished_blocks(text: str) -> tuple[str, str]:
    """Split a text behind its last empty line that is not in a code block. What comes before it stays as it is."""
    fence, end, place = "", 0, 0
    for line in text.splitlines(keepends=True):
        place += len(line)
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        if not fence and not line.strip() and line.endswith("\n"):
            end = place
    return text[:end], text[end:]


class SafeMarkdown:
    """A text as Markdown, of which no character moves the cursor or turns the direction of writing."""

    def __init__(self, text: str) -> None:
        self._markdown = Markdown(text, hyperlinks=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what Markdown draws, with its text made harmless."""
        for segment in console.render(self._markdown, options):
            if not segment.control:
                yield Segment(Harmless().feed(segment.text), segment.style)


class AnswerScreen:
    """The answer of one turn on a terminal. `pause` takes what moves off the screen, so that others can print."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._doing = "thinking"
        self._since = monotonic()
        self._live: Live | None = None

    def wait(self, doing: str = "thinking") -> None:
        """Show that something is done, and for how many seconds."""
        self._doing, self._since = doing, monotonic()
        self._draw()

    def feed(self, piece: str) -> None:
        """Add a piece of the answer. The first of a block is drawn at once, the others within a tenth of a second."""
        is_first = not self._text.strip()
        finished, self._text = finished_blocks(self._text + piece)
        if finished.strip():
            self.pause()
            self._print(finished)
        self._draw()
        if is_first and self._live is not None:
            self._live.refresh()

    def say(self, text: str) -> None:
        """Print a line above what moves, from any thread."""
        self._console.print(Harmless().feed(text), markup=False, highlight=False)

    def finish(self) -> None:
        """Print what is left of the answer, and draw nothing more."""
        self.pause()
        if self._text.strip():
            self._print(self._text)
        self._text = ""

    def pause(self) -> None:
        """Take what is drawn again off the screen. The next `wait` or `feed` brings it back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, text: str) -> None:
        self._console.print(SafeMarkdown(text), "")

    def _draw(self) -> None:
        if self._live is None:
            self._live = Live(
                get_renderable=self._now, console=self._console, transient=True, refresh_per_second=FRAMES_PER_SECOND,
                redirect_stdout=False, redirect_stderr=False, vertical_overflow="crop",
            )  # fmt: skip
            self._live.start(refresh=True)  # from here on it draws by its own clock, however many pieces come

    def _now(self) -> RenderableType:
        return _Tail(self._text) if self._text.strip() else self._clock()

    def _clock(self) -> str:
        seconds = monotonic() - self._since
        frame = FRAMES[int(seconds * FRAMES_PER_SECOND) % len(FRAMES)]
        return f"[dim]{frame} {self._doing} {seconds:.0f} s[/dim]"


class _Tail:
    """The last lines of an unfinished block, as many as fit on the screen."""

    def __init__(self, text: str) -> None:
        self._markdown = SafeMarkdown(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._markdown, options, pad=False)
        yield from _joined(lines[-max(1, console.height - LINES_BELOW) :])


def _joined(lines: list[list[Segment]]) -> Iterator[Segment]:
    for number, line in enumerate(lines):
        yield from line
        if number < len(lines) - 1:
            yield Segment.line()
