"""Branches of the conversation: it goes back to the end of an earlier turn and goes on from there.

The steps of a branch are those from its beginning up to the next one's, behind those of the branch that it left. The
ledger has each beginning: its row names the step that it follows. Nothing of the branch that is left changes: its
steps leave the prompt, a search finds them, and the conversation can go back to them as well.
"""

from collections.abc import Sequence

from pager import blocks
from pager.errors import NotFoundError, RejectedError
from pager.prompt import digest
from pager.store import Store
from pager.tokens.counter import Window
from pager.types import Counts, number_of

Span = tuple[int, int]  # the first step and the last
NEWEST_TURNS = 100  # that get a line of their own in the digest; the ones before share one


def check(store: Store, after: int) -> None:
    """Raise an error if the conversation cannot go back behind this step; 0 is its beginning."""
    row = store.conversation.step(after) if after else None
    if after and (row is None or row["kind"] == "record"):
        raise NotFoundError(f"there is no step s{after} in the conversation; give the id of a reply.")
    if row is not None and not row["ends_turn"]:
        raise RejectedError(f"s{after} does not end a turn, and a turn stays whole; give the id of its last step.")


def path(store: Store, last: int) -> list[Span]:
    """Return the steps of the branch that `last` ends, as spans in order."""
    beginnings = [
        (number_of(row.step) + 1, number_of(row.page_id or "s0")) for row in store.ledger.movements(events=["branch"])
    ]
    spans: list[Span] = []
    for first, after in reversed(beginnings):  # the newest first; of two at one step the later one holds
        if first <= last:
            spans.append((first, last))
            last = after
    if last:
        spans.append((1, last))
    return spans[::-1]


def go_back(store: Store, window: Window, after: int, reason: str) -> None:
    """Make the prompt hold the branch up to the step `after`. No turn is open; in the caller's transaction."""
    newest = store.conversation.last_step()
    here = store.prompt.resident_steps()
    turns = store.conversation.turns_within(path(store, after), without=_never_shown(store))
    ids = [step for turn in turns for step in turn]
    staying = [step for step in ids if step in set(here)]
    if not staying or staying != ids[-len(staying) :]:  # it lacks newer ones: the newest that fit come back
        staying = _newest_that_fit(store, window, turns)
    leaving, entering = sorted(set(here) - set(staying)), sorted(set(staying) - set(here))
    for step in leaving:
        store.ledger.write("evict", f"s{step}", reason=reason, tokens=0, step=newest)
        store.prompt.end_residency(f"s{step}", "step", newest, reason)
    if leaving:
        store.said.enqueue(leaving)
        store.prompt.release(leaving, newest, reason)
    for step in entering:
        store.prompt.enter(f"s{step}", "step", newest)
    page = f"s{after}" if after else None
    store.ledger.write("branch", page, reason=reason, step=newest, left=len(leaving), back=len(entering))
    _write_digest(store, [turn for turn in turns if turn[-1] not in set(staying)])
    store.prompt.end_epoch(newest)


def _never_shown(store: Store) -> set[int]:
    """Return the steps that were dropped from the prompt or withdrawn: they come back into none."""
    dropped = store.ledger.movements(events=["drop"])
    return {*store.ledger.withdrawn(), *(number_of(row.page_id or "s0") for row in dropped if _is_step(row.page_id))}


def _is_step(page: str | None) -> bool:
    return page is not None and page.startswith("s")


def _newest_that_fit(store: Store, window: Window, turns: Sequence[Sequence[int]]) -> list[int]:
    """Return the newest turns that an eviction would leave in the prompt."""
    room, kept = window.limits.target_tokens, list[int]()
    epoch = store.prompt.last_epoch()
    for turn in reversed(turns):
        steps = store.conversation.load(turn, epoch[0].id if epoch else 0)
        room -= sum(window.counter.tokens(Counts.sum(part.counts for part in step.parts)) for step in steps)
        if room < 0:
            break
        kept = [*turn, *kept]
    return kept


def _write_digest(store: Store, turns: Sequence[Sequence[int]]) -> None:
    """Give the newest epoch the digest of the turns of this branch that are not in the prompt: the next one begins
    with it."""
    found = store.prompt.last_epoch()
    if found is None:
        return
    older, newer = turns[: -NEWEST_TURNS or None], turns[-NEWEST_TURNS:]
    lines: list[digest.Line] = []
    if len(turns) > NEWEST_TURNS:
        first, last = (store.conversation.load([step], 0)[0] for step in (older[0][0], older[-1][-1]))
        lines.append(digest.Line(first.id, last.id, last.turn, len(older), first.at, last.at))
    steps = store.conversation.load([step for turn in newer for step in turn], found[0].id) if newer else []
    lines = digest.extend(lines, [digest.line_of(step) for step in steps])
    store.maintenance.put("epochs", found[0].id, digest=blocks.dump(digest.write(lines)))
