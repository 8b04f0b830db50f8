"""The reasons why a text was not in a request, in sentences: the answer to "why did my agent forget it"."""

import sys
from collections.abc import Mapping, Sequence

from agents.explain import AnyMemory
from agents.explain.trace_events import TraceEvent, by, quoted, searches
from pager.clock import format_minute
from pager.inspect import Places, SaidPart, normalize_text
from pager.types import Fact, read_step_id


def reasons(
    reader: AnyMemory, places: Places, steps: Mapping[str, Sequence[SaidPart]], wanted: str, at: str | None,
    names: Sequence[str],
) -> tuple[str, ...]:  # fmt: skip
    """Return why these places, pages by their ids and core blocks by their names, did not stand in the request that
    `at` answered; for None in the next one."""
    if not names:
        return ("Nothing holds these words: nobody has said them, and no tool brought them.",)
    facts = {fact.id: fact for fact in places.facts}
    lines: list[str] = []
    for name in names:
        if name in places.core:
            lines.append(_core(reader, name, wanted, at))
        elif name in facts:
            lines.append(_fact(reader, facts[name], wanted, at))
        elif name in steps:
            lines.append(_step_reason(reader, name, steps[name], at))
        else:
            lines.append(f"{name} is a skill whose text no tool has read, or whose reading has left the prompt.")
    return tuple(lines)


def is_purged(reader: AnyMemory, page: str, at: str | None) -> bool:
    """Return True if a page had been purged before the request that `at` answered."""
    return bool(reader.ledger(page=page, events=["purge"], at=at))


def _core(reader: AnyMemory, name: str, wanted: str, at: str | None) -> str:
    history = [version for version in reader.history.core_versions(name) if _number(version.step) < _number(at)]
    holding = [place for place, version in enumerate(history) if wanted in normalize_text(version.block.value)]
    block = f"the core block {quoted(name)}"
    if not holding:
        return f"It was only written into {block} after that request."
    if holding[-1] == len(history) - 1:
        return f"It stands in {block} since version {history[-1].ordinal}, which the prompt has not shown yet."
    after = history[holding[-1] + 1]
    return f"It stood in {block} until {by(after.block.actor)} changed that after {after.step}."


def _step_reason(reader: AnyMemory, page: str, parts: Sequence[SaidPart], at: str | None) -> str:
    before = _number(at)
    if _number(page) >= before:
        return f"{page} was only said after that request."
    if is_purged(reader, page, at):
        return f"{page} was purged: its text is gone for good."
    if withdrawn := reader.ledger(page=page, events=["withdraw"], at=at):
        row, turn = withdrawn[-1], reader.inspect.step(page).turn
        return (
            f"{page} was withdrawn after {row.step}: {by(row.actor)} took the turn of {turn} back. No search finds it."
        )
    if reader.inspect.step(page).kind == "record":
        return f"{page} was recorded from elsewhere: it is found by search_recall, and never in the prompt by itself."
    stays = [row for row in reader.history.residencies(page) if row.how == "step" and _number(row.from_step) < before]
    ended = [row for row in stays if row.until_step and _number(row.until_step) < before]
    if len(ended) < len(stays):
        missing = "not with this part of it, which is no longer sent"
        spilled = [part.page_id for part in parts if reader.ledger(page=part.page_id, events=["spill"], at=at)]
        if all(part.is_thinking for part in parts):
            missing = "without its thinking, which was not to be sent back"
            rows = (row for row in reader.ledger(events=["epoch"], at=at) if _number(row.step) >= _number(page))
            if opened := next(rows, None):
                epoch = f"the epoch that began after {opened.step}"
                missing = f"without its thinking: {epoch} dropped it ({opened.reason})"
        elif spilled:
            stays = f"only its ends stay, the whole is the page {spilled[-1]}"
            missing = f"this stands in a part that was too large: {stays}"
        return f"{page} is in the prompt, but {missing}."
    if not ended:
        return f"{page} never stood in the prompt."
    left, why = ended[-1].until_step or "", ended[-1].reason
    return f"{page} had left the prompt after {left}, because {why}{_since(reader, page, parts, left, at)}."


def _since(reader: AnyMemory, page: str, parts: Sequence[SaidPart], left: str, at: str | None) -> str:
    """Return the last read of a page, or of a part of it, since it left."""
    pages = (page, *(part.page_id for part in parts))
    rows = [row for each in pages for row in reader.ledger(page=each, events=["page_in"], at=at)]
    if since := [row for row in rows if _number(row.step) > _number(left)]:
        return f"; it was last paged in after {max(since, key=lambda row: row.number).step}"
    text = " ".join(part.text for part in parts)
    met = [
        event for event in _searches(reader, page, text, "", at) if event.step and _number(event.step) > _number(left)
    ]
    if met:
        return f"; the last search that met it came after {met[-1].step}, and nothing paged it in"
    return "; since then no search has met it, and nothing paged it in"


def _fact(reader: AnyMemory, fact: Fact, wanted: str, at: str | None) -> str:
    if _number(fact.step) >= _number(at):
        return f"{fact.id} was only archived after that request."
    if is_purged(reader, fact.id, at):
        return f"{fact.id} was purged: its text is gone for good."
    if fact.purged:
        return f"{fact.id} did not stand there as a page; it was purged since, so its words cannot be looked for."
    ended = reader.ledger(page=fact.id, events=["supersede", "forget"], at=at)
    if ended and ended[-1].event == "forget":
        return f"{fact.id} had ended: {by(ended[-1].actor)} said after {ended[-1].step}: {ended[-1].reason}"
    if ended:
        return f"{fact.id} had been superseded by {ended[-1].detail.get('by')} after {ended[-1].step}."
    asked_at = reader.inspect.present() if at is None else reader.inspect.step(at).at
    if fact.expires is not None and fact.expires <= asked_at:
        return f"{fact.id} had expired at {format_minute(fact.expires)}: it was stored to be true until then."
    found = [event for event in _searches(reader, fact.id, fact.text, wanted, at) if event.at >= fact.at]
    if not found:
        return f"{fact.id} was in the archive, and nothing has asked for it."
    last = found[-1]
    when = f"after {last.step}" if last.step else "before the first step"
    if last.found:
        return f"{fact.id} was in the archive; a search found it {when}, and its result has left the prompt."
    return f"{fact.id} was in the archive, and the last search missed it, {when}: {last.text}"


def _searches(reader: AnyMemory, page: str, text: str, wanted: str, at: str | None) -> list[TraceEvent]:
    events = searches(reader, {page: text}, wanted)
    return [event for event in events if not event.step or _number(event.step) < _number(at)]


def _number(at: str | None) -> int:
    return sys.maxsize if at is None else read_step_id(at)
