"""How the stories of `selfpager demo` are told: headings, commands, and lines with ✓ that were looked up before."""

import textwrap
import time
from pathlib import Path

from agents.cli.visible import say, visible
from agents.demo.stage import DemoError
from pager.reader import MemoryReader
from pager.types import Json

WIDTH = 80


def heading(text: str) -> None:
    """Print the title of a chapter."""
    say(f"\n── {text} {'─' * (WIDTH - len(text) - 4)}", fg="blue", bold=True)


def prose(text: str) -> None:
    """Print a paragraph."""
    say(textwrap.fill(text, WIDTH))


def typed(line: str, remark: str = "") -> None:
    """Print a command, unbroken, so that it can be copied."""
    say(f"$ {line}", nl=False, fg="cyan", bold=True)
    say(f"   # {remark}" if remark else "")


def check(holds: bool, text: str) -> None:
    """Print what has just been looked up in the state. Raise DemoError if it is not so."""
    require(holds, text)
    say(textwrap.fill(f"✓ {visible(text)}", WIDTH, subsequent_indent="  "), fg="green")


def require(holds: bool, text: str) -> None:
    """Raise DemoError if something that has just been looked up in the state is not so."""
    if not holds:
        raise DemoError(f"this should be so, and is not: {text}")


def wait_for(file: Path) -> None:
    """Return as soon as a file exists."""
    for _ in range(3_000):
        if file.exists():
            return
        time.sleep(0.02)
    raise DemoError(f"nothing was written into {file} within a minute.")


def steps_of(memory: MemoryReader) -> list[list[Json]]:
    """Return the blocks of every step of an agent."""
    return [memory.history.blocks_of(f"s{number}") for number in range(1, memory.inspect.steps(0, 0).total + 1)]
