"""Ignore rules (.gitignore): the only file that knows pathspec. Its patterns are matched by RE2, in linear time.

A rule that cannot be read is left out, as git does. Rules above the root are not known.
"""

import warnings
from dataclasses import dataclass
from typing import Any

from agents.builtin.confined import read_in
from agents.tools.functions import ToolCallError

FILE = ".gitignore"
MAX_BYTES = 64 << 10
MAX_RULES = 1_000


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a directory, and those of the directories above it."""

    above: tuple[tuple[int, Any], ...] = ()  # how many steps below the root each file of rules is, and its rules

    def within(self, descriptor: int, depth: int) -> "Rules":
        """Return the rules for an open directory that is `depth` steps below the root."""
        try:
            text = read_in(descriptor, FILE, FILE, MAX_BYTES).decode("utf-8", "replace")
        except (OSError, ToolCallError):  # there are none, or none that can be read
            return self
        rules = _read(text.splitlines()[:MAX_RULES])
        return Rules((*self.above, (depth, rules))) if rules else self

    def ignore(self, parts: tuple[str, ...], *, is_directory: bool) -> bool:
        """Return True if a path below the root is ignored. The nearest file that says something about it decides."""
        for depth, rules in reversed(self.above):
            path = "/".join(parts[depth:]) + "/" * is_directory
            if (verdict := rules.check_file(path).include) is not None:
                return verdict
        return False


def _read(lines: list[str]) -> Any:
    from pathspec import GitIgnoreSpec

    good: list[str] = []
    with warnings.catch_warnings(action="ignore"):  # of patterns that others wrote
        for line in lines:
            try:
                GitIgnoreSpec.from_lines([line], backend="re2")
            except Exception:  # noqa: BLE001, S112 - of three libraries' kinds; a rule that is none
                continue
            good.append(line)
        return GitIgnoreSpec.from_lines(good, backend="re2") if good else None
