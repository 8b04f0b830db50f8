"""What only the tables can show: words of a question, facts about what was said, the ledger's rows.

Everything else that they promise is proved through the memory (tests/laws, and the tests of the rooms above).
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from pager.store import Store
from pager.store.rows import SaidMeta
from pager.types import Movement
from tests.store.rows import say, text
from tests.support.clock import START


def test_a_question_has_each_word_once_in_its_order_and_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    terms = store.conversation.terms
    [warm, _, _], empty, odd = terms(["warming the room", "", '"* OR ('])
    assert (empty, odd) == ([], ["or"])
    assert terms(["warm? ROOM warming \u00e9t\u00e9 warmed"]) == [[warm, "room", "et"]]
    assert terms(["zyzzogeton"]) == [["zyzzogeton"]]
    assert not [file for file in tmp_path.iterdir() if b"zyzzogeton" in file.read_bytes()]
    assert terms(["warm"]) == [["warm"]]


def test_what_was_said_is_known_without_its_text(store: Store) -> None:
    first, one = say(store, "we warm the room", 30, name="Dana", session="home")
    store.conversation.append_part(first, "said", "result", text("of a memory tool"), 99)
    second = store.conversation.append_step("record", "narrator", 20)
    two = store.conversation.append_part(second, "said", "user", text("x " * 300), 20, words="x " * 300)
    told = store.said.metadata(0)
    assert told == [
        SaidMeta(one, first, 30, "user", "user", "Dana", "home", 4),
        SaidMeta(two, second, 20, "record", "narrator", None, None, 300),
    ]
    assert (store.said.metadata(one), store.said.metadata(two)) == (told[1:], [])


def test_the_ledger_gives_rows_in_order_by_page_event_and_age(store: Store) -> None:
    for page, event in (("f1", "archive"), ("f2", "archive"), (None, "search"), ("f1", "forget"), ("f1", "archive")):
        store.ledger.write(
            event, page, reason="why \0 é", actor="agent", tokens=5, step=3, query="\0 é", found=[["f1", 0.5]]
        )
    store.ledger.write("notice", nothing=None, none=[])
    rows = store.ledger.movements()
    first = Movement(
        rows[0].number, START + timedelta(seconds=1), "s3", "archive", "f1", "why \0 é", "agent", 5,
        {"query": "\0 é", "found": [["f1", 0.5]]},
    )  # fmt: skip
    assert (rows[0], rows[-1].tokens, rows[-1].detail, rows[-1].step) == (first, 0, {}, "s0")
    numbers = [row.number for row in rows]
    assert numbers == sorted(set(numbers))

    def places(**asked: Any) -> list[int]:
        return [numbers.index(row.number) for row in store.ledger.movements(**asked)]

    assert (places(), places(limit=2), places(limit=0)) == ([0, 1, 2, 3, 4, 5], [4, 5], [])
    assert (places(page="f1"), places(page="f1", limit=2), places(page="f9")) == ([0, 3, 4], [3, 4], [])
    assert (places(events=["search", "forget"]), places(events=["archive"], limit=1)) == ([2, 3], [4])
    assert (places(page="f1", events=["archive"]), places(after=numbers[3])) == ([0, 4], [4, 5])
