"""Import what other programs keep: conversations as steps of recall, notes as facts of the archive.

conversations.py  import_conversations: a file of JSON or JSON lines, each conversation once
formats.py        the conversations in a JSON value: exports of ChatGPT and claude.ai, OpenAI, Anthropic
messages.py       a message of another program as messages for recall
notes.py          import_notes: Markdown files, each section a fact

Every import happens as a whole or not at all, and what was imported before is not imported again. Called by the
commands `import`, `chat --import` and `run --import`.
"""

from agents.importing.conversations import import_conversations
from agents.importing.notes import are_notes, import_notes

__all__ = ["are_notes", "import_conversations", "import_notes"]
