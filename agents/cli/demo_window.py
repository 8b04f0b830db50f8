"""The demo's chapters on the window: eighty turns through 6,000 tokens, and what that saves."""

from __future__ import annotations

from collections.abc import Sequence

from agents.cli.demo_memory import WHO
from agents.cli.demo_page import BAR_CELLS, Page
from agents.demo import measure
from agents.demo.stage import DemoFailed, Process, Stage, Turn, trip
from agents.explain import snapshot
from agents.rehearsal import usage
from pager import blocks
from pager.reader import MemoryReader

BAR_EVERY = 5
MEASURED = (10, 40, 80)


def eighty_turns(stage: Stage, page: Page, talk: Process) -> list[Turn]:
    messages = trip()
    page.heading(f"3  {len(messages)} turns through a window of 6,000 tokens")
    page.prose(
        "Dana plans a journey by train. Each line below is the agent's window after a turn. Where it is too full the "
        "oldest steps leave it, in one move; they stay on disk, and can be found."
    )
    page.put("")
    turns: list[Turn] = []
    with stage.reading("guide") as memory:
        page.window(snapshot.take(memory))
        page.quiet(f"turn {'window':{BAR_CELLS}} {'tokens':>6}  what {WHO} said")
        for number, message in enumerate(messages, start=1):
            before = snapshot.take(memory)
            turn = talk.say(message)
            turns.append(turn)
            if turn.moved("evict") and (number - 1) % BAR_EVERY:
                page.bar(str(number - 1), before, messages[number - 2])
            _tell(page, turn)
            if _page_read(turn):
                page.turn(WHO, turn)
            if turn.moved("evict") or _page_read(turn) or number % BAR_EVERY == 0:
                page.bar(str(number), snapshot.take(memory), message)
        page.put("")
        page.window(snapshot.take(memory))
        _check(page, memory, turns)
    return turns


def _tell(page: Page, turn: Turn) -> None:
    for notice in turn.moved("notice"):
        page.quiet(f"     \u25b3 the agent is told that its window fills ({notice['tokens']:,} tokens)")
    if gone := turn.moved("evict"):
        size = sum(step["tokens"] for step in gone)
        told = f"{gone[0]['page_id']} to {gone[-1]['page_id']} leave: {size:,} tokens, because {gone[0]['reason']}"
        page.moved(told)


def _page_read(turn: Turn) -> str:
    """The page that the agent has read again in this turn."""
    return next((call.input["page_id"] for call in turn.calls if call.name == "page_in"), "")


def _check(page: Page, memory: MemoryReader, turns: Sequence[Turn]) -> None:
    limits = memory.history.limits_at()
    sizes = [cost.whole_input for turn in turns for _, cost in turn.usages]
    page.check(
        limits and max(sizes) <= limits.usable_tokens,
        f"{len(sizes)} requests, the largest {max(sizes):,} tokens; {limits.usable_tokens if limits else 0:,} may be",
    )
    evictions = [turn.moved("evict") for turn in turns if turn.moved("evict")]
    page.check(
        len(evictions) >= 2,
        f"{len(evictions)} evictions, {sum(map(len, evictions))} steps left the window",
    )
    said = _said_by_people(memory)
    page.check(
        all(turn.asked in said for turn in turns), f"all {len(turns)} messages are on disk, word for word, by their ids"
    )
    back = [(turn, page_id) for turn in turns if (page_id := _page_read(turn))]
    page.check(len(back) >= 2, f"{len(back)} evicted turns were asked for, and came back by the agent's own tools:")
    for turn, page_id in back:
        text, stay = memory.page(page_id), memory.history.residencies(page_id)[0]
        page.check(
            stay.until_step is not None
            and stay.until_step < int(turn.usages[0][0][1:])
            and any(call.name == "search_recall" and page_id in call.result for call in turn.calls)
            and text in turn.answer,
            f"{page_id} of turn {_turn_of(text, turns)} had left; in turn {_turn_of(turn.asked, turns)} it was found "
            "by search_recall, read by page_in and quoted word for word",
        )


def _turn_of(text: str, turns: Sequence[Turn]) -> int:
    number = next((number for number, turn in enumerate(turns, start=1) if turn.asked == text), None)
    if number is None:
        raise DemoFailed(f"this was never said in the demo: {text[:80]!r}")
    return number


def _said_by_people(memory: MemoryReader) -> set[str]:
    steps = (memory.history.blocks_of(f"s{number}") for number in range(1, memory.history.prompt().steps[-1].id + 1))
    return {blocks.text_of(block) for step in steps for block in step if block["type"] == "text"}


def savings(stage: Stage, page: Page, paging: Sequence[Turn], everything: Sequence[Turn]) -> None:
    page.heading("5  What paging saves")
    page.prose(
        "Meanwhile the same agent, with a window of 200,000 tokens, was told the same: everything stays in its prompt. "
        "Tokens of the real requests, as their replies count them, over all turns so far:"
    )
    page.put("")
    whole = [measure.sent(everything, until) for until in MEASURED]
    paged = [measure.sent(paging, until) for until in MEASURED]
    columns = [
        "turn",
        *(f"{who}\n{what}" for who in ("everything", "paging") for what in ("request", "sent", "cached")),
    ]
    page.table(columns, [[str(a.turn), *_cells(a), *_cells(b)] for a, b in zip(whole, paged, strict=True)])
    for name, turns, rows in (("everything", everything, whole), ("guide", paging, paged)):
        with stage.reading(name) as memory:
            _check_measures(page, memory, name, turns, rows)
    a, b = whole[-1], paged[-1]
    page.check(
        b.total_tokens < a.total_tokens,
        f"after {b.turn} turns paging has sent {_against(b.total_tokens, a.total_tokens)}; with a cache that costs 0.1 "
        f"to read and 1.25 to write the price is {_against(b.priced_tokens, a.priced_tokens)}",
    )
    page.check(
        b.largest_tokens < a.largest_tokens,
        f"no request of it was larger than {b.largest_tokens:,}, the other is at {a.largest_tokens:,} and grows",
    )


def _check_measures(
    page: Page, memory: MemoryReader, name: str, turns: Sequence[Turn], rows: Sequence[measure.Sent]
) -> None:
    kept = [memory.history.prompt(step).answered for turn in turns for step, _ in turn.usages]
    told = [cost for turn in turns for _, cost in turn.usages]
    made_again = [usage.places(memory.history.rebuild(row.last_step))[-1].tokens for row in rows]
    page.check(
        [answered.usage for answered in kept if answered] == told
        and made_again == [row.request_tokens for row in rows],
        f"{name}: {len(told)} requests are on disk with these numbers; those of turns "
        f"{', '.join(map(str, MEASURED))} were made again from disk, and counted",
    )


def _cells(row: measure.Sent) -> list[str]:
    return [f"{row.request_tokens:,}", f"{row.total_tokens:,}", f"{row.read_share:.0%}"]


def _against(one: float, other: float) -> str:
    share = round(100 * abs(1 - one / other))
    return f"{share} % {'less' if one <= other else 'more'}"
