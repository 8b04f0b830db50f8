"""Withdraw the last turn: as far as the prompt, the current facts and core go, it was never said.

Nothing is deleted. Its steps leave the prompt, and no search finds them; their ids, lists and `trace` do. Facts that
the agent stored in it end, what they superseded or what it forgot is true again, and core blocks get back the texts
that they had. What a person changed since stays. Steps that an eviction took out of the prompt meanwhile stay out.

`plan` reads and decides, `withdraw` carries it out in the caller's transaction.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pager import blocks
from pager.errors import RejectedError
from pager.prompt import digest
from pager.prompt.digest import Line
from pager.store import Store
from pager.store.archive import read_origins
from pager.store.rows import Origin
from pager.tiers import Tiers
from pager.tiers.trust import take_back, to_restore
from pager.types import Block, Fact, Movement, Withdrawn, number_of

AGENT, MEMORY, PERSON = "agent", "pager", "person"  # actors
MOVED = ("archive", "repeat", "restore", "forget", "pin", "unpin")


@dataclass(slots=True)
class Plan:
    """What has to be done to withdraw a turn."""

    turn: int
    steps: list[int]
    tools: list[str]
    ending: list[Fact] = field(default_factory=list[Fact])
    restoring: list[Fact] = field(default_factory=list[Fact])
    sources: dict[str, list[Origin]] = field(default_factory=dict[str, "list[Origin]"])  # of facts that stay
    ends: dict[str, datetime | None] = field(default_factory=dict[str, "datetime | None"])  # of facts, from before
    blocks: list[tuple[Block, Block | None]] = field(default_factory=list[tuple[Block, Block | None]])  # now, before
    kept: list[str] = field(default_factory=list[str])  # blocks that somebody else changed since
    pins: dict[str, bool] = field(default_factory=dict[str, bool])  # pages whose pin changed: True if they had one

    @property
    def reason(self) -> str:
        """Return the reason of all that follows from it, for the ledger."""
        return f"the turn s{self.turn} was withdrawn"


def newest_turn(store: Store) -> int:
    """Return the newest turn that was not withdrawn. Raise RejectedError if there is none."""
    turn = store.conversation.newest_turn(without=store.ledger.withdrawn())
    if turn is None:
        raise RejectedError("there is no turn to withdraw: nothing was said, or all of it is withdrawn.")
    return turn


def plan(store: Store, tiers: Tiers, turn: int) -> Plan:
    """Decide what withdrawing a turn means. Writes nothing."""
    made = Plan(turn, store.conversation.steps_of(turn), store.conversation.tools_begun(turn))
    rows = store.ledger.movements(events=MOVED, after=store.last_before("ledger", turn))
    own = [row for row in rows if row.actor == AGENT]
    stored = {row.page_id or "" for row in own if row.event == "archive"}
    for row in rows:  # an earlier one may have stored one of its facts anew
        if row.event == "restore" and row.detail.get("of") in stored:
            stored.add(row.page_id or "")
    for page in sorted(stored | {row.page_id or "" for row in own if row.event == "repeat"}, key=number_of):
        _plan_fact(store, made, page, own, is_new=page in stored)
    theirs = {page for page in stored if page not in made.sources}
    undone = {row.page_id or "" for row in own if row.event == "forget"}
    made.ends = _ends_before(rows)
    made.restoring = to_restore(store, theirs, undone, tiers.archive.present(), made.ends)
    for block in store.core.blocks():
        _plan_block(store, made, block)
    _plan_pins(store, made, rows)
    return made


def _plan_fact(store: Store, made: Plan, page: str, own: Sequence[Movement], *, is_new: bool) -> None:
    """Decide what becomes of a fact that the agent stored or said again: it ends, unless it has another source."""
    fact = store.archive.fact(number_of(page))
    if fact is None or fact.purged:
        return
    rows = [row for row in own if row.page_id == page and row.event in ("archive", "repeat")]
    names, origins = {row.detail.get("source") for row in rows}, store.archive.origins(number_of(page))
    struck = [origin for row in rows for origin in read_origins(row.detail.get("struck", ()))]
    left = [each for each in origins if each.source.origin not in names or _is_before(each, made.turn)]
    left += [each for each in struck if each not in left and _is_before(each, made.turn)]
    if left and rows and left != origins:
        made.sources[page] = left
    elif is_new and fact.forgotten is None:
        made.ending.append(fact)


def _ends_before(rows: Iterable[Movement]) -> dict[str, datetime | None]:
    """Return the ends that facts had before the agent renewed them, but for those that somebody renewed since."""
    ends = dict[str, datetime | None]()
    for row in rows:
        if row.event == "restore" and row.page_id and row.detail.get("of") in ends:
            ends[row.page_id] = ends[row.detail["of"]]  # a later turn that was withdrawn had ended it
        if row.event == "repeat" and row.page_id and "until" in row.detail:
            if row.actor != AGENT:
                ends.pop(row.page_id, None)
            elif row.page_id not in ends:
                before = row.detail.get("until_before")
                ends[row.page_id] = datetime.fromisoformat(before) if before else None
    return ends


def _is_before(origin: Origin, turn: int) -> bool:
    return number_of(origin.source.step or "s0") < turn


def _plan_block(store: Store, made: Plan, block: Block) -> None:
    """Decide which text a block gets back, if the agent wrote to it."""
    versions = store.lists.core_versions(block.name)
    since = range(len(versions))
    own = [i for i in since if versions[i].block.actor == AGENT and number_of(versions[i].step) >= made.turn]
    if not own:
        return
    before = versions[own[0] - 1].block if own[0] else None
    for earlier, later in zip(versions[own[0] :], versions[own[0] + 1 :], strict=False):
        if later.block.actor not in (AGENT, MEMORY) and later.block.value != earlier.block.value:
            made.kept.append(block.name)
            return
    if (before.value, before.via) != (block.value, block.via) if before else block.value:
        made.blocks.append((block, before))


def _plan_pins(store: Store, made: Plan, rows: Iterable[Movement]) -> None:
    moved = [row for row in rows if row.event in ("pin", "unpin")]
    for page in dict.fromkeys(row.page_id or "" for row in moved):
        if any(row.actor == PERSON for row in moved if row.page_id == page):
            continue
        first = next(row.number for row in moved if row.page_id == page)
        earlier = store.ledger.movements(page=page, events=("pin", "unpin"))
        before = [row.event for row in earlier if row.number < first]
        made.pins[page] = before[-1:] == ["pin"]


def withdraw(store: Store, tiers: Tiers, made: Plan, actor: str) -> Withdrawn:
    """Carry a plan out, in the caller's transaction."""
    reason, last = made.reason, store.conversation.last_step()
    said = [text for step in made.steps[:1] for text in map(blocks.text_of, store.conversation.originals(step))]
    for page, before in made.ends.items():
        fact = store.archive.fact(number_of(page))
        if fact and not fact.purged and fact.expires != before:
            tiers.archive.give_end_back(fact, before, reason, actor)
    back = take_back(tiers.archive, tiers.pages, made.ending, made.restoring, reason, actor)
    for page, origins in made.sources.items():
        store.archive.put_sources(number_of(page), origins)
        store.ledger.write("source", page, reason=f"{reason}, another source stays", actor=actor)
    for block, before in made.blocks:
        value, via = (before.value, before.via) if before else ("", ())
        tiers.core.restore(block, value, via, MEMORY, reason)
    _put_pins_back(store, tiers, made, back)
    for number, step in enumerate(made.steps):
        tools = made.tools if number == 0 else []
        store.ledger.write("withdraw", f"s{step}", reason=reason, actor=actor, tools=tools)
        store.conversation.end_turn(step)
        for how in ("step", "request"):
            store.prompt.end_residency(f"s{step}", how, last, reason)
    store.prompt.release(made.steps, last, reason)
    store.said.enqueue(made.steps)
    _shorten_digest(store, made)
    store.prompt.end_epoch(last)
    return Withdrawn(
        text="\n".join(said), steps=tuple(f"s{step}" for step in made.steps),
        facts=tuple(fact.id for fact in made.ending), restored=tuple(back.values()),
        blocks=tuple(block.name for block, _ in made.blocks), kept=tuple(made.kept), tools=tuple(made.tools),
    )  # fmt: skip


def _put_pins_back(store: Store, tiers: Tiers, made: Plan, back: dict[str, str]) -> None:
    """Pin again what the turn unpinned, and unpin what it pinned, or what is a page of the turn itself."""
    for page, was_pinned in made.pins.items():
        is_pinned = (now := back.get(page, page)) in {pin.page_id for pin in store.prompt.pins()}
        if was_pinned and not is_pinned:
            tiers.pages.pin_again(now, made.reason)
        elif is_pinned and not was_pinned and now == page:
            tiers.pages.unpin(page, MEMORY, made.reason)
    for pin in store.prompt.pins():
        if pin.page_id[0] in "sx" and store.conversation.step_of(pin.page_id) in made.steps:
            tiers.pages.unpin(pin.page_id, MEMORY, made.reason)


def _shorten_digest(store: Store, made: Plan) -> None:
    """Take the turn out of the digest: its own line, and its end of a range whose words may speak of it."""
    found = store.prompt.last_epoch()
    if found is None or not (lines := digest.read(found[0].digest)):
        return
    shorter = [line for each in lines if (line := _without_turn(store, each, made.turn))]
    if shorter != lines:
        store.maintenance.put("epochs", found[0].id, digest=blocks.dump(digest.write(shorter)))


def _without_turn(store: Store, line: Line, turn: int) -> Line | None:
    if line.turn != turn:
        return line
    before = store.conversation.step_before_turn(turn, without=store.ledger.withdrawn())
    if line.turns == 1 or before is None or before["id"] < line.first:
        return None
    turns = line.turns - 1
    return replace(line, last=before["id"], turn=before["turn"], turns=turns, to_at=before["at"], words="", sources=())
