"""The provider's memory tool (`memory_20250818`) over the tiers: an agent reads and edits its memory as files.

files.py   MemoryFiles: the six commands
tree.py    which path is which block, fact, day or page, and what lies there
text.py    numbered lines, replacements and listings, worded as the SDK words them
runner.py  the same for the SDK's tool runner; only this module loads the SDK

Promises that a command is one transaction, and answers and errors like the SDK's own file tool. A `MemoryReader` can be
viewed, a `Memory` can be edited. For programs, and for `agents.tools`.

    >>> from pager.memory_tool import MemoryFiles
    >>> from pager.memory_tool.runner import TieredMemoryTool, AsyncTieredMemoryTool
"""

from pager.memory_tool.files import DEFINITION, MemoryFiles

__all__ = ["DEFINITION", "MemoryFiles"]
