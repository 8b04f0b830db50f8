"""The lines in which two texts differ. Pure.

>>> changed_lines("a\\nb", "a\\nc")
[(' ', 'a'), ('-', 'b'), ('+', 'c')]
"""

from __future__ import annotations

from difflib import SequenceMatcher

CONTEXT_LINES = 2
MOST_LINES = 400  # of each text; of a longer one the beginning is compared


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Return lines with '-' (only before), '+' (only after), ' ' (both) or '~' (the number of lines left out)."""
    old, new = before.splitlines()[:MOST_LINES], after.splitlines()[:MOST_LINES]
    lines: list[tuple[str, str]] = []
    for kind, i, j, k, m in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            head = 0 if i == 0 else CONTEXT_LINES
            tail = 0 if j == len(old) and m == len(new) else CONTEXT_LINES
            hidden = j - i - head - tail
            if hidden <= 1:
                lines += [(" ", line) for line in old[i:j]]
            else:
                lines += [(" ", line) for line in old[i : i + head]]
                lines += [("~", str(hidden)), *((" ", line) for line in old[j - tail : j])]
        else:
            lines += [("-", line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
    return lines
