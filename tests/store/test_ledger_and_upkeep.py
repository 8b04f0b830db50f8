"""The store keeps the ledger, commands and values; it checks itself, copies itself, and erases what is purged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pager.errors import StorageError
from pager.search.words import words
from pager.store import Store
from pager.types import Counts, Movement
from tests.contract.vector_sources import unit_vectors
from tests.store.rows import Place, found, keep, say, text
from tests.support.clock import START

# --- ledger


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


def test_the_ledger_is_changed_by_a_purge_only(store: Store) -> None:
    store.ledger.write("archive", "f1", reason="secret")

    def change(text: str, *, is_json: bool) -> str:
        return text.replace("secret", "gone")

    with pytest.raises(StorageError, match="append-only"):
        store.maintenance.rewrite(change)
    assert [row.reason for row in store.ledger.movements()] == ["secret"]
    store.settings.put("purging", "f1")
    store.maintenance.rewrite(change)
    assert [row.reason for row in store.ledger.movements()] == ["gone"]


def test_a_command_is_taken_once(store: Store) -> None:
    assert store.settings.command("1-a") is None
    store.settings.save_command("1-a", 5, "message", "done")
    assert store.settings.command("1-a") == "done"
    with pytest.raises(StorageError):
        store.settings.save_command("1-a", 6, "message", "again")


def test_values_and_tokenizers_are_exchanged_whole(store: Store) -> None:
    for get, put in (
        (store.settings.get, store.settings.put),
        (store.prompt.tokenizer, store.prompt.save_tokenizer),
    ):
        assert get("m") is None
        for value in ("1", "é\0"):
            put("m", value)
        assert (get("m"), get("n")) == ("é\0", None)
    store.settings.put("m", None)
    assert (store.settings.get("m"), store.prompt.tokenizer("m")) == (None, "é\0")


# --- upkeep


def grown(store: Store) -> tuple[int, int]:
    """A bit of everything, as the memory would leave it: a step and a fact."""
    with store.transaction():
        step, part = say(store, "the secret lamp")
        store.conversation.size(part, Counts(3))
        store.prompt.enter(f"s{step}", "step", step)
        fact = keep(store, "the secret room", key="room", tags=("attic",))
        store.ledger.write("archive", f"f{fact}")
    return step, fact


def test_a_sound_store_has_nothing_to_complain_about(store: Store) -> None:
    assert (store.maintenance.damage(), store.maintenance.audit(), store.maintenance.words_missing()) == ([], [], [])
    grown(store)
    assert (store.maintenance.damage(), store.maintenance.audit(), store.maintenance.words_missing()) == ([], [], [])


def test_a_copy_is_a_store_and_overwrites_nothing(store: Store, place: Place, tmp_path: Path) -> None:
    step, fact = grown(store)
    copy = Place(tmp_path / "copy")
    copy.directory.mkdir()
    store.maintenance.copy_to(copy.file, {})
    store.conversation.append_step("user", "user", 0)
    for file in (copy.file, tmp_path / "missing" / "copy"):
        with pytest.raises(StorageError):
            store.maintenance.copy_to(file, {})
    opened = copy.open()
    assert (opened.conversation.last_step(), found(opened, "lamp")) == (step, {step})
    assert opened.archive.facts([fact]) == store.archive.facts([fact])
    assert (opened.maintenance.damage(), opened.maintenance.audit()) == ([], [])
    copy.close()


def test_no_file_keeps_what_was_deleted_and_erased(store: Store, place: Place) -> None:
    step, fact = grown(store)
    assert place.bytes().count(b"secret") > 3

    def change(text: str, *, is_json: bool) -> str:
        return text.replace("secret", "[gone]")

    store.maintenance.mark_fact_purged(fact)
    changed = store.maintenance.rewrite(change)
    assert [table for table, _ in changed] == ["parts"]
    store.maintenance.clear_words()
    store.maintenance.erase_freed()
    assert not {word for word in (b"secret", b"attic") if word in place.bytes().lower()}
    assert store.conversation.originals(step) == [text("the [gone] lamp")]


def test_what_is_purged_keeps_its_place_and_is_not_found(store: Store) -> None:
    step, fact = grown(store)
    store.archive.store_vector(fact, unit_vectors(1)[0])
    [(part, _)] = store.maintenance.parts_in(step)
    store.conversation.reform(part, 1, text("as carried"))
    store.maintenance.mark_fact_purged(fact)
    store.maintenance.mark_step_purged(step)
    store.maintenance.overwrite_part(part, lambda block: block.replace("s", "*"))
    known = store.archive.fact(fact)
    assert known is not None
    assert (known.purged, known.text, known.key, known.tags) == (True, "", None, ())
    assert [store.archive.true_at([fact], 0, ()), store.archive.newest_of(["attic"], 0, 9)] == [set(), []]
    assert (store.archive.match(words("room"), 9, 0, ()), store.archive.versions("room")) == ([], [])
    assert (store.archive.count_vectors(), store.archive.without_vector(9)) == (0, [])
    row = store.conversation.step(step)
    assert row is not None
    assert (row["purged"], store.said.newest(9, None, None)) == (1, [])
    assert store.conversation.load([step], 1)[0].parts[0].form == {"type": "text", "text": "a* carried"}
