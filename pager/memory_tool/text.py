"""Texts as the provider's memory tool shows and edits them: numbered lines, replacements, insertions, listings. Pure.

Answers and errors are worded as the SDK's own local tool words them: models were trained on these words.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pager import tokens
from pager.errors import RejectedError, brief

NUMBER_WIDTH = 6
LEVELS = 2
CONTEXT_LINES = 2  # shown before and after a change
MAX_PLACES = 100  # named of a text that occurs more often
UNITS = "BKMG"
HINT_TOKENS = 60  # reserved for the hint how to read on


def not_found(path: str) -> RejectedError:
    """Return the error for a path where nothing is."""
    return RejectedError(f"The path {path} does not exist. Please provide a valid path.")


def numbered(lines: Sequence[str], first: int = 1) -> list[str]:
    """Return the lines with their numbers before them."""
    return [f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, start=first)]


def lines_in_range(lines: Sequence[str], view_range: Any) -> tuple[Sequence[str], int]:
    """Return the lines of a range [first, last], counted from 1, where -1 is the end, and the number of the first."""
    if not view_range:
        return lines, 1
    ends = cast("list[Any]", view_range) if isinstance(view_range, list) else []
    if len(ends) != 2 or not all(type(end) is int for end in ends):
        wanted = "It should be [first line, last line]."
        raise RejectedError(f"Invalid `view_range` parameter: {brief(cast(object, view_range))}. {wanted}")
    start = max(1, ends[0]) - 1
    return lines[start : len(lines) if ends[1] == -1 else ends[1]], start + 1


def fitting(lines: Sequence[str], limit_tokens: int) -> list[str]:
    """Return the first lines, as many as fit into the limit with a hint how to read on."""
    left, shown = limit_tokens - HINT_TOKENS, list[str]()
    for line in lines:
        left -= tokens.total(line) + 1
        if left < 0:
            break
        shown.append(line)
    return shown


def body(lines: Sequence[str], first: int, limit_tokens: int, last: int, read_whole: str) -> tuple[list[str], int]:
    """Return as many numbered lines as fit into the limit, with a hint how to read on, and the last number shown."""
    shown = fitting(numbered(lines, first), limit_tokens)
    end = first + max(1, len(shown)) - 1
    if len(shown) == len(lines):
        return shown, end
    if not shown:
        shown = [tokens.head(numbered(lines[:1], first)[0], max(8, limit_tokens - HINT_TOKENS))]
        shown.append(f"(Line {first} is too long to be shown whole; {read_whole}.)")
    shown.append(f"(Lines {first} to {end} of {last} are shown; read on with view_range [{end + 1}, -1].)")
    return shown, end


def replaced(content: str, old: str, new: str, path: str) -> tuple[str, str]:
    """Replace the only occurrence of `old`. Return the new content, and the numbered lines around the change."""
    count = content.count(old)
    if count == 0:
        raise RejectedError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        lines = ", ".join(map(str, _lines_with(content, old)))
        found = f"Multiple occurrences of old_str `{old}` in lines: {lines}"
        raise RejectedError(f"No replacement was performed. {found}. Please ensure it is unique")
    changed = content.replace(old, new)
    line = content.count("\n", 0, content.index(old))
    first = max(0, line - CONTEXT_LINES)
    return changed, "\n".join(numbered(changed.split("\n")[first : line + CONTEXT_LINES + 1], first + 1))


def _lines_with(content: str, old: str) -> Iterator[int | str]:
    """Yield the line of each place of a text, of the first ones: places may overlap."""
    place, line, last = content.find(old), 1, 0
    for _ in range(MAX_PLACES):
        line, last = line + content.count("\n", last, place), place
        yield line
        if (place := content.find(old, place + 1)) < 0:
            return
    yield "…"


def inserted(content: str, after_line: int, text: str) -> str:
    """Insert a text after a line; 0 is the beginning. The result ends with a line break."""
    lines = content.removesuffix("\n").split("\n") if content else []
    if not 0 <= after_line <= len(lines):
        wanted = f"It should be within the range [0, {len(lines)}]."
        raise RejectedError(f"Invalid `insert_line` parameter: {after_line}. {wanted}")
    lines.insert(after_line, text.rstrip("\n"))
    joined = "\n".join(lines)
    return joined if joined.endswith("\n") else f"{joined}\n"


def size(count: int) -> str:
    """Return a number of bytes as a listing shows it: 512B, 1.5K, 2M."""
    unit = min(max(0, count.bit_length() - 1) // 10, len(UNITS) - 1)
    number = count / 1024**unit
    return f"{int(number) if number == int(number) else f'{number:.1f}'}{UNITS[unit]}"


def listing(path: str, files: Mapping[str, int], folders: Iterable[str], levels: int = LEVELS) -> list[str]:
    """Return a line for the directory and one for everything in it, each with its size. Hidden names are left out."""
    sizes: dict[tuple[str, ...], int] = {(*folder.split("/"), ""): 0 for folder in folders}
    for name, count in files.items():
        names = name.split("/")
        for depth in range(1, len(names)):
            folder = (*names[:depth], "")
            sizes[folder] = sizes.get(folder, 0) + count
        sizes[tuple(names)] = count
    visible = (names for names in sizes if not any(name.startswith(".") for name in names))
    shown = sorted(
        (names for names in visible if len(list(filter(None, names))) <= levels),
        key=lambda names: tuple(filter(None, names)),
    )
    lines = [f"{size(sum(files.values()))}\t{path}"]
    return lines + [f"{size(sizes[names])}\t{path}/{'/'.join(names)}" for names in shown]
