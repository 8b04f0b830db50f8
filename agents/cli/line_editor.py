"""Read what a person types in `chat`: several lines, pasted text as one message, and what was said before.

Earlier messages come from the memory itself. So nothing is stored twice, and a purge reaches them.
"""

import os
import select
import sys
import termios
import textwrap
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from threading import Lock, Thread

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

LEAVE = "Ctrl-D or /quit leaves, and so does another Ctrl-C."
LINE_BYTES = 4096  # what a terminal takes as one line
_reading = Lock()
ECHO = 3  # the place of the local modes in what termios gives


class LineEditor:
    """The prompt of a conversation. `status` is the line below it, `commands` what Tab completes behind a slash.
    `on_shown` is called once, when the prompt stands for the first time."""

    def __init__(
        self, earlier: Iterable[str], status: Callable[[], str], commands: Iterable[str], say: Callable[[str], None],
        on_shown: Callable[[], object],
    ) -> None:  # fmt: skip
        self._say = say
        history = InMemoryHistory(list(earlier))
        completer = WordCompleter(sorted(commands), sentence=True)
        self._session: PromptSession[str] = PromptSession(
            history=history, multiline=True, key_bindings=_keys(), completer=completer,
            bottom_toolbar=lambda: self._wrapped(status()),
            complete_while_typing=Condition(self._begins_command), prompt_continuation="...> ",
            enable_history_search=False,
        )  # fmt: skip
        self._on_shown: Callable[[], object] | None = on_shown
        self._session.app.after_render += self._tell_shown

    def read(self, *, told: bool = False) -> str | None:
        """Return the next message; None if the person leaves. Ctrl-C empties the line; where there is none, the first
        one says how to leave, unless the person was `told`, and the second one leaves."""
        while True:
            try:
                with patch_stdout(raw=True):  # what others print meanwhile stands above the prompt
                    return self._session.prompt("you> ")
            except KeyboardInterrupt:
                if self._session.default_buffer.text.strip():
                    told = False
                elif told:
                    return None
                else:
                    self._say(LEAVE)
                    told = True
            except EOFError:
                return None

    def _tell_shown(self, _: object) -> None:
        if self._on_shown is not None:
            told, self._on_shown = self._on_shown, None
            told()

    def _wrapped(self, text: str) -> str:
        return textwrap.fill(text, self._session.app.output.get_size().columns)

    def _begins_command(self) -> bool:
        return self._session.default_buffer.text.startswith("/")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] -- it is bound
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def break_line(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] -- it is bound
        event.current_buffer.insert_text("\n")

    return keys


@contextmanager
def hidden_typing(on_line: Callable[[str], object]) -> Generator[None]:
    """Keep what is typed inside of the block off the screen: it would stand in the answer. Each line is given to
    `on_line`, in another thread, and thrown away; of a Ctrl-D it gets an empty one."""
    ends, end = os.pipe()
    reader = Thread(target=_read_lines, args=(ends, on_line), name="selfpager reads what is typed", daemon=True)
    with _echo(on=False):
        reader.start()
        try:
            yield
        finally:
            os.close(end)
            reader.join()
            os.close(ends)


def _read_lines(ends: int, on_line: Callable[[str], object]) -> None:
    typed = sys.stdin.fileno()
    while ends not in select.select([typed, ends], [], [])[0]:
        with _reading:
            if not select.select([typed], [], [], 0)[0]:
                continue  # a question was asked, and this was the answer
            line = os.read(typed, LINE_BYTES)
        on_line(line.decode(errors="replace"))
        if not line:
            return


@contextmanager
def shown_typing() -> Generator[None]:
    """Show what is typed inside of the block. What was typed before it is thrown away: it answers no question."""
    with _reading:
        with suppress(termios.error, OSError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        with _echo(on=True):
            yield


@contextmanager
def _echo(*, on: bool) -> Generator[None]:
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError):  # no terminal
        yield
        return
    changed = list(before)
    changed[ECHO] = changed[ECHO] | termios.ECHO if on else changed[ECHO] & ~termios.ECHO
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, changed)
    try:
        yield
    finally:
        if not on:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)
