"""Draw on a terminal with rich: a snapshot (the window as one bar, the tiers, the last movements), or a trace.

Whatever comes from the memory is shown as text. It is never read as markup, and characters that would move the cursor,
change colours or turn the direction of writing are made visible.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agents import palette
from agents.cli.visible import counted, visible
from agents.explain.snapshot import Snapshot
from agents.explain.trace import Trace, Verdict
from agents.explain.trace_events import TraceEvent
from pager import Checklist
from pager.clock import format_minute
from pager.inspect import ResidentStep, WindowUse
from pager.types import Block, Fact, FactUse, Movement

MARGIN = 2
INDENT = 4
METER_CELLS = 12
NARROW = 72  # below it, columns leave no room for the text beside them
MOST_LINES = 4  # of a core block
MARK = "\u25b2"
YES, NO = "\u25cf", "\u25cb"
TIER_OF_EVENT = {
    "core": "core", "archive": "archival", "repeat": "archival", "supersede": "archival", "forget": "archival",
    "expire": "archival", "end": "archival", "restore": "archival", "reopen": "archival", "sleep": "archival",
    "source": "archival",
    "recall": "archival", "page_out": "archival",
}  # fmt: skip


class Drawing:
    """Draws for one console: its width, and whether it has colours. `brief` fits a screen that changes live."""

    def __init__(self, console: Console, *, brief: bool = False) -> None:
        self._plain = console.no_color or console.color_system is None
        self._width = max(20, console.width - MARGIN)
        self._brief = brief
        self._steps = 5 if brief else 12

    def whole(self, name: str, snapshot: Snapshot) -> RenderableType:
        """Return the drawing of a snapshot."""
        sections = [self._window(snapshot.window), self._core(snapshot), self._turns(snapshot), self._archive(snapshot)]
        moved = _rows(map(_moved, snapshot.movements)) if snapshot.movements else _quiet("Nothing has moved yet.")
        movements = iter((_title("Movements", "the last ones" if snapshot.movements else ""), moved))
        sections.insert(1 if self._brief else len(sections), movements)
        then = f"as it was in the request that {snapshot.at} answered" if snapshot.at else "now"
        model = f" \u00b7 {visible(snapshot.window.model)}" if snapshot.window.model else ""
        heading = Text.assemble((visible(name), "bold"), f", {then}", (model, palette.QUIET))
        return Group(heading, *(each for section in sections for each in (Text(), *section)))

    def _window(self, window: WindowUse) -> Iterator[RenderableType]:
        if window.usable_tokens is None:
            yield _title("Window", "")
            yield _quiet("Nothing was sent to a model yet. Talk to it: selfpager chat AGENT.yaml, or selfpager run.")
            return
        share = round(100 * window.used_tokens / window.usable_tokens)
        about = "" if window.counted else "about "
        reply = f", and {window.max_output_tokens:,} for the reply" if window.max_output_tokens else ""
        yield _title("Window", f"{about}{window.used_tokens:,} of {window.usable_tokens:,} tokens ({share} %){reply}")
        line = Text(" " * MARGIN)
        for name, cells in bar_cells(window, self._width - MARGIN):
            line.append_text(self._paint(name, "\u2500" if name == "free" else "\u2588", cells))
        yield line
        if limits := window.thresholds:
            yield _quiet(bar_marks(window, self._width - MARGIN), MARGIN)
            names = f"evict at {limits.evict_at:,} \u00b7 down to {limits.evict_to:,}"
            yield _quiet(f"{MARK} notify at {limits.notify_at:,} \u00b7 {names}", MARGIN)
        parts = [*((part.name, part.tokens) for part in window.parts if part.tokens), ("free", window.free_tokens or 0)]
        legend = [Text.assemble(self._paint(name, "\u25a0", 1), f" {name} {tokens:,}") for name, tokens in parts]
        yield Padding(Columns(legend, padding=(0, 2)), (0, 0, 0, MARGIN))
        if window.epoch is not None:
            state = f"epoch {window.epoch}, opened because: {visible(window.epoch_reason)}"
            if window.ended:
                state += "; it has ended, the next request opens another"
            elif window.noticed:
                state += "; the agent was told that the window fills"
            yield _quiet(state, MARGIN)

    def _paint(self, part: str, character: str, cells: int) -> Text:
        """Return cells of a part in its colour; without colours they are its letter."""
        paint = palette.WINDOW[part]
        return Text((paint.letter if self._plain else character) * cells, style=paint.colour)

    def _core(self, snapshot: Snapshot) -> Iterator[RenderableType]:
        tier = snapshot.core
        if not tier.blocks:
            yield _title("Core", "", "core")
            yield _quiet("No core blocks. Name them under core.blocks in its YAML.")
            return
        limit = f" of {tier.limit_tokens:,}" if tier.limit_tokens else ""
        yield _title("Core", f"{tier.used_tokens:,}{limit} tokens", "core")
        if self._brief:
            yield _rows(self._block(block, tier.plans.get(block.name)) for block in tier.blocks)
            return
        for block in tier.blocks:
            yield _rows([self._block(block, tier.plans.get(block.name))])
            lines = block.value.split("\n") if block.value else ["(empty)"]
            for line in lines[:MOST_LINES]:
                yield Text(f"      {visible(line)}", no_wrap=True, overflow="ellipsis")
            if len(lines) > MOST_LINES:
                yield _quiet(f"\u2026 {len(lines) - MOST_LINES} more lines (--json has them)", INDENT + 2)

    def _block(self, block: Block, plan: Checklist | None) -> list[Text]:
        cells = min(METER_CELLS, round(METER_CELLS * block.used_tokens / max(1, block.limit_tokens)))
        full, empty = ("#", ".") if self._plain else ("\u2588", "\u2500")
        style = palette.CORE if block.used_tokens < block.limit_tokens else palette.WARNING
        meter = Text.assemble((full * cells, style), (empty * (METER_CELLS - cells), palette.QUIET))
        about = [f"v{block.version}", f"{visible(block.actor)} {format_minute(block.at)}"]
        about += [str(plan)] if plan else []
        about += ["read-only"] if block.read_only else []
        about += [f"via {', '.join(block.via)}"] if block.via else []
        about += [f"from {visible(block.file)}"] if block.file else []
        return [
            Text(visible(block.name), style="bold"), meter,
            Text(f"{block.used_tokens:,}/{block.limit_tokens:,}", justify="right"),
            Text(" \u00b7 ".join(about), style=palette.QUIET),
        ]  # fmt: skip

    def _turns(self, snapshot: Snapshot) -> Iterator[RenderableType]:
        steps = snapshot.steps
        if not steps:
            yield _title("Turns", "", "recall")
            yield _quiet("No turn is in the prompt. What is said next will stand here.")
            return
        yield _title(
            "Turns",
            f"{len(steps)} steps in the prompt, {steps[0].page_id} to {steps[-1].page_id}",
            "recall",
        )
        if len(steps) > self._steps:
            yield _quiet(f"\u2026 {len(steps) - self._steps} older steps")
        yield _rows(map(_step_cells, steps[-self._steps :]))
        pages = [f"{page.page_id} {page.how.replace('_', ' ')} since {page.from_step}" for page in snapshot.pages]
        if pages:
            yield _quiet(f"also in the prompt: {', '.join(pages)}")

    def _archive(self, snapshot: Snapshot) -> Iterator[RenderableType]:
        archive = snapshot.archive
        if not archive.total:
            then = " by then" if snapshot.at else ""
            yield _title("Archive", "", "archival")
            none = f"No fact was archived{then}. The agent stores facts as it talks; you can in the view."
            yield _quiet(none)
            return
        of_now = "" if archive.current is None else f", {archive.current:,} current, {archive.never_used:,} never used"
        yield _title("Archive", f"{counted(archive.total, 'fact')}{of_now}", "archival")
        lists = {"newest": archive.newest, "most used": archive.most_used, "never used": archive.unused}
        for label, facts in lists.items():
            if facts:
                yield _quiet(label)
                yield _rows(map(_fact, facts[:2] if self._brief else facts))


def bar_cells(window: WindowUse, width: int) -> list[tuple[str, int]]:
    """Return the number of cells of each part, in order; the last is what is free. They add up to `width`."""
    ends = accumulate(part.tokens for part in window.parts)
    reached = [round(width * end / _whole(window)) for end in ends]
    names = [*(part.name for part in window.parts), "free"]
    return [(name, end - start) for name, start, end in zip(names, [0, *reached], [*reached, width], strict=True)]


def bar_marks(window: WindowUse, width: int) -> str:
    """Return the line below the bar, with a mark at each threshold."""
    limits, line = window.thresholds, [" "] * width
    for tokens in (limits.evict_to, limits.notify_at, limits.evict_at) if limits else ():
        line[min(width - 1, round(width * tokens / _whole(window)))] = MARK
    return "".join(line).rstrip()


def _whole(window: WindowUse) -> int:
    """Return the tokens of the whole bar: the usable ones, or the used ones if the window was made smaller since."""
    return max(1, window.usable_tokens or 0, window.used_tokens)


def _title(title: str, about: str, tier: str = "") -> Text:
    return Text.assemble((title, f"bold {palette.TIERS.get(tier, '')}".strip()), f"  {about}" if about else "")


def _quiet(text: str, indent: int = INDENT) -> RenderableType:
    return Padding(Text(text, style=palette.QUIET), (0, 0, 0, indent), expand=False)


def _rows(rows: Iterable[Sequence[Text]], *, cut: bool = True) -> RenderableType:
    """Return columns without lines. What is too wide for the terminal is cut at the row's end, or goes on below."""
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    grid = Table.grid(padding=(0, 1))
    for _ in columns[1:]:
        grid.add_column(no_wrap=True)
    for *cells, last in zip(*columns, strict=True):
        last.no_wrap, last.overflow = cut, "ellipsis" if cut else "fold"
        grid.add_row(*cells, last)
    return Padding(grid, (0, 0, 0, INDENT), expand=False)


def _step_cells(step: ResidentStep) -> list[Text]:
    return [
        Text(step.page_id, style=palette.RECALL), Text(format_minute(step.at), style=palette.QUIET),
        Text(visible(step.who)[:16]), Text(f"{step.tokens:,}", justify="right"), Text(visible(step.words)),
    ]  # fmt: skip


def _fact(row: Fact | FactUse) -> list[Text]:
    fact, uses = (row.fact, f"{row.uses}x") if isinstance(row, FactUse) else (row, "")
    ended = ""
    if fact.superseded_by:
        ended = f"(superseded by {fact.superseded_by}) "
    elif fact.forgotten is not None:
        ended = "(forgotten) "
    elif fact.valid_until:
        ended = f"(until {format_minute(fact.valid_until)}) "
    ended += f"[via {visible(', '.join(fact.via))}] " if fact.via else ""
    key = f"{visible(fact.key)}: " if fact.key else ""
    text = "(purged)" if fact.purged else visible(" ".join(fact.text[:400].split()))
    return [
        Text(fact.id, style=palette.ARCHIVAL), Text(format_minute(fact.at), style=palette.QUIET),
        Text(uses, justify="right"), Text.assemble((ended, palette.QUIET), (key, "bold"), text),
    ]  # fmt: skip


def _moved(movement: Movement) -> list[Text]:
    why = movement.reason or str(movement.detail.get("query") or movement.detail.get("block") or "")
    tokens = f"{movement.tokens:,} tokens" if movement.tokens else ""
    about = " \u00b7 ".join(filter(None, (tokens, visible(" ".join(why[:400].split())))))
    return [
        Text(format_minute(movement.at), style=palette.QUIET), Text(movement.step),
        Text(visible(movement.event), style="bold"), Text(visible(movement.page_id or "")),
        Text(visible(movement.actor), style=palette.QUIET), Text(about),
    ]  # fmt: skip


def drawn_trace(found: Trace) -> RenderableType:
    """Return the drawing of a trace: the answer, the pages, the searches, what is similar."""
    near = [_line("", f"{each.page_id}  {visible(each.text)}") for each in found.near]
    title = [Text(), Text("What a search for it finds", style="bold")] if near else []
    return Group(*_answer(found.verdict), *_lives(found), *_searches(found), *title, *near)


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
    return Padding(Text.assemble(mark, text, overflow="fold"), (0, 0, 0, INDENT), expand=False)


def _lives(found: Trace) -> Iterator[RenderableType]:
    for life in found.pages:
        name = life.page_id or f"core block {visible(life.block or '')}"
        yield Text()
        yield Text.assemble(
            (name, "bold"), ("  in the prompt" if life.present else "  not in the prompt", palette.QUIET)
        )
        first, *others = life.events
        if life.more_events:
            yield _Events([first])
            yield _quiet(f"\u2026 {life.more_events} more events")
            yield _Events(others)
        else:
            yield _Events(life.events)
    if found.more_pages or found.uncounted:
        more = f"{'more than ' if found.uncounted else ''}{found.more_pages:,} more places hold it"
        yield _quiet(f"\u2026 {more}: --limit shows more, a longer piece of the text finds fewer.", 0)


def _searches(found: Trace) -> Iterator[RenderableType]:
    if not found.searches:
        return
    yield Text()
    yield Text("Searches for it, the newest first", style="bold")
    yield _Events(found.searches)
    if found.more_searches:
        yield _quiet(f"\u2026 {found.more_searches:,} earlier ones")


class _Events:
    """Draws the events of a trace: a row for each, or where the terminal is narrow a heading with the text below it."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        self._rows = [_event(event) for event in events]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if options.max_width >= NARROW:
            yield _rows(self._rows, cut=False)
            return
        for *cells, text in self._rows:
            yield Padding(Text(" ").join(cell for cell in cells if cell), (0, 0, 0, INDENT // 2), expand=False)
            yield Padding(text, (0, 0, 0, INDENT), expand=False)


def _event(event: TraceEvent) -> list[Text]:
    colour = palette.TIERS[TIER_OF_EVENT.get(event.event, "recall")]
    name = {None: event.event, True: "found", False: "missed"}[event.found]
    return [
        Text(format_minute(event.at), style=palette.QUIET), Text(event.step),
        Text(name, style=palette.WARNING if event.found is False else colour), Text(visible(event.text)),
    ]  # fmt: skip
