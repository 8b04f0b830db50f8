"""Import what other programs keep: conversations as steps of recall, notes as facts of the archive.

conversations.py  import_conversations: a file of JSON or JSON lines, each conversation once
formats.py        the conversations in a JSON value: exports of ChatGPT and claude.ai, OpenAI, Anthropic
messages.py       a message of another program as messages for recall
notes.py          import_notes: Markdown files, each section a fact
homes.py          import_home: the homes of Claude Code (claude_code.py) and Hermes (hermes.py), sessions and facts;
                  tool_sources.py says what of them is untrusted

Every import happens as a whole or not at all, that of a home session by session. What was imported before is not
imported again. Called by the commands `import`, `chat --import` and `run --import`.
"""

from agents.importing.conversations import import_conversations
from agents.importing.homes import import_home, kind_of
from agents.importing.notes import are_notes, import_notes

__all__ = ["are_notes", "import_conversations", "import_home", "import_notes", "kind_of"]
