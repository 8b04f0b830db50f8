"""What is different between two texts, line by line. Pure.

>>> lines_changed("a\\nb", "a\\nc")
[(' ', 'a'), ('-', 'b'), ('+', 'c')]
"""

from __future__ import annotations

from difflib import SequenceMatcher

CONTEXT_LINES = 2
MOST_LINES = 400  # of each text: what is longer is compared by its beginning


def lines_changed(before: str, after: str) -> list[tuple[str, str]]:
    """Lines with '-' (left), '+' (entered), ' ' (both) or '~' (so many lines in both are not shown)."""
    old, new = before.splitlines()[:MOST_LINES], after.splitlines()[:MOST_LINES]
    told: list[tuple[str, str]] = []
    for kind, i, j, k, m in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            told += _kept(old[i:j], first=i == 0, last=j == len(old) and m == len(new))
        else:
            told += [("-", line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
    return told


def _kept(lines: list[str], *, first: bool, last: bool) -> list[tuple[str, str]]:
    """What both have, near what is different only."""
    head = 0 if first else CONTEXT_LINES
    tail = 0 if last else CONTEXT_LINES
    if len(lines) <= head + tail + 1:
        return [(" ", line) for line in lines]
    hidden = len(lines) - head - tail
    shown = [(" ", line) for line in lines[:head]]
    return [*shown, ("~", str(hidden)), *((" ", line) for line in lines[len(lines) - tail :])]
