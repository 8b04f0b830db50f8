"""The laws of a sleep, over random lives: undone it is as if it had not been, and no text is lost."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pager import BlockSpec, Limits, Memory
from pager.sleep import Claim
from tests.support.clock import HandClock
from tests.support.embedders import Words

SUBJECTS = ["Dana", "Elin", "the boat", "Tomas"]
VERBS = ["likes", "sold", "never likes", "has painted"]
OBJECTS = ["the red sofa", "two trams", "3 trams", "a Red Sofa!", "soup until 3 March 2021", "really two trams"]
KEYS = [None, None, "seat", "Seats", "home town"]
SOURCES = [None, "said:Dana", "web:example.org", "mcp:github"]
texts = st.builds("{} {} {}".format, st.sampled_from(SUBJECTS), st.sampled_from(VERBS), st.sampled_from(OBJECTS))
TAGS = [(), (), ("travel",), ("note",), ("Note", "home")]
facts = st.tuples(texts, st.sampled_from(KEYS), st.sampled_from(SOURCES), st.sampled_from(TAGS))
lives = st.lists(facts, max_size=14)
verdicts = st.lists(st.sampled_from(["both", "same", "replaces"]), min_size=12, max_size=12)
pins = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=3, unique_by=lambda each: each[0])
changes = st.lists(st.one_of(facts, st.integers(1, 8), texts), max_size=3)


def opened(place: str) -> Memory:
    core = {
        "notes": BlockSpec(value="Dana likes soup\nElin sold two trams\nDana likes soup", limit_tokens=16),
        "guarded": BlockSpec(value="a b c d\na b c d", limit_tokens=12, untrusted_writes="refuse"),
    }
    limits = Limits.for_window(4_000)
    kept = {"note": "90d"}
    return Memory.open(
        Path(place), embedder=Words(dimension=64), clock=HandClock(), core=core, limits=limits, retention=kept
    )


def live(memory: Memory, life: Iterable[tuple[str, str | None, str | None, tuple[str, ...]]]) -> None:
    for text, key, source, tags in life:
        memory.archive(text, key=key, source=source, tags=tags)


def pin(memory: Memory, chosen: Iterable[tuple[int, int]]) -> None:
    """Pin a piece of each of these facts that is there and true."""
    there = {row.fact.id for row in memory.inspect.facts("current", limit=1000).rows}
    for number, offset in chosen:
        if f"f{number}" in there:
            memory.page_in(f"f{number}", pin=True, offset=offset)


def stored(place: str, through: int) -> Any:
    """All columns and tags of the facts up to one, but for how often they were used, and all pinned pieces."""
    with closing(sqlite3.connect(f"file:{place}/home/pager.db?mode=ro", uri=True)) as file:
        file.row_factory = sqlite3.Row
        rows = [dict(row) for row in file.execute("SELECT * FROM facts WHERE id <= ? ORDER BY id", (through,))]
        tags = [tuple(row) for row in file.execute("SELECT * FROM fact_tags WHERE fact <= ? ORDER BY 2, 1", (through,))]
        held = [tuple(row) for row in file.execute("SELECT page, offset, length FROM pins ORDER BY page")]
    return [{name: row[name] for name in row if name not in ("uses", "used_at")} for row in rows], tags, held


def state(memory: Memory) -> Any:
    """All that is true now, core, pins, and the answers to every question that a life can ask."""
    rows = memory.inspect.facts("current", limit=1000).rows
    answers = [
        {hit.page_id for hit in memory.search_archive(f"{subject} {thing}", limit=50, actor="test")}
        for subject in SUBJECTS
        for thing in OBJECTS[:2]
    ]
    core = [(block.name, block.value, block.via) for block in memory.core()]
    return [row.fact for row in rows], core, answers


def everything(memory: Memory) -> set[str]:
    """Every text that is somewhere: in a fact, true or not, or in a version of a block."""
    found = {row.fact.text for row in memory.inspect.facts("all", limit=1000).rows}
    versions = [each.block.value for block in memory.core() for each in memory.history.core_versions(block.name)]
    return found | {line for value in versions for line in value.splitlines()}


def sleep(memory: Memory, said: Iterable[str], judged: list[str]) -> int | None:
    """A sleep with a model that claims whatever was said, and judges at random."""
    begun = memory.sleeps.begin()
    if begun is None:
        return None
    while turns := memory.sleeps.unread_turns():
        claims = [Claim(step.text, (step.id,), key="seat") for turn in turns for step in turn.steps]
        memory.sleeps.add_facts(begun.number, claims, turns)
    pairs = memory.sleeps.pairs(begun.number)
    memory.sleeps.judge(begun.number, dict(zip(pairs, judged, strict=False)))  # type: ignore[arg-type]
    for block in memory.sleeps.full_blocks():
        memory.sleeps.rewrite_block(begun.number, block.name, block.value.splitlines()[0])
    return memory.sleeps.finish(begun.number, {}).number


def last_fact(memory: Memory) -> int:
    return memory.inspect.facts("all", limit=0).total


SEAT = ("Dana sold two trams", "seat", None, ())


@given(life=lives, said=st.lists(texts, max_size=4), judged=verdicts, pinned=pins, again=lives)
@example(life=[SEAT], said=["Dana has painted two trams"] * 2, judged=["both"] * 12, pinned=[(1, 0)], again=[])
@example(
    life=[("Dana sold two trams", None, None, ()), ("Elin sold two trams", None, None, ())],
    said=["Dana never sold two trams"],
    judged=["replaces"] * 12,
    pinned=[(1, 2), (2, 3)],
    again=[],
)
def test_undone_a_sleep_has_changed_nothing_and_no_sleep_loses_a_text(
    life: Any, said: list[str], judged: list[str], pinned: Any, again: Any
) -> None:
    with TemporaryDirectory() as place, opened(f"{place}/home") as memory:
        live(memory, life)
        for text in said:
            memory.record("user", text, name="Dana")
        pin(memory, pinned)
        before, texts_before = state(memory), everything(memory)
        through = last_fact(memory)
        rows_before = stored(place, through)
        number = sleep(memory, said, judged)
        assert state(memory) == before, "a proposal changes nothing"
        if number is None:
            return
        proposal = memory.sleeps.apply(number)
        assert texts_before <= everything(memory)
        assert memory.check() == []
        movements = [
            row for row in memory.ledger(events=["archive", "supersede", "forget", "core"]) if row.step != "s0"
        ]
        assert all(row.actor in (f"sleep {number}", "person") for row in movements)
        untrusted = {row.fact.text for row in memory.inspect.facts("current", limit=1000).rows if row.fact.via}
        assert not any(edit.block == "guarded" and edit.via for edit in proposal.edits if edit.state == "applied")
        merged = [edit for edit in proposal.edits if edit.kind == "merge" and edit.state == "applied"]
        assert all(edit.after[0].text in untrusted or not edit.via for edit in merged)
        if proposal.count("applied"):
            undone = memory.sleeps.undo(number)
            assert undone.stays == ()
        assert state(memory) == before
        assert stored(place, through) == rows_before
        assert texts_before <= everything(memory)
        assert memory.check() == []
        live(memory, again)  # and life goes on
        assert memory.check() == []


def edit(memory: Memory, change: Any) -> None:
    """What a person does in between: forgets a fact, writes a block, or stores a fact."""
    if isinstance(change, int):
        if f"f{change}" in {row.fact.id for row in memory.inspect.facts("current", limit=1000).rows}:
            memory.forget(f"f{change}", "it is over")
    elif isinstance(change, str):
        memory.core_write("notes", change[:12])
    else:
        live(memory, [change])


@given(
    life=lives, said=st.lists(texts, min_size=2, max_size=4), judged=verdicts, pinned=pins, changed=changes,
    between=lives, older_first=st.booleans(),
)  # fmt: skip
def test_two_sleeps_are_undone_in_any_order_and_what_came_between_stays(
    life: Any, said: list[str], judged: list[str], pinned: Any, changed: Any, between: Any, older_first: bool
) -> None:
    with TemporaryDirectory() as place, opened(f"{place}/home") as memory:
        live(memory, life)
        memory.record("user", said[0], name="Dana")
        pin(memory, pinned)
        before, through, rows = state(memory), last_fact(memory), list[Any]()
        rows = stored(place, through)
        first = sleep(memory, said, judged)
        if first is None:
            return
        memory.sleeps.apply(first)
        for change in changed:
            edit(memory, change)
        live(memory, between)
        for text in said[1:]:
            memory.record("user", text, name="Dana")
        second = sleep(memory, said, judged[::-1])
        if second is not None:
            memory.sleeps.apply(second)
        texts_before = everything(memory)
        assert memory.check() == []
        sleeps = [number for number in (first, second) if number is not None]
        for number in (*(sleeps if older_first else sleeps[::-1]), *sleeps):  # an older one may have to wait
            if memory.sleeps.proposal(number).count("applied"):
                undone = memory.sleeps.undo(number)
                assert all(why for _, why in undone.stays)
                assert memory.check() == []
        left = [each for number in sleeps for each in memory.sleeps.proposal(number).edits if each.state == "applied"]
        if not (changed or between):
            assert left == []
            assert state(memory) == before
            assert stored(place, through) == rows
        assert texts_before <= everything(memory)
        withdrawn = {
            row.fact.id
            for row in memory.inspect.facts("current", limit=1000).rows
            if row.fact.actor.startswith("sleep ") and not left
        }
        assert not withdrawn, "what a sleep made is gone with it"


@given(life=lives, judged=verdicts, changed=changes)
def test_what_has_changed_since_stays_and_is_named(life: Any, judged: list[str], changed: Any) -> None:
    with TemporaryDirectory() as place, opened(f"{place}/home") as memory:
        live(memory, life)
        number = sleep(memory, (), judged)
        if number is None:
            return
        memory.sleeps.apply(number)
        for change in changed:
            edit(memory, change)
        mine = {row.fact for row in memory.inspect.facts("current", limit=1000).rows if row.fact.actor == "person"}
        if not memory.sleeps.proposal(number).count("applied"):
            return
        undone = memory.sleeps.undo(number)
        after = memory.sleeps.proposal(number)
        assert {number for number, _ in undone.stays} == {e.number for e in after.edits if e.state == "applied"}
        assert all(why for _, why in undone.stays)
        assert mine <= {row.fact for row in memory.inspect.facts("current", limit=1000).rows}
        assert memory.check() == []


@given(life=lives, judged=verdicts)
def test_a_sleep_opens_no_epoch_and_the_prompt_only_grows(life: Any, judged: list[str]) -> None:
    with TemporaryDirectory() as place, opened(f"{place}/home") as memory:
        memory.append_user("hello")
        before = memory.request()
        memory.append_assistant("hi")
        live(memory, life)
        number = sleep(memory, (), judged)
        if number is not None:
            memory.sleeps.apply(number)
        memory.append_user("and now?")
        after = memory.request()
        assert after.epoch <= before.epoch + 1
        if after.epoch == before.epoch:
            assert (
                after.messages[0] == before.messages[0]
                or after.messages[0]["content"][0] == (before.messages[0]["content"][0])
            )
