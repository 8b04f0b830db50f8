"""Take back what came from a source: its facts, what was written after it had been read, and what that replaced.

`plan` reads and decides, `Trust.forget_source` carries the plan out in one transaction. What is forgotten is still
found with `as_of`, and the ledger says what was done.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pager.clock import Clock, Moment, span_start, to_micros
from pager.safety.sources import names_one, read_source
from pager.store import Store
from pager.store.rows import Origin
from pager.tiers.archive import Archive
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.types import Block, Fact, Movement, SourceForgotten, number_of

FORGOTTEN = "forgotten_step"  # the setting with the last step that held something of a source when that was forgotten
TAKEN_BACK = "taken_back"  # in the ledger: the fact was forgotten because its source was


@dataclass(slots=True)
class Plan:
    """What has to be done to forget a source."""

    source: str
    ending: list[Fact] = field(default_factory=list[Fact])  # no other source is left
    left: list[tuple[Fact, list[Origin]]] = field(default_factory=list[tuple[Fact, list[Origin]]])  # another one is
    restoring: list[Fact] = field(default_factory=list[Fact])
    blocks: list[tuple[Block, Block | None]] = field(default_factory=list[tuple[Block, Block | None]])  # now, before
    pins: list[str] = field(default_factory=list[str])  # but for those of facts
    steps: list[int] = field(default_factory=list[int])  # in the prompt

    @property
    def outcome(self) -> SourceForgotten:
        """Return the plan as a program reads it."""
        return SourceForgotten(
            self.source,
            tuple(fact.id for fact in self.ending),
            tuple(fact.id for fact, _ in self.left),
            tuple(fact.id for fact in self.restoring),
            tuple(block.name for block, _ in self.blocks),
            tuple(f"{now.name}: {line}" for now, before in self.blocks for line in _lost(now, before)),
            tuple(self.pins),
            tuple(f"s{step}" for step in self.steps),
        )


def plan(store: Store, archive: Archive, clock: Clock, source: str, since: Moment | None) -> Plan:
    """Decide what forgetting a source means. Writes nothing."""
    made = Plan(read_source(source).origin)
    start = None if since is None else span_start(since, clock.zone)
    earliest = 0 if start is None else to_micros(start)
    theirs: set[str] = set()  # the facts that only the source says, also those that somebody has forgotten since
    for fact in store.archive.of_source(made.source):
        origins = store.archive.origins(number_of(fact.id))
        left = [each for each in origins if each.at < earliest or not each.source.concerns(made.source)]
        if not left:
            theirs.add(fact.id)
        if fact.forgotten is None and not left:
            made.ending.append(fact)
        elif fact.forgotten is None and len(left) < len(origins):
            made.left.append((fact, left))
    forgets = {row.page_id or "": row for row in store.ledger.movements(events=["forget"])}  # the last of each
    undone = {page for page, row in forgets.items() if not (start and row.at < start) and _asked_by(row, made.source)}
    made.restoring = to_restore(store, theirs, undone, archive.present())
    for block in store.core.blocks():
        if _named((*block.via, *block.emptied_by), made.source):
            versions = [version.block for version in store.lists.core_versions(block.name)]
            named = [each for each in versions if _named((*each.via, *each.emptied_by), made.source)]
            clean = [each for each in versions if each not in named or (start and each.at < start)]
            if clean[-1:] != versions[-1:]:
                made.blocks.append((block, clean[-1] if clean and not clean[-1].retired else None))
    pinned = [pin.page_id for pin in store.prompt.pins() if not pin.page_id.startswith("f")]
    steps = {page: store.conversation.step_of(page) for page in pinned}
    held = set(store.conversation.of_source(made.source, list(steps.values()), earliest))
    made.pins = [page for page in pinned if steps[page] in held]
    shown = {stay.page_id for stay in store.prompt.resident() if stay.how != "pinned"}
    numbers = [number_of(page) for page in shown if page.startswith("s")]
    made.steps = store.conversation.of_source(made.source, numbers, earliest)
    return made


def _lost(now: Block, before: Block | None) -> list[str]:
    """Return the lines that a block loses."""
    kept = before.value.splitlines() if before else []
    return [line for line in now.value.splitlines() if line.strip() and line not in kept]


def _named(names: Iterable[str], wanted: str) -> bool:
    return any(names_one(name, wanted) for name in names)


def to_restore(
    store: Store, theirs: set[str], undone: set[str], now: datetime, ends: Mapping[str, datetime | None] | None = None
) -> list[Fact]:
    """Return what is true again when some facts are taken back, and the forgetting of others (`undone`): what those
    facts superseded or cut off, and what was forgotten. Facts in `ends` end by themselves at another moment."""
    found = store.archive.facts([number_of(page) for page in undone | theirs]).values()
    versions = [each for key in {fact.key for fact in found} if key for each, _ in store.archive.versions(key)]
    # What an earlier call took back superseded nothing, whatever its source was.
    forgets = store.ledger.movements(events=["forget"])
    theirs = theirs | {row.page_id or "" for row in forgets if TAKEN_BACK in row.detail}
    facts = {fact.id: fact for fact in (*found, *versions) if fact.id not in theirs and not fact.purged}
    facts |= {page: replace(facts[page], expires=end) for page, end in (ends or {}).items() if page in facts}
    # What was to be true from a later day on comes back beside what is true until then.
    places = {fact.id: (fact.key or (fact.text, fact.tags), max(now, fact.valid_from)) for fact in facts.values()}
    newest: dict[Any, Fact] = {}
    for fact in sorted(facts.values(), key=lambda each: number_of(each.id)):
        place, by = places[fact.id], fact.superseded_by
        if by is None or by in theirs or places.get(by, place) != place:
            newest[place] = fact
    newest = {place: fact for place, fact in newest.items() if fact.expires is None or fact.expires > place[1]}
    restored = {row.detail.get("of") for row in store.ledger.movements(events=["restore"])}
    back = [
        fact for fact in newest.values() if fact.id not in restored and not _is_said_again(store, fact, theirs, now)
    ]
    back = [fact for fact in back if (fact.superseded_by in theirs if fact.forgotten is None else fact.id in undone)]
    return sorted(back, key=lambda each: (each.valid_from, number_of(each.id)))


def take_back(
    archive: Archive, pages: Pages, ending: Sequence[Fact], restoring: Sequence[Fact], reason: str, actor: str
) -> dict[str, str]:
    """End facts and store others once more, in the caller's transaction. Return the new id of each restored one."""
    for fact in ending:
        archive.end(fact, reason, actor, **{TAKEN_BACK: True})
    came_back = [(fact, archive.restore(fact, reason, actor).id) for fact in restoring]
    successors = {fact.key: new for fact, new in reversed(came_back)}  # of a key's facts the one that is true now
    for fact in ending:
        pages.move_pin(fact.id, successors.get(fact.key) if fact.key is not None else None, reason)
    return {fact.id: new for fact, new in came_back}


def _asked_by(row: Movement, source: str) -> bool:
    return _named([row.detail.get("source", ""), *row.detail.get("via", ())], source)


def _is_said_again(store: Store, fact: Fact, theirs: set[str], now: datetime) -> bool:
    """Return True if a fact without a key was stored again since it was forgotten."""
    if fact.key is not None:
        return False
    again = store.archive.repeat(fact.text, None, fact.tags, None, to_micros(now))
    return again is not None and f"f{again}" not in theirs


class Trust:
    """Forgets sources, for one agent."""

    def __init__(self, store: Store, clock: Clock, archive: Archive, core: Core, pages: Pages) -> None:
        self._store = store
        self._clock = clock
        self._archive = archive
        self._core = core
        self._pages = pages

    def forget_source(self, source: str, *, since: Moment | None, actor: str, dry_run: bool) -> SourceForgotten:
        """Forget a source, or with `dry_run` only say what that would do."""
        made = plan(self._store, self._archive, self._clock, source, since)
        if not dry_run:
            with self._store.transaction():
                self._carry_out(made, actor)
        return made.outcome

    def _carry_out(self, made: Plan, actor: str) -> None:
        store, reason = self._store, f"{made.source} was forgotten"
        store.sleeps.withdraw(made.source, reason)
        for fact, left in made.left:
            struck = [str(each.source) for each in store.archive.origins(number_of(fact.id)) if each not in left]
            store.archive.put_sources(number_of(fact.id), left)
            about = f"{reason}, another source stays"
            store.ledger.write("source", fact.id, reason=about, actor=actor, struck=struck)
        take_back(self._archive, self._pages, made.ending, made.restoring, reason, actor)
        for block, before in made.blocks:
            value, via = (before.value, before.via) if before else ("", ())
            self._core.restore(block, value, via, actor, reason)
        for page in made.pins:
            self._pages.unpin(page, actor, reason)
        if made.steps:
            store.settings.put(FORGOTTEN, str(made.steps[-1]))
        if store.prompt.forget_digest(made.source) or made.blocks or made.pins or made.steps:
            store.prompt.end_epoch(store.conversation.last_step())
