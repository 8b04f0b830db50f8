"""The score of a hit for people: rounded, so that the parts that are shown add up to the score that is shown."""

from collections.abc import Mapping

DIGITS = 2


def rounded(score: float, parts: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Return a score with two digits, and its parts likewise, which add up to it; parts that are nothing are left out.

    >>> rounded(1.006, {"words": 0.503, "meaning": 0.503, "late": 0.0})
    (1.01, {'words': 0.51, 'meaning': 0.5})
    """
    unit = 10**DIGITS
    whole = round(score * unit)
    floors = {name: int(value * unit // 1) for name, value in parts.items()}
    rest = whole - sum(floors.values())
    order = sorted(parts, key=lambda name: floors[name] - parts[name] * unit)  # the largest remainder first
    for place in range(abs(rest)):
        floors[order[place % len(order)] if rest > 0 else order[-1 - place % len(order)]] += 1 if rest > 0 else -1
    return whole / unit, {name: value / unit for name, value in floors.items() if value}
