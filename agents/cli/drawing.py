"""Draw a snapshot on a terminal with rich: the window as one bar, the tiers, the last movements.

Whatever comes from the memory is shown as text. It is never read as markup, and characters that would move the cursor,
change colours or turn the direction of writing are made visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from agents import palette
from agents.cli import bar
from agents.cli.visible import visible
from agents.explain.snapshot import Snapshot
from pager.inspect import ResidentStep, Window
from pager.types import Block, Fact, FactUse, Movement

MARGIN = 2
INDENT = 4
METER_CELLS = 12


class Drawing:
    """Draws for one console: its width, and whether it has colours. `brief` fits a screen that changes live."""

    def __init__(self, console: Console, *, brief: bool = False) -> None:
        self._plain = console.no_color or console.color_system is None
        self._width = max(20, console.width - MARGIN)
        self._brief = brief
        self._steps, self._lines = (5, 1) if brief else (12, 4)

    def whole(self, name: str, snapshot: Snapshot) -> RenderableType:
        """Return the drawing of a snapshot."""
        sections = [self.window(snapshot), self.core(snapshot), self.turns(snapshot), self.archive(snapshot)]
        sections.insert(1 if self._brief else len(sections), self.movements(snapshot))
        return Group(_heading(name, snapshot), *(each for section in sections for each in (Text(), *section)))

    # the window

    def window(self, snapshot: Snapshot) -> list[RenderableType]:
        """Return the lines about the window."""
        window = snapshot.window
        if window.usable_tokens is None or window.thresholds is None:
            hint = "Nothing was sent to a model yet. Talk to it: selfpager chat AGENT.yaml, or selfpager run."
            return [_title("Window", ""), _hint(hint)]
        share = round(100 * window.used_tokens / window.usable_tokens)
        about = "" if window.counted else "about "
        told = f"{about}{window.used_tokens:,} of {window.usable_tokens:,} tokens ({share} %)"
        if window.max_output_tokens:
            told += f", and {window.max_output_tokens:,} for the reply"
        line = Text("  ").append_text(self.cells(window, self._width - MARGIN))
        return [_title("Window", told), line, *self._marks(window), self._legend(window), *_epoch(window)]

    def cells(self, window: Window, width: int) -> Text:
        """Return the bar alone, this many cells wide."""
        line = Text()
        for name, cells in bar.cells(window, width):
            paint = palette.WINDOW[name]
            full = "\u2500" if name == "free" else "\u2588"
            line.append((paint.letter if self._plain else full) * cells, style=paint.colour)
        return line

    def _marks(self, window: Window) -> list[Text]:
        return [Text(f"  {row}", style=palette.QUIET) for row in bar.marks(window, self._width - MARGIN)]

    def _legend(self, window: Window) -> Text:
        line, used = Text("  "), MARGIN
        parts = [(part.name, part.tokens) for part in window.parts if part.tokens]
        for name, tokens in [*parts, ("free", window.free_tokens or 0)]:
            paint, told = palette.WINDOW[name], f" {name} {tokens:,}  "
            if used + len(told) > self._width:  # a name stays with its number
                line.append("\n  ")
                used = MARGIN
            line.append(paint.letter if self._plain else "\u25a0", style=paint.colour)
            line.append(told)
            used += 1 + len(told)
        line.rstrip()
        return line

    # the tiers

    def core(self, snapshot: Snapshot) -> list[RenderableType]:
        """Return the lines about the core blocks."""
        tier = snapshot.core
        if not tier.blocks:
            return [_title("Core", "", "core"), _hint("No core blocks. Name them under core.blocks in its YAML.")]
        limit = f" of {tier.limit_tokens:,}" if tier.limit_tokens else ""
        drawn: list[RenderableType] = [_title("Core", f"{tier.used_tokens:,}{limit} tokens", "core")]
        drawn.append(
            _rows(map(self._block, tier.blocks)) if self._brief else Group(*map(self._block_whole, tier.blocks))
        )
        return drawn

    def _block(self, block: Block) -> list[Text]:
        fill = f"{block.used_tokens:,}/{block.limit_tokens:,}"
        told = [f"v{block.version}", f"{visible(block.actor)} {_moment(block.at)}"]
        if block.read_only:
            told.append("read-only")
        if block.file:
            told.append(f"from {visible(block.file)}")
        return [
            Text(visible(block.name), style="bold"), self._meter(block.used_tokens, block.limit_tokens),
            Text(fill, justify="right"), Text(" \u00b7 ".join(told), style=palette.QUIET),
        ]  # fmt: skip

    def _block_whole(self, block: Block) -> RenderableType:
        lines = block.value.split("\n") if block.value else ["(empty)"]
        shown = [_cut(f"      {visible(line)}") for line in lines[: self._lines]]
        if len(lines) > self._lines:
            shown.append(
                Text(f"      \u2026 {len(lines) - self._lines} more lines (--json has them)", style=palette.QUIET)
            )
        return Group(_rows([self._block(block)]), *shown)

    def _meter(self, used: int, limit: int) -> Text:
        cells = min(METER_CELLS, round(METER_CELLS * used / max(1, limit)))
        full, empty = ("#", ".") if self._plain else ("\u2588", "\u2500")
        style = palette.CORE if used < limit else palette.WARNING
        return Text.assemble((full * cells, style), (empty * (METER_CELLS - cells), palette.QUIET))

    def turns(self, snapshot: Snapshot) -> list[RenderableType]:
        """Return the lines about the steps and pages in the prompt."""
        steps = snapshot.steps
        if not steps:
            return [
                _title("Turns", "", "recall"),
                _hint("No turn is in the prompt. What is said next will stand here."),
            ]
        told = f"{len(steps)} steps in the prompt, {steps[0].page_id} to {steps[-1].page_id}"
        drawn: list[RenderableType] = [_title("Turns", told, "recall")]
        if len(steps) > self._steps:
            drawn.append(Text(f"    \u2026 {len(steps) - self._steps} older steps", style=palette.QUIET))
        drawn.append(_rows(map(_step, steps[-self._steps :])))
        pages = [f"{page.page_id} {page.how.replace('_', ' ')} since {page.from_step}" for page in snapshot.pages]
        if pages:
            drawn.append(Text(f"    also in the prompt: {', '.join(pages)}", style=palette.QUIET))
        return drawn

    def archive(self, snapshot: Snapshot) -> list[RenderableType]:
        """Return the lines about the archive."""
        archive = snapshot.archive
        if not archive.total:
            then = " by then" if snapshot.at else ""
            hint = f"No fact was archived{then}. The agent's tool archive stores facts, and so does Memory.archive."
            return [_title("Archive", "", "archival"), _hint(hint)]
        told = f"{archive.total:,} facts"
        if archive.current is not None:
            told += f", {archive.current:,} current, {archive.never_used:,} never used"
        drawn: list[RenderableType] = [_title("Archive", told, "archival")]
        lists: dict[str, Sequence[Fact | FactUse]] = {
            "newest": archive.newest,
            "most used": archive.most_used,
            "never used": archive.unused,
        }
        for label, facts in lists.items():
            if facts:
                drawn.append(Text(f"    {label}", style=palette.QUIET))
                drawn.append(_rows(map(_fact, facts[:2] if self._brief else facts)))
        return drawn

    def movements(self, snapshot: Snapshot) -> list[RenderableType]:
        """Return the lines about the last movements."""
        if not snapshot.movements:
            return [_title("Movements", ""), _hint("Nothing has moved yet.")]
        return [_title("Movements", "the last ones"), _rows(map(_moved, snapshot.movements))]


def _heading(name: str, snapshot: Snapshot) -> Text:
    then = f"as it was in the request that {snapshot.at} answered" if snapshot.at else "now"
    line = Text.assemble((visible(name), "bold"), f", {then}")
    if snapshot.window.model:
        line.append(f" \u00b7 {visible(snapshot.window.model)}", style=palette.QUIET)
    return line


def _epoch(window: Window) -> list[RenderableType]:
    if window.epoch is None:
        return []
    told = f"epoch {window.epoch}, opened because: {visible(window.epoch_reason)}"
    if window.ended:
        told += "; it has ended, the next request opens another"
    elif window.noticed:
        told += "; the agent was told that the window fills"
    return [_indented(told, MARGIN)]


def _title(title: str, told: str, tier: str = "") -> Text:
    return Text.assemble((title, f"bold {palette.TIERS.get(tier, '')}".strip()), f"  {told}" if told else "")


def _hint(text: str) -> RenderableType:
    return _indented(text, INDENT)


def _indented(text: str, cells: int) -> RenderableType:
    return Padding(Text(text, style=palette.QUIET), (0, 0, 0, cells), expand=False)


def _cut(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _rows(rows: Iterable[Sequence[Text]]) -> Group:
    """Columns without lines. What is too wide for the terminal is cut at the end of the row."""
    known = list(rows)
    widths = [max(row[column].cell_len for row in known) for column in range(len(known[0]) - 1)]
    drawn: list[Text] = []
    for *cells, last in known:
        line = Text(" " * INDENT, no_wrap=True, overflow="ellipsis")
        for cell, width in zip(cells, widths, strict=True):
            cell.align("right" if cell.justify == "right" else "left", width)
            line.append_text(cell)
            line.append(" " if width else "")
        drawn.append(line.append_text(last))
    return Group(*drawn)


def _step(step: ResidentStep) -> list[Text]:
    return [
        Text(step.page_id, style=palette.RECALL), Text(_moment(step.at), style=palette.QUIET),
        Text(visible(step.who)[:16]), Text(f"{step.tokens:,}", justify="right"), Text(visible(step.words)),
    ]  # fmt: skip


def _fact(known: Fact | FactUse) -> list[Text]:
    fact, uses = (known.fact, f"{known.uses}x") if isinstance(known, FactUse) else (known, "")
    text = "(purged)" if fact.purged else visible(" ".join(fact.text[:400].split()))
    line = Text.assemble((f"{visible(fact.key)}: ", "bold"), text) if fact.key else Text(text)
    told = _ended(fact)
    if told:
        line = Text.assemble((f"({told}) ", palette.QUIET), line)
    return [
        Text(fact.id, style=palette.ARCHIVAL), Text(_moment(fact.at), style=palette.QUIET),
        Text(uses, justify="right"), line,
    ]  # fmt: skip


def _ended(fact: Fact) -> str:
    if fact.superseded_by:
        return f"superseded by {fact.superseded_by}"
    if fact.forgotten is not None:
        return "forgotten"
    return f"until {_moment(fact.valid_until)}" if fact.valid_until else ""


def _moved(movement: Movement) -> list[Text]:
    why = movement.reason or str(movement.detail.get("query") or movement.detail.get("block") or "")
    tokens = f"{movement.tokens:,} tokens" if movement.tokens else ""
    told = " \u00b7 ".join(filter(None, (tokens, visible(" ".join(why[:400].split())))))
    return [
        Text(_moment(movement.at), style=palette.QUIET), Text(movement.step),
        Text(visible(movement.event), style="bold"), Text(visible(movement.page_id or "")),
        Text(visible(movement.actor), style=palette.QUIET), Text(told),
    ]  # fmt: skip


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M")
