"""What a sleep proposes without a model: repeats, what has run out, keys that mean the same, full blocks, unused facts.

Deterministic: the same memory gives the same edits. Only facts that are newer than the last sleep are compared, with
all facts. The thresholds were measured on one set of texts and judged on another (`make bench-sleep`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from pager.clock import to_micros
from pager.safety.sources import Source, union
from pager.sleep.edits import Edit, NewFact
from pager.sleep.signs import MONTHS, Reader, Signs, agree
from pager.store import Store
from pager.store.rows import Origin
from pager.tiers.archive import Archive
from pager.types import Block, Fact, FactUse, number_of
from pager.vectors.embedder import EmbedderUnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pager.vectors.embedding import Embedding

REPEAT = 0.60  # cosine of two texts whose words that carry meaning are the same
RELATED = 0.60  # from here on a model is asked if two texts say the same, or one replaces the other
SAME_KEY = 0.75  # cosine of two keys
MOST_FACTS = 20_000  # that are compared: of more, the newest
MOST_KEYS = 400
BLOCK = 512  # rows that are compared at a time
FULL = 0.9  # share of a block's limit
UNUSED = timedelta(days=180)
MOST_UNUSED, MOST_EXPIRED = 20, 50
IN_USE = 50  # uses of facts in all: where nobody searches, being unused says nothing
_ENDS = re.compile(
    r"\b(?:until|till|through|(?:expires?|expiring|ends)(?: on)?|deadline(?: is|:)?)\s+(?P<date>[^.;,()]{4,30})",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:was|were|had|did|used to|former|\w+ed)\b", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till|through|end|expire|deadline)", re.IGNORECASE)


class Notes(NamedTuple):
    """What is tidied, read at one moment: comparing it takes longer, and needs no lock."""

    now: datetime
    since: int  # facts up to this one were compared with each other before
    facts: Sequence[Fact]
    ids: Sequence[int]  # of those that have a vector
    vectors: NDArray[np.float32]
    without_vector: Collection[int]
    never_used: Sequence[Fact]
    most_used: Sequence[FactUse]
    blocks: Sequence[Block]


def gather(store: Store, archive: Archive, since: int) -> Notes:
    """Return what is tidied."""
    now, facts = archive.present(), current_facts(store, archive)
    ids, vectors = store.archive.vectors([number_of(fact.id) for fact in facts])
    without = {fact for fact, _ in store.archive.without_vector(MOST_FACTS)}
    never, used = store.archive.never_used(MOST_UNUSED, to_micros(now)), store.archive.most_used(IN_USE)
    return Notes(now, since, facts, ids, vectors, without, never, used, store.core.blocks())


def tidy(notes: Notes, embedding: Embedding | None, reader: Reader) -> list[Edit]:
    """Return what is proposed without a model."""
    taken = set[str]()
    edits = list[Edit]()
    for edit in (
        *repeats(notes, reader), *_expired(notes.facts, notes.now), *_same_keys(notes, embedding, reader),
        *_unused(notes.never_used, notes.most_used, notes.now), *map(_shorter, notes.blocks),
    ):  # fmt: skip
        # What an edit needs may end in a later one, which is applied after it.
        if edit is not None and taken.isdisjoint(edit.pages) and taken.isdisjoint(edit.keeps):
            taken.update(edit.pages)
            edits.append(edit)
    return edits


def current_facts(store: Store, archive: Archive) -> list[Fact]:
    """Return the facts that are true now and have no end, the newest of very many."""
    now = archive.present()
    facts = store.archive.current(to_micros(now))
    # One that ends by itself, or would if it was stored anew, is left alone: what it would be merged with goes on.
    lasting = (fact for fact in facts if fact.valid_until is None and archive.end_by_tags(fact.tags, now) is None)
    return list(lasting)[-MOST_FACTS:]


def repeats(notes: Notes, reader: Reader) -> Iterator[Edit]:
    """Yield the merges of facts that say the same in nearly the same words."""
    facts = notes.facts
    signs = dict(zip([fact.id for fact in facts], reader.read([fact.text for fact in facts]), strict=True))
    by_id = {fact.id: fact for fact in facts}
    near = defaultdict[str, set[str]](set)
    for one, other, cosine in _close(notes, signs):
        if cosine is None or says_the_same(signs[one], signs[other], cosine):
            near[one].add(other)
            near[other].add(one)
    grouped = set[str]()
    # The text that says most stands for all that repeat it; of equal ones the newest.
    for page in sorted(near, key=lambda each: (len(signs[each].content), number_of(each)), reverse=True):
        if page not in grouped:
            group = sorted({page, *(other for other in near[page] if other not in grouped)}, key=number_of)
            grouped.update(group)
            yield from _merges(by_id[page], [by_id[each] for each in group])


def says_the_same(one: Signs, other: Signs, cosine: float) -> bool:
    """Return True for two texts of which one only repeats the other."""
    return cosine >= REPEAT and agree(one, other)


def _close(notes: Notes, signs: dict[str, Signs]) -> Iterator[tuple[str, str, float | None]]:
    """Yield the pairs of which one is new and that may be repeats, with their cosine. None: the words alone say that
    they are."""
    by_text = defaultdict[tuple[str, ...], list[str]](list)
    for fact in notes.facts:
        by_text["=", _plain(fact.text)].append(fact.id)
    for fact in notes.facts:  # without vectors the words have to be the same
        if number_of(fact.id) in notes.without_vector and signs[fact.id].content:
            by_text["words", *sorted(signs[fact.id].content)].append(fact.id)
    for (kind, *_), pages in by_text.items():
        for one, other in combinations(pages, 2):
            if number_of(other) > notes.since and (kind == "=" or agree(signs[one], signs[other])):
                yield one, other, None
    yield from _near_pairs(notes, REPEAT)


def _near_pairs(notes: Notes, least: float) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs of facts, the older one first, of which one is new and that are this near."""
    import numpy as np

    order = np.argsort(notes.ids) if notes.ids else np.empty(0, dtype=int)
    numbers, rows = np.array(notes.ids)[order], notes.vectors[order] if notes.ids else notes.vectors
    first = int(np.searchsorted(numbers, notes.since, side="right")) if notes.ids else 0
    for start in range(first, len(numbers), BLOCK):
        block: NDArray[np.float32] = rows[start : start + BLOCK] @ rows[: start + BLOCK].T
        for row, column in np.argwhere(block >= least).tolist():
            if column < start + row:
                yield f"f{numbers[column]}", f"f{numbers[start + row]}", float(block[row, column])


def _merges(best: Fact, group: Sequence[Fact]) -> Iterator[Edit]:
    """Yield what makes one fact of a group. A trusted one is not merged with an untrusted one that repeats it."""
    trusted = [fact for fact in group if not fact.via]
    if trusted and len(trusted) < len(group):
        keep = best if not best.via else trusted[-1]
        for fact in group:
            if fact.via:
                reason = f"{keep.id} says the same, and is trusted"
                yield Edit("end", reason, pages=(fact.id,), keeps=(keep.id,))
        group, best = trusted, keep
    if len(group) < 2:
        return
    keys = list(dict.fromkeys(fact.key for fact in group if fact.key))
    tags = dict.fromkeys(tag for fact in group for tag in fact.tags)
    same = len({_plain(fact.text) for fact in group}) == 1
    key = best.key or (keys[-1] if keys else None)
    yield Edit(
        "merge", f"{', '.join(fact.id for fact in group)} say the same" + ("" if same else " in nearly the same words"),
        pages=tuple(fact.id for fact in group), after=(NewFact(best.text, key, tuple(tags)),),
        asks=f"they have the keys {' and '.join(keys)}" if len(keys) > 1 else "", sources=merged_sources(group),
    )  # fmt: skip


def merged_sources(facts: Sequence[Fact]) -> tuple[Source, ...]:
    """Return all sources of facts. If one of these is untrusted, so is what is made of them: each source names why."""
    via = union(*(fact.via for fact in facts))
    found = dict.fromkeys(source for fact in facts for source in fact.sources)
    if not via:
        return tuple(found)
    return tuple(
        dict.fromkeys(
            Source(each.kind, each.name, each.step, union(each.via, set(via) - {each.origin})) for each in found
        )
    )


def merged_origins(origins: Sequence[Origin], sources: Sequence[Source]) -> list[Origin]:
    """Return sources as they are stored, each with the time that it has among what they were merged from."""
    times = {(each.source.origin, each.source.step): each.at for each in origins}
    newest = max(times.values(), default=0)
    return [Origin(source, times.get((source.origin, source.step), newest)) for source in sources]


def _expired(facts: Sequence[Fact], now: datetime) -> Iterator[Edit]:
    found = 0
    for fact in facts:
        over = runs_out(fact.text)
        if over is not None and over < now.date() and found < MOST_EXPIRED:
            found += 1
            asks = "only a person can say that it is of no use any more"
            yield Edit("end", f"it says that it ends on {over.isoformat()}", pages=(fact.id,), asks=asks)


def runs_out(text: str) -> date | None:
    """Return the last day of what a text says of the present, if it names one."""
    found = _ENDS.search(text)
    past, ends = _PAST.search(text), [each.start() for each in _UNTIL.finditer(text)]
    if found is None or (past and ends and past.end() <= ends[-1]):
        return None
    return _day(found["date"])


def _day(text: str) -> date | None:
    """Return the day that a text begins with, or the last day of a month."""
    if iso := re.match(r"(\d{4})-(\d\d)-(\d\d)", text):
        return _valid(int(iso[1]), int(iso[2]), int(iso[3]))
    words = re.findall(r"[a-z]+|\d+", text.lower())
    words = [word for word in words if word not in ("the", "of", "st", "nd", "rd", "th", "end")][:3]
    month = next((MONTHS.index(word) + 1 for word in words if word in MONTHS), 0)
    numbers = [int(word) for word in words if word.isdigit()]
    year = next((number for number in numbers if 1900 < number < 2200), 0)
    if not month or not year:
        return None
    day = next((number for number in numbers if number <= 31), 0)
    if day:
        return _valid(year, month, day)
    following = _valid(year + month // 12, month % 12 + 1, 1)
    return following and following - timedelta(days=1)


def _valid(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _same_keys(notes: Notes, embedding: Embedding | None, reader: Reader) -> Iterator[Edit]:
    """Yield the pairs of facts whose keys mean the same; the newer one would be the successor of the other."""
    import numpy as np

    keyed = [fact for fact in notes.facts if fact.key][-MOST_KEYS:]
    if embedding is None or not any(number_of(fact.id) > notes.since for fact in keyed):
        return
    names = [re.sub(r"[\W_]+", " ", fact.key or "").strip() or "-" for fact in keyed]
    try:
        rows = np.array([meaning.vector for meaning in embedding.embed_all(names)])
    except EmbedderUnavailableError:
        return
    stems, near = reader.stems(names), rows @ rows.T
    for newer, other in ((new, old) for new in range(len(keyed)) for old in range(new)):
        one, two = keyed[other], keyed[newer]
        same = stems[newer] == stems[other] or near[newer, other] >= SAME_KEY
        if not same or number_of(two.id) <= notes.since or one.via != two.via or agree_not(names[newer], names[other]):
            continue
        yield Edit(
            "key", f"the keys {one.key!r} and {two.key!r} mean the same", pages=(one.id, two.id),
            after=(NewFact(two.text, one.key, two.tags),), asks="keys are only near in meaning", sources=two.sources,
        )  # fmt: skip


def agree_not(one: str, other: str) -> bool:
    """Return True if numbers tell two keys apart: `seat_1` is not `seat_2`."""
    return re.findall(r"\d+", one) != re.findall(r"\d+", other)


def _unused(never: Sequence[Fact], used: Sequence[FactUse], now: datetime) -> Iterator[Edit]:
    if sum(each.uses for each in used) < IN_USE:
        return
    for fact in never:
        if now - fact.at > UNUSED:
            reason = f"nothing has found it since {fact.at.date().isoformat()}"
            yield Edit("end", reason, pages=(fact.id,), asks="it may be true all the same")


def is_full(block: Block) -> bool:
    """Return True for a block that may be written and has hardly any room left."""
    return not (block.read_only or block.file) and block.used_tokens > FULL * block.limit_tokens


def guards(block: Block) -> str:
    """Return why a person has to decide what is written to a block; empty if nobody has to."""
    return "" if block.untrusted_writes == "label" else f"the block {block.name} is guarded"


def _shorter(block: Block) -> Edit | None:
    """Return a full block without the lines that it has twice."""
    if not is_full(block):
        return None
    lines = dict.fromkeys(_plain(line) for line in block.value.splitlines())
    kept = [line for line in block.value.splitlines() if lines.pop(_plain(line), 0) is None]
    value = "\n".join(kept)
    if len(kept) == len(block.value.splitlines()):
        return None
    full = f"it holds {block.used_tokens} of {block.limit_tokens} tokens, and lines twice"
    return Edit("core", full, block=block.name, version=block.version, value=value, asks=guards(block))


def _plain(text: str) -> str:
    """Return a text without case, and without the blanks and the full stops around it."""
    return re.sub(r"\s+", " ", text.casefold()).strip(" .!;-*") or text
