"""The commands of a conversation: a line that begins with a slash looks at the memory, and never goes to the model.

>>> is_command("/facts"), is_command("exit"), is_command("I read /etc/hosts")
(True, True, False)
"""

from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.text import Text

from agents.cli.drawing import Drawing, drawn_trace
from agents.cli.listing import line_of, line_of_hit
from agents.cli.visible import visible
from agents.explain.snapshot import take
from agents.explain.trace import trace
from pager.errors import PagerError
from pager.memory import Memory

LEAVING = frozenset({"/quit", "/exit", "quit", "exit"})
FACTS_SHOWN, HITS_SHOWN = 20, 10
HELP = """\
/context        the window and the tiers: what the model is sent now
/core           the core blocks
/facts [text]   the newest facts, or those with this text
/search text    what would be found for a text, best first
/trace text     where a text has been, and if the model sees it
/resume         go on with a turn that was stopped
/quit           leave, also in the middle of a turn; so does Ctrl-D

Enter sends, Alt-Enter or Ctrl-J begins a new line. Pasted lines are one message. Ctrl-C cuts the answer off.
To say something that begins with a slash, put a space before it."""


def is_command(line: str) -> bool:
    """Return True for a line that is not meant for the model."""
    return line.startswith("/") or line.strip() in LEAVING


def run(line: str, name: str, memory: Memory, console: Console) -> None:
    """Carry out a command and print what it finds."""
    word, _, text = line.strip().partition(" ")
    command = COMMANDS.get(word)
    text = text.strip()
    if command is None:
        way = "/help lists them; to say it to the agent, put a space before the slash"
        console.print(Text(visible(f"there is no command {word}; {way}.")))
    elif word in ("/search", "/trace") and not text:
        console.print(Text(f"{word} needs a text behind it."))
    else:
        try:
            console.print(command(name, memory, text, console))
        except PagerError as error:
            console.print(Text(visible(str(error))))


def _context(name: str, memory: Memory, _: str, console: Console) -> RenderableType:
    return Drawing(console).whole(name, take(memory))


def _core(_: str, memory: Memory, __: str, ___: Console) -> RenderableType:
    lines = [
        visible(f"{block.name} ({block.used_tokens} of {block.limit_tokens} tokens): {block.value or 'empty'}")
        for block in memory.core()
    ]
    return Text("\n".join(lines) or "This agent has no core blocks.")


def _facts(_: str, memory: Memory, text: str, __: Console) -> RenderableType:
    rows = memory.inspect.facts("current", text=text, limit=FACTS_SHOWN).rows
    return Text("\n".join(visible(line_of(use.fact)) for use in rows) or "There is no such fact.")


def _search(_: str, memory: Memory, text: str, __: Console) -> RenderableType:
    hits = memory.search(text, limit=HITS_SHOWN)
    return Text("\n".join(visible(line_of_hit(hit)) for hit in hits) or "Nothing would be found.")


def _trace(_: str, memory: Memory, text: str, __: Console) -> RenderableType:
    return drawn_trace(trace(memory, text, None))


def _help(_: str, __: Memory, ___: str, ____: Console) -> RenderableType:
    return Text(HELP)


def _resume(_: str, __: Memory, ___: str, ____: Console) -> RenderableType:
    return Text("No turn is open; say something.")  # an open one is gone on with by `chat`


COMMANDS: dict[str, Callable[[str, Memory, str, Console], RenderableType]] = {
    "/help": _help, "/context": _context, "/core": _core, "/facts": _facts, "/search": _search, "/trace": _trace,
    "/resume": _resume,
}  # fmt: skip
