"""What is true and says just the same is not stored twice."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from pager import Fact, Memory
from tests.support import HandClock, Words
from tests.support.clock import START

TOLD = st.tuples(
    st.sampled_from(["a seat", "a bed", "A seat"]),
    st.sampled_from([None, None, "seat", "home"]),
    st.sampled_from([(), ("travel",), ("travel", "home"), ("home", "travel")]),
    st.sampled_from([None, None, -1, 1]),  # days: when it began to be true, if that is said
)
ACTS = st.lists(st.one_of(TOLD, TOLD, TOLD, st.integers(0, 9)), max_size=25)


@given(acts=ACTS)
def test_a_fact_is_stored_unless_it_is_there_and_true(
    acts: list[tuple[str, str | None, tuple[str, ...], int] | int],
) -> None:
    with TemporaryDirectory() as place, Memory.open(place, embedder=None, clock=(clock := HandClock())) as memory:
        begun: dict[str, int | None] = {}
        for act in acts:
            facts = memory.inspect.newest_facts(99)
            if isinstance(act, int):
                lasting = [fact.id for fact in facts if fact.forgotten is None]
                if lasting:
                    memory.forget(lasting[act % len(lasting)], "over")
                continue
            text, key, tags, days = act
            start = None if days is None else START + timedelta(days=days)
            at = max(start or START, clock.now())

            def says_the_same(fact: Fact) -> bool:
                is_true = fact.valid_from <= at and (fact.valid_until is None or fact.valid_until > at)  # noqa: B023
                same = (fact.text, fact.key, fact.tags, begun[fact.id]) == (text, key, tags, days)  # noqa: B023
                return same and is_true and fact.forgotten is None

            known = [fact.id for fact in facts if says_the_same(fact)]
            fact = memory.archive(text, key=key, tags=tags, valid_from=start)
            row = memory.ledger(page=fact.id)[-1]
            if known:
                assert fact == memory.fact(known[0])
                assert (row.event, row.reason) == ("repeat", "it is there already")
                assert len(memory.inspect.newest_facts(99)) == len(facts)
            else:
                assert fact.id == f"f{len(facts) + 1}"
                assert row.event != "repeat"
                begun[fact.id] = days
        assert memory.check() == []


def test_a_clock_that_was_set_back_makes_no_repeat_a_new_fact(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None, clock=(clock := HandClock())) as memory:
        fact, seat = memory.archive("a bed"), memory.archive("a seat", key="seat")
        clock.set(START - timedelta(days=2))
        assert (memory.archive("a bed"), memory.archive("a seat", key="seat")) == (fact, seat)


def test_a_repeat_is_told_and_what_is_over_is_stored_anew(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        first = memory.archive("prefers the aisle", key="seat", tags=["travel"])
        again = memory.archive("prefers the aisle", key="seat", tags=["travel"], actor="agent")
        assert [str(source) for source in again.sources] == ["program", "agent"]
        assert replace(again, sources=first.sources) == first
        [*_, repeat] = memory.ledger(page="f1")
        assert (repeat.event, repeat.actor) == ("repeat", "agent")
        memory.archive("prefers the window", key="seat", tags=["travel"])
        assert memory.archive("prefers the aisle", key="seat", tags=["travel"]).id == "f3"  # superseded meanwhile
        memory.forget("f3", "wrong")
        assert memory.archive("prefers the aisle", key="seat", tags=["travel"]).id == "f4"
        memory.purge("f4")
        assert memory.archive("prefers the aisle", key="seat", tags=["travel"]).id == "f5"
