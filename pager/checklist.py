"""Checklists in core blocks: lines such as `- [ ] read b.md` and `- [x] read a.md`. Pure.

A finished item that has left its block for the archive still counts: a line says how many have.

    >>> plan = Checklist.read("- [x] read a.md\\n- [ ] read b.md\\n- [ ] compare")
    >>> plan.done, plan.total, plan.current
    (1, 3, 'read b.md')
"""

import re
from dataclasses import dataclass
from typing import Self

FINISHED = "[x] "  # how the fact of an item begins: alone it would read like something to do
_ITEM = re.compile(r"[ \t]*(?:[-*+][ \t]+|\d{1,4}[.)][ \t]+)?\[(?P<mark>[ xX]?)\][ \t]*(?P<text>\S.*)")
_MOVED = re.compile(r"\((\d{1,6}) finished before, in the archive\)")


@dataclass(frozen=True, slots=True)
class Checklist:
    """The progress of a checklist: its finished items, all of them, and the first open one."""

    done: int
    total: int
    current: str = ""  # empty: all are finished

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the checklist in a text; None if it holds none."""
        done, items = 0, list[str]()
        for line in text.split("\n"):
            if not (item := _ITEM.match(line)):
                continue
            if not _is_done(item):
                items.append(item["text"].strip())
            else:
                moved = _MOVED.fullmatch(item["text"].strip())
                done += int(moved[1]) if moved else 1
        return cls(done, done + len(items), items[0] if items else "") if done or items else None

    def __str__(self) -> str:
        return f"{self.done} of {self.total} done"


def without_finished(text: str) -> tuple[str, list[str]]:
    """Return a text with one line in the place of its finished items, and these items."""
    kept, finished, before, place = list[str](), list[str](), 0, 0
    for line in text.split("\n"):
        item = _ITEM.match(line)
        if not (item and _is_done(item)):
            kept.append(line)
            continue
        place = place if before or finished else len(kept)
        if moved := _MOVED.fullmatch(item["text"].strip()):
            before += int(moved[1])
        else:
            finished.append(FINISHED + item["text"].strip())
    if not finished:
        return text, []
    kept.insert(place, f"- [x] ({before + len(finished)} finished before, in the archive)")
    return "\n".join(kept), finished


def _is_done(item: re.Match[str]) -> bool:
    return bool(item["mark"].strip())
