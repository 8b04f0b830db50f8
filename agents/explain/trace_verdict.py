"""Why a text was not in a request: the answer to "why did my agent forget it", in sentences. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.explain.trace_parts import Told
from agents.explain.trace_searches import searches
from agents.explain.trace_words import by, quoted
from pager import blocks
from pager.inspect.lists import normal
from pager.reader import MemoryReader
from pager.store.rows import Piece
from pager.types import FOREVER, Fact

MOST_REASONS = 6


def reasons(
    reading: MemoryReader, steps: Mapping[str, Sequence[Piece]], facts: Sequence[Fact], core: Sequence[str], wanted: str,
    at: str | None,
) -> tuple[str, ...]:  # fmt: skip
    """Why none of these places stood in the request that `at` answered (None: stands in the next one)."""
    before = FOREVER if at is None else int(at[1:])
    found = [_core(reading, name, wanted, before) for name in core]
    found += [_step(reading, page, held, before) for page, held in steps.items()]
    found += [_fact(reading, fact, wanted, before) for fact in facts]
    told = [line for line in found if line]
    if len(told) > MOST_REASONS:  # the newest say most
        told = [f"{len(told) - MOST_REASONS} more places are not told here.", *told[-MOST_REASONS:]]
    return tuple(told) or ("Nothing holds these words: nobody has said them, and no tool brought them.",)


def _step(reading: MemoryReader, page: str, held: Sequence[Piece], before: int) -> str:
    row = reading.inspect.step(page)
    if int(page[1:]) >= before:
        return f"{page} was only said after that request."
    if gone(reading, page, before):
        return f"{page} was purged: its text is gone for good."
    if row.kind == "record":
        return f"{page} was recorded from elsewhere: it is found by search_recall, and never in the prompt by itself."
    stays = [stay for stay in reading.history.residencies(page) if stay.how == "step" and stay.from_step < before]
    over = [stay for stay in stays if stay.until_step is not None and stay.until_step < before]
    if len(over) < len(stays):
        return f"{page} is in the prompt, but {_without(reading, page, held, before)}."
    if not over:
        return f"{page} never stood in the prompt."
    left, why = over[-1].until_step or 0, over[-1].reason
    return f"{page} had left the prompt after s{left}, because {why}{_since(reading, page, held, left, before)}."


def gone(reading: MemoryReader, page: str, before: int) -> bool:
    """Whether a page had been purged by then."""
    return any(row.step < before for row in reading.ledger(page=page, events=["purge"]))


def _without(reading: MemoryReader, page: str, held: Sequence[Piece], before: int) -> str:
    """Why a step that stayed is sent without these parts of it."""
    if all(piece.block.get("type") in blocks.THINKING for piece in held):
        later = (row for row in reading.ledger(events=["epoch"]) if int(page[1:]) <= row.step < before)
        opened = next(later, None)
        if opened is None:
            return "without its thinking, which was not to be sent back"
        return f"without its thinking: the epoch that began after s{opened.step} dropped it ({opened.reason})"
    spilled = [
        f"x{piece.part}"
        for piece in held
        if any(row.step < before for row in reading.ledger(page=f"x{piece.part}", events=["spill"]))
    ]
    if spilled:
        return f"this stands in a part that was too large: only its ends stay, the whole is the page {spilled[-1]}"
    return "not with this part of it, which is no longer carried"


def _since(reading: MemoryReader, page: str, held: Sequence[Piece], left: int, before: int) -> str:
    """Whether anything has looked at a page, or a part of it, since it left."""
    parts = (page, *(f"x{piece.part}" for piece in held))
    read = [row.step for each in parts for row in reading.ledger(page=each, events=["page_in"])]
    if since := [step for step in read if left < step < before]:
        return f"; it was last paged in after s{max(since)}"
    asked = [told for told in _asked(reading, page, "", before) if told.step and int(told.step[1:]) > left]
    if asked:
        return f"; the last search that met it came {_after(asked[-1])}, and nothing paged it in"
    return "; since then no search has met it, and nothing paged it in"


def _fact(reading: MemoryReader, fact: Fact, wanted: str, before: int) -> str:
    if fact.step >= before:
        return f"{fact.id} was only archived after that request."
    if gone(reading, fact.id, before):
        return f"{fact.id} was purged: its text is gone for good."
    if fact.purged:
        return f"{fact.id} was not carried as a page; it was purged since, and nothing tells where its words stood."
    ended = [row for row in reading.ledger(page=fact.id, events=["supersede", "forget"]) if row.step < before]
    if ended and ended[-1].event == "forget":
        return f"{fact.id} had ended: {by(ended[-1].actor)} said after s{ended[-1].step}: {ended[-1].reason}"
    if ended:
        return f"{fact.id} had been superseded by {ended[-1].detail.get('by')} after s{ended[-1].step}."
    asked = [told for told in _asked(reading, fact.id, wanted, before) if told.at >= fact.at]
    if not asked:
        return f"{fact.id} was in the archive, and nothing has asked for it."
    if asked[-1].found:
        return f"{fact.id} was in the archive; a search found it {_after(asked[-1])}, and what it answered has left."
    return f"{fact.id} was in the archive, and the last search missed it, {_after(asked[-1])}: {asked[-1].text}"


def _asked(reading: MemoryReader, page: str, wanted: str, before: int) -> list[Told]:
    """The searches until then that met a page, or asked for it in its words."""
    return [told for told in searches(reading, [page], wanted) if not told.step or int(told.step[1:]) < before]


def _after(told: Told) -> str:
    return f"after {told.step}" if told.step else "before the first step"


def _core(reading: MemoryReader, name: str, wanted: str, before: int) -> str:
    history = [version for version in reading.inspect.core_history(name) if version.step < before]
    held = [version for version in history if wanted in normal(version.block.value)]
    block = f"the core block {quoted(name)}"
    if not held:
        return f"It was only written into {block} after that request."
    if held[-1] is history[-1]:
        return f"It stands in {block} since version {held[-1].ordinal}, which the prompt has not shown yet."
    after = history[history.index(held[-1]) + 1]
    return f"It stood in {block} until {by(after.block.actor)} changed that after s{after.step}."
