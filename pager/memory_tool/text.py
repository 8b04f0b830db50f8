"""Files as the provider's memory tool shows and edits them: numbered lines, one exact replacement, an insertion, a
listing. Pure.

What is answered and refused is worded as the SDK's own local tool words it: models were trained on those words.

    >>> inserted("one\\nthree", 1, "two")
    'one\\ntwo\\nthree\\n'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pager import tokens
from pager.errors import RejectedError

NUMBER_WIDTH = 6
LEVELS = 2
AROUND_CHANGE = 2  # lines shown before and after one that changed
UNITS = "BKMG"
WORDS_AROUND_TOKENS = 60


def no_such(path: str) -> RejectedError:
    return RejectedError(f"The path {path} does not exist. Please provide a valid path.")


def numbered(lines: Sequence[str], first: int = 1) -> list[str]:
    return [f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, start=first)]


def within(lines: Sequence[str], view_range: Any) -> tuple[Sequence[str], int]:
    """The lines of a range [first, last], counted from 1, where -1 is the end; and the number of the first."""
    if not view_range:
        return lines, 1
    ends = cast("list[Any]", view_range) if isinstance(view_range, list) else []
    if len(ends) != 2 or not all(type(end) is int for end in ends):
        raise RejectedError(
            f"Invalid `view_range` parameter: {view_range!r:.100}. It should be [first line, last line]."
        )
    start = max(1, ends[0]) - 1
    return lines[start : len(lines) if ends[1] == -1 else ends[1]], start + 1


def fitting(lines: Sequence[str], first: int, limit_tokens: int, last: int, whole_in: str) -> tuple[list[str], int]:
    """As many numbered lines as the limit takes, with how to read on; and the number of the last one shown. `last` is
    the number of the last line there is, `whole_in` says where a line that is too long by itself can be read."""
    left, shown = limit_tokens - WORDS_AROUND_TOKENS, list[str]()
    for line in numbered(lines, first):
        left -= tokens.total(line) + 1
        if left < 0:
            break
        shown.append(line)
    end = first + max(1, len(shown)) - 1
    if len(shown) == len(lines):
        return shown, end
    if not shown:
        shown = [tokens.head(numbered(lines[:1], first)[0], max(8, limit_tokens - WORDS_AROUND_TOKENS))]
        shown.append(f"(Line {first} is too long to be shown whole; {whole_in}.)")
    shown.append(f"(Lines {first} to {end} of {last} are shown; read on with view_range [{end + 1}, -1].)")
    return shown, end


def replaced(content: str, old: str, new: str, path: str) -> tuple[str, str]:
    """The content with the one place of `old` exchanged, and the lines around it as they are told."""
    count = content.count(old)
    if count == 0:
        raise RejectedError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        lines = ", ".join(str(content.count("\n", 0, place) + 1) for place in _places(content, old))
        raise RejectedError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure "
            "it is unique"
        )
    changed = content.replace(old, new)
    line = content.count("\n", 0, content.index(old))
    first = max(0, line - AROUND_CHANGE)
    return changed, "\n".join(numbered(changed.split("\n")[first : line + AROUND_CHANGE + 1], first + 1))


def _places(content: str, old: str) -> Iterable[int]:
    place = content.find(old)
    while place != -1:
        yield place
        place = content.find(old, place + 1)


def inserted(content: str, after_line: int, text: str) -> str:
    """The content with a text behind a line, 0 being its beginning. It ends with a line break afterwards."""
    lines = content.removesuffix("\n").split("\n") if content else []
    if not 0 <= after_line <= len(lines):
        raise RejectedError(
            f"Invalid `insert_line` parameter: {after_line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(after_line, text.rstrip("\n"))
    joined = "\n".join(lines)
    return joined if joined.endswith("\n") else f"{joined}\n"


def size(count: int) -> str:
    """Bytes as a listing shows them: 512B, 1.5K, 2M."""
    unit = min(max(0, count.bit_length() - 1) // 10, len(UNITS) - 1)
    number = count / 1024**unit
    return f"{int(number) if number == int(number) else f'{number:.1f}'}{UNITS[unit]}"


def listing(path: str, files: Mapping[str, int], folders: Iterable[str], levels: int = LEVELS) -> list[str]:
    """The lines of a directory: itself, then what is in it, each with its size in bytes. `files` are named from it
    on; `folders` are there also without a file. What begins with a dot is not shown."""
    known: dict[tuple[str, ...], int] = {(*folder.split("/"), ""): 0 for folder in folders}
    for name, count in files.items():
        names = name.split("/")
        for depth in range(1, len(names)):
            folder = (*names[:depth], "")
            known[folder] = known.get(folder, 0) + count
        known[tuple(names)] = count
    shown = sorted(
        (names for names in known if not any(name.startswith(".") for name in names) and _depth(names) <= levels),
        key=lambda names: tuple(name for name in names if name),
    )
    lines = [f"{size(sum(files.values()))}\t{path}"]
    return lines + [f"{size(known[names])}\t{path}/{'/'.join(names)}" for names in shown]


def _depth(names: tuple[str, ...]) -> int:
    return len(names) - (names[-1] == "")
