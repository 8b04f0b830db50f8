"""How the tokens of a request fall to the parts of the window. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pager import blocks
from pager.prompt.state import PromptState
from pager.store.rows import Part
from pager.tokens.counter import Counter
from pager.types import Counts

# In the order of the prompt. What is left of usable is free.
PARTS = ("instructions", "tools", "core", "digest", "pinned", "request", "recalled", "turns")


def part_of(part: Part) -> str:
    """Where a piece of the conversation counts. What an update repeats of core or a page counts as that."""
    if part.kind == "recalled":
        return "recalled"
    if part.kind == "update":
        return "pinned" if part.form and blocks.text_of(part.form).startswith("<pinned ") else "core"
    return "turns"


def counts_of(view: PromptState) -> dict[str, Counts]:
    """What each part of the window holds, by kind of text."""
    counts = {name: Counts() for name in PARTS}
    for name, known in view.epoch.sizes.items() if view.epoch else ():
        counts[name] += known
    for part in (part for step in view.steps for part in step.parts if part.form):
        counts[part_of(part)] += part.counts
    return counts


def tokens_of(view: PromptState, counter: Counter) -> dict[str, int]:
    """The estimate of each part of the window."""
    return {name: counter.tokens(known) for name, known in counts_of(view).items()}


def model_of(view: PromptState) -> str:
    return str(view.epoch.settings.get("model") or "") if view.epoch else ""


def fitted(estimates: Sequence[int], total: int) -> list[int]:
    """`total` shared out in the proportions of the estimates, in whole tokens: the largest remainders are rounded up.
    Of nothing, none."""
    known = sum(estimates)
    if not known:
        return [0] * len(estimates)
    shares = [divmod(estimate * total, known) for estimate in estimates]
    left = total - sum(whole for whole, _ in shares)
    up = set(sorted(range(len(shares)), key=lambda place: -shares[place][1])[:left])
    return [whole + (place in up) for place, (whole, _) in enumerate(shares)]
