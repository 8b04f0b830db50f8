"""Tools for agents under test, and what they did."""

from __future__ import annotations


class Hands:
    """Tools, and what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def fetch(self, order: str) -> str:
        """Fetch an order."""
        self.done.append(order)
        return f"order {order} is on its way"


def look(at: str = "sea") -> str:
    """Look at something."""
    return f"the {at} is calm"
