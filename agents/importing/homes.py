"""Import the home of another agent: Claude Code's (~/.claude) or Hermes' (~/.hermes).

Sessions become messages of recall, memory files become facts. Each session is imported as a whole and committed by
itself: an import that was interrupted goes on with the next one, and a second import adds what is new. Nothing in the
home is executed, obeyed or written to, and no link is followed. What a tool had answered there has the source of that
tool, and so has what the agent said after it had read it.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from agents.importing import claude_code, hermes
from agents.importing.conversations import import_conversation
from agents.importing.formats import Conversation
from agents.importing.notes import MarkdownSection
from pager.errors import RejectedError
from pager.memory import Memory

MOST_SESSIONS = 100_000
NOTE = "note:imported:"  # the key of a stored value: this, and the digest of an entry without a key


class Imported(NamedTuple):
    """The number of new messages, and of new or changed facts."""

    messages: int
    facts: int


class Kind(NamedTuple):
    """A program whose home can be imported."""

    name: str
    fits: Callable[[Path], bool]
    sessions: Callable[[Path], Iterator[Conversation]]
    notes: Callable[[Path], Iterator[MarkdownSection]]


KINDS = (
    Kind("claude-code", claude_code.is_home, claude_code.sessions, claude_code.notes),
    Kind("hermes", hermes.is_home, hermes.sessions, hermes.notes),
)


def kind_of(path: Path) -> Kind | None:
    """Return whose home a folder is; None if it is nobody's that can be imported."""
    return next((kind for kind in KINDS if path.is_dir() and kind.fits(path)), None)


def import_home(memory: Memory, path: Path, kind: Kind) -> Imported:
    """Import the facts of a home, then its sessions one by one. Raises RejectedError with the place.

    A session that is broken is named when all others have been imported.
    """
    with memory.transaction():
        facts = sum(_archive(memory, section, kind.name) for section in kind.notes(path))
    messages, broken = 0, list[RejectedError]()
    for number, session in enumerate(kind.sessions(path)):
        if number == MOST_SESSIONS:
            raise RejectedError(f"{path} has more than {MOST_SESSIONS:,} sessions; those were imported.")
        try:
            with memory.transaction():
                messages += import_conversation(memory, kind.name, session)
        except RejectedError as error:
            broken.append(error)
    if broken:
        more = f" So it is with {len(broken) - 1:,} more." if len(broken) > 1 else ""
        raise RejectedError(f"{broken[0]}{more} All other sessions were imported.")
    return Imported(messages, facts)


def _archive(memory: Memory, section: MarkdownSection, program: str) -> bool:
    """Archive a section, unless it is there. An entry without a key is imported once, whatever became of it since."""
    if section.key:
        current = memory.inspect.current_fact(section.key)
        if current is not None and current.text == section.text:
            return False
        memory.archive(section.text, key=section.key, tags=[program], source=f"import:{program}")
        return True
    known = NOTE + hashlib.sha256(f"{program}\n{section.text}".encode()).hexdigest()
    if memory.load_value(known) is not None:
        return False
    memory.archive(section.text, tags=[program], source=f"import:{program}")
    memory.save_value(known, "")
    return True
