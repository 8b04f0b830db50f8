"""The store gives pieces of long lists, rows that may hold a text, and answers about earlier moments."""

from itertools import product

import pytest

from pager.clock import from_micros
from pager.errors import StorageError
from pager.store import Store
from pager.store.lists import FACTS
from pager.types import FOREVER, Block, Counts, FactCounts, PageId, number_of
from tests.store.rows import keep, say, say_until, text

SOME = ((0, 3), (2, 3), (5, 10), (8, 1), (50, 4))


def test_a_piece_of_a_list_is_that_piece_newest_first(store: Store) -> None:
    for number in range(9):
        say(store, f"text {number}", number)
        keep(store, f"fact {number}")
        store.ledger.write("archive" if number % 3 else "search", f"f{number}")
    for offset, limit in SOME:
        wanted = list(range(9, 0, -1))[offset : offset + limit]
        steps, facts = (
            store.lists.steps("all", "", offset, limit),
            store.lists.facts("all", "", "", FOREVER, offset, limit),
        )
        rows = store.lists.movements((), offset, limit)
        assert (steps.total, facts.total, rows.total) == (9, 9, 9)
        assert [row.page_id for row in steps.rows] == [f"s{number}" for number in wanted]
        assert [number_of(use.fact.id) for use in facts.rows] == wanted
        assert [row.number for row in rows.rows] == wanted
    searched = store.lists.movements(("search",), 1, 5)
    assert (searched.total, [row.number for row in searched.rows]) == (3, [4, 1])
    assert store.lists.movements(("search", "archive"), 0, 9).total == 9
    assert store.lists.events() == {"archive": 6, "search": 3}


def test_facts_are_listed_by_what_became_of_them(store: Store) -> None:
    ids = [keep(store, name) for name in "abcde"]
    store.archive.forget(ids[0], "wrong", 7)
    store.archive.used([ids[1], ids[1]], 3)
    store.maintenance.mark_fact_purged(ids[2])
    listed = {
        kind: [number_of(use.fact.id) for use in store.lists.facts(kind, "", "", FOREVER, 0, 9).rows] for kind in FACTS
    }
    assert listed == {
        "all": ids[::-1], "current": [ids[4], ids[3], ids[1]], "ended": [ids[0]], "used": [ids[1]],
        "unused": [ids[4], ids[3]],
    }  # fmt: skip
    for kind, found in listed.items():
        assert store.lists.facts(kind, "", "", FOREVER, 0, 1).total == len(found)
    assert [use.uses for use in store.lists.facts("used", "", "", FOREVER, 0, 9).rows] == [2]


def test_facts_are_listed_by_text_key_and_tag(store: Store) -> None:
    facts = [("in Porto", None, ()), ("a seat", "porto seat", ()), ("a hat", None, ("PORTO",)), ("a bag", None, ())]
    facts += [(written, None, ()) for written in ("Ângela e Inês", "ÂNGELA E INÊS", "ângela e inês", "Ana e Ines")]
    for said, key, tags in facts:
        store.archive.append(said, key, tags, 0, None, 0, "agent", 0, stated=False, sources=())
    assert [number_of(use.fact.id) for use in store.lists.facts("all", "porto", "", FOREVER, 0, 9).rows] == [3, 2, 1]
    assert store.lists.facts("all", "porto", "", FOREVER, 2, 9).total == 3
    assert store.lists.facts("ended", "porto", "", FOREVER, 0, 9).total == 0
    for asked in ("Inês", "inês", "INÊS", "Ângela e Inês", "ÂNGELA E INÊS", "ângela e inês"):
        assert [number_of(use.fact.id) for use in store.lists.facts("all", asked, "", FOREVER, 0, 9).rows] == [7, 6, 5]


def test_a_step_says_who_how_large_and_how_it_begins(store: Store) -> None:
    user, part = say(store, "  ", name="Dana")
    store.conversation.append_part(user, "said", "user", text("x" * 1_000), 0, None, None)
    store.conversation.size(part, Counts(words=3, code=4))
    reply = store.conversation.append_step("assistant", "assistant", 5, turn=user)
    store.conversation.append_part(reply, "said", "reply", {"type": "thinking", "thinking": "hm"}, 5, None, None)
    called = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    store.conversation.append_part(reply, "said", "reply", called, 5, None, None)
    store.prompt.enter(f"s{reply}", "step", reply)
    store.maintenance.put("steps", user, purged=1, name=None, session=None)
    second, first = store.lists.steps("all", "", 0, 5).rows
    assert (first.who, first.tokens, first.resident, first.purged) == ("user", 7, False, True), "a purge takes the name"
    assert first.begins == "x" * len(first.begins) != ""
    assert (second.who, second.turn, second.resident, second.calls) == ("agent", f"s{user}", True, ("look",))
    assert (second.at, second.begins) == (from_micros(5), "")
    assert [store.lists.step(number) for number in (user, reply, reply + 1)] == [first, second, None]
    assert [piece.block for piece in store.lists.pieces_of(PageId("s", reply))][1] == called


@pytest.mark.parametrize("kind", ["said", "notice"])
def test_only_what_was_said_may_hold_a_text(store: Store, kind: str) -> None:
    step, part = say(store, "the seat")
    other = store.conversation.append_part(step, kind, "result", text("A SEAT, too"), 0, None, None)  # type: ignore[arg-type]
    said = [f"x{other}", f"x{part}"] if kind == "said" else [f"x{part}"]
    assert [piece.page_id for piece in store.lists.pieces_like("%seat%", FOREVER, 9)] == said
    assert [piece.page_id for piece in store.lists.pieces_like("%seat%", other, 9)] == said[-1:]
    assert [piece.page_id for piece in store.lists.pieces_like("%seat%", FOREVER, 1)] == said[:1]
    assert [(piece.slot, piece.searchable) for piece in store.lists.pieces_of(PageId("s", step))][:1] == [
        ("user", True)
    ]
    assert [f"x{number}" for number in (other + 1, other, part) if store.lists.pieces_of(PageId("x", number))] == said


def test_facts_and_core_blocks_that_may_hold_a_text(store: Store) -> None:
    ids = [keep(store, name) for name in ("a seat", "a hat", "the seat")]
    store.maintenance.mark_fact_purged(ids[2])
    assert [number_of(fact.id) for fact in store.lists.facts_like("%seat%", FOREVER, 9)] == [ids[0]]
    assert store.lists.facts_like("%seat%", ids[0], 9) == []
    for name, value, step in (("human", "a seat", 1), ("human", "", 2), ("plan", "a hat", 3)):
        block = Block(name, value, "", 9, 1, False, None, 0, "agent", from_micros(step))
        say_until(store, step)
        store.core.append(block, 0, unseen=False)
    assert store.lists.core_like("%seat%") == ["human"]
    history = store.lists.core_versions("human")
    assert [(known.block.value, known.step, known.ordinal) for known in history] == [("a seat", "s1", 1), ("", "s2", 2)]


def test_searches_by_what_their_detail_may_hold(store: Store) -> None:
    for query in ("seat", "hat", "seat again"):
        store.ledger.write("search", query=query)
    store.ledger.write("error", query="seat")
    told = store.lists.searches(["%seat%", "%nothing%"], 9)
    assert [row.detail["query"] for row in told] == ["seat", "seat again"]
    assert [row.detail["query"] for row in store.lists.searches(["%seat%"], 1)] == ["seat again"]
    assert store.lists.searches([], 9) == []


def test_facts_are_counted_by_what_they_are(store: Store) -> None:
    facts = dict[int, tuple[int, int | None, bool, int]]()
    kinds = product((5, 50), (None, 7, 60), (False, True), (0, 2))
    for times, (start, until, purged, uses) in enumerate(kinds):
        for _ in range(times % 5 + 1):
            fact = store.archive.append("x", None, (), start, until, 1, "agent", 0, stated=True, sources=())
            for _ in range(uses):
                store.archive.used([fact], 9)
            if purged:
                store.maintenance.mark_fact_purged(fact)
            facts[fact] = (start, until, purged, uses)
    for at in (0, 5, 6, 7, 8, 49, 50, 60, 61):
        there = [known for known in facts.values() if not known[2]]
        true = [known for known in there if known[0] <= at and (known[1] is None or known[1] > at)]
        idle = [known for known in there if (known[1] is None or known[1] > at) and not known[3]]
        assert store.archive.counts(at) == FactCounts(len(there), len(true), len(idle))
    oldest = [fact for fact, (_, until, purged, uses) in facts.items() if not (until or purged or uses)]
    assert [number_of(fact.id) for fact in store.archive.never_used(3, 99)] == oldest[:3]


def test_the_most_used_facts_come_first_and_say_how_often(store: Store) -> None:
    ids = [keep(store, name) for name in "abcd"]
    for at, fact in enumerate([ids[0], ids[2], ids[2], ids[3]]):
        store.archive.used([fact], at)
    told = [(number_of(use.fact.id), use.uses, use.used_at) for use in store.archive.most_used(2)]
    assert told == [(ids[2], 2, from_micros(2)), (ids[3], 1, from_micros(3))]
    store.maintenance.mark_fact_purged(ids[2])
    assert [number_of(use.fact.id) for use in store.archive.most_used(5)] == [ids[3], ids[0]]


def test_a_reader_s_transaction_is_one_moment_and_its_revision_says_that_it_passed(store: Store, reader: Store) -> None:
    number, _ = say(store, "hello")
    before = reader.revision()
    with reader.transaction():
        assert reader.conversation.last_step() == number
        say(store, "meanwhile")
        assert reader.conversation.last_step() == number
        with pytest.raises(StorageError):
            reader.settings.put("a", "1")
    assert reader.conversation.last_step() > number
    assert reader.revision() != before
    assert reader.revision() == reader.revision()
