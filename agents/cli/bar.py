"""The window as a bar of cells with marks under it. Pure: widths in, cells and lines of text out.

The whole bar stands for the usable tokens, or for the used ones if those are more (a window that was made smaller).
"""

from pager.inspect import WindowUse

MARK = "\u25b2"


def cells(window: WindowUse, width: int) -> list[tuple[str, int]]:
    """Return the number of cells of each part, in order; the last is what is free. They add up to `width`."""
    total, end, taken = _whole(window), 0, 0
    found: list[tuple[str, int]] = []
    for part in window.parts:
        end += part.tokens
        reached = round(width * end / total)
        found.append((part.name, reached - taken))
        taken = reached
    return [*found, ("free", width - taken)]


def marks(window: WindowUse, width: int) -> list[str]:
    """Return the thresholds: a line of marks, and as few lines of names as they need."""
    limits = window.thresholds
    if limits is None:
        return []
    named = [
        (limits.evict_to, f"to {limits.evict_to:,}"),
        (limits.notify_at, f"notify {limits.notify_at:,}"),
        (limits.evict_at, f"evict {limits.evict_at:,}"),
    ]
    places = sorted((min(width - 1, round(width * tokens / _whole(window))), label) for tokens, label in named)
    line = [" "] * width
    for place, _ in places:
        line[place] = MARK
    rows = [""]
    for place, label in places:
        wanted, last = max(0, place - len(label) // 2), width - len(label)
        first = len(rows[-1]) + 1 if rows[-1] else 0
        start = min(max(first, wanted), last)
        if not first <= start <= place:  # the row is taken where the label would touch its mark
            rows.append("")
            start = max(0, min(wanted, last))
        rows[-1] = rows[-1].ljust(start) + label
    return ["".join(line).rstrip(), *rows]


def _whole(window: WindowUse) -> int:
    return max(1, window.usable_tokens or 0, window.used_tokens)
