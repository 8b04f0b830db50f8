"""The commands of a conversation: a line that begins with a slash is for the memory, and never goes to the model."""

from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.text import Text

from agents.agent import Agent
from agents.cli.drawing import Drawing, drawn_trace
from agents.cli.listing import line_of, line_of_hit
from agents.cli.visible import visible
from agents.explain.snapshot import take
from agents.explain.trace import trace
from pager import shortened
from pager.errors import PagerError

LEAVING = frozenset({"/quit", "/exit", "quit", "exit"})
FACTS_SHOWN, HITS_SHOWN = 20, 10
SAID_CHARS = 200
NO_FACT = "No fact is stored yet. The agent stores facts as it talks."
NO_SUCH_FACT = "No fact that is true now holds these words; /search finds others, too."
UNDONE = {  # field of Withdrawn -> the words before its ids or names
    "facts": "facts that ended",
    "restored": "facts that are true again",
    "blocks": "core blocks with their text from before",
    "kept": "core blocks that stay, for somebody changed them since",
    "tools": "tools that ran; what they did stays done",
}
HELP = """\
/context        the window and the tiers: what the model is sent now
/core           the core blocks
/facts [text]   the newest facts, or those with this text
/search text    what would be found for a text, best first
/trace text     where a text has been, and if the model sees it
/undo           take back what you said last, and all that came of it
/resume         go on with a turn that was stopped
/quit           leave, also in the middle of a turn; so does Ctrl-D

Enter sends, Alt-Enter or Ctrl-J begins a new line. Pasted lines are one message. Ctrl-C cuts the answer off.
To say something that begins with a slash, put a space before it."""


def run(line: str, name: str, agent: Agent, console: Console) -> None:
    """Carry out a command and print what it finds or did."""
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
            console.print(command(name, agent, text, console))
        except PagerError as error:
            console.print(Text(visible(str(error))))


def _context(name: str, agent: Agent, _: str, console: Console) -> RenderableType:
    return Drawing(console).whole(name, take(agent.memory))


def _core(_: str, agent: Agent, __: str, ___: Console) -> RenderableType:
    lines = [
        visible(f"{block.name} ({block.used_tokens} of {block.limit_tokens} tokens): {block.value or 'empty'}")
        for block in agent.memory.core()
    ]
    return Text("\n".join(lines) or "This agent has no core blocks.")


def _facts(_: str, agent: Agent, text: str, __: Console) -> RenderableType:
    rows = agent.memory.inspect.facts("current", text=text, limit=FACTS_SHOWN).rows
    return Text("\n".join(visible(line_of(use.fact)) for use in rows) or (NO_SUCH_FACT if text else NO_FACT))


def _search(_: str, agent: Agent, text: str, __: Console) -> RenderableType:
    with agent.reading() as reader:
        hits = reader.search(text, limit=HITS_SHOWN)
    return Text("\n".join(visible(line_of_hit(hit)) for hit in hits) or "Nothing would be found.")


def _trace(_: str, agent: Agent, text: str, __: Console) -> RenderableType:
    with agent.reading() as reader:
        return drawn_trace(trace(reader, text, None))


def _undo(_: str, agent: Agent, __: str, ___: Console) -> RenderableType:
    undone = agent.undo()
    lines = [f"withdrawn: {shortened(undone.text, SAID_CHARS) or 'your last message'}"]
    lines += [f"  {words}: {', '.join(found)}" for field, words in UNDONE.items() if (found := getattr(undone, field))]
    return Text("\n".join(map(visible, lines)))


def _help(_: str, __: Agent, ___: str, ____: Console) -> RenderableType:
    return Text(HELP)


def _resume(_: str, __: Agent, ___: str, ____: Console) -> RenderableType:
    return Text("No turn is open; say something.")  # an open one is gone on with by `chat`


COMMANDS: dict[str, Callable[[str, Agent, str, Console], RenderableType]] = {
    "/help": _help, "/context": _context, "/core": _core, "/facts": _facts, "/search": _search, "/trace": _trace,
    "/undo": _undo, "/resume": _resume,
}  # fmt: skip
