"""Draw a trace on a terminal with rich: the answer first, then the life of the text. No text is read as markup."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agents import palette
from agents.cli.visible import visible
from agents.explain.trace import Trace, Verdict

YES, NO = "\u25cf", "\u25cb"
TIER_OF_EVENT = {
    "core": "core", "archive": "archival", "supersede": "archival", "forget": "archival", "recall": "archival",
    "page_out": "archival",
}  # fmt: skip


def drawn(found: Trace) -> RenderableType:
    """Return the drawing of a trace."""
    near = [_line("", f"{each.page_id}  {visible(each.text)}") for each in found.near]
    title = [Text(), Text("What a search for it finds", style="bold")] if near else []
    return Group(*_answer(found.verdict), *_life(found), *title, *near)


def _answer(verdict: Verdict) -> Iterator[RenderableType]:
    when = f"in the request that {verdict.at} answered" if verdict.at else "in the prompt now"
    if verdict.present:
        yield Text(f"{YES} It {'was' if verdict.at else 'is'} {when}:", style=f"bold {palette.RECALL}")
        for place in verdict.places:
            where = f" ({visible(place.page_id)})" if place.page_id else ""
            yield _line(place.part, f"{visible(place.title)}{where}")
        if verdict.more_places:
            yield _line("", f"and {verdict.more_places} more")
        return
    yield Text(f"{NO} It {'was' if verdict.at else 'is'} not {when}:", style=f"bold {palette.WARNING}")
    for reason in verdict.reasons:
        yield _line("", visible(reason))


def _line(part: str, text: str) -> RenderableType:
    mark = Text("\u25a0 ", style=palette.WINDOW[part].colour) if part in palette.WINDOW else Text("")
    return Padding(Text.assemble(mark, text, overflow="fold"), (0, 0, 0, 4), expand=False)


def _life(found: Trace) -> Iterator[RenderableType]:
    if not found.events:
        return
    yield Text()
    yield Text("Its life", style="bold")
    grid = Table.grid(padding=(0, 1))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for event in found.events:
        colour = palette.TIERS[TIER_OF_EVENT.get(event.event, "recall")]
        name = {None: event.event, True: "found", False: "missed"}[event.found]
        grid.add_row(
            Text(event.at.strftime("%Y-%m-%d %H:%M"), style=palette.QUIET), Text(event.step),
            Text(name, style=palette.WARNING if event.found is False else colour), Text(visible(event.text)),
        )  # fmt: skip
    yield Padding(grid, (0, 0, 0, 2), expand=False)
    if found.more:
        yield Text("  It stands in more places; a longer piece of the text finds fewer.", style=palette.QUIET)
