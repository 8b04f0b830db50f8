"""Law 10: every piece of a request says why it entered and why it left. (tests/laws makes every request again.)"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pager import Memory
from pager.types import number_of
from tests.inspect.life import lived
from tests.support import Talk

EVENTS = {"archive", "supersede", "core", "recall", "pin", "unpin", "page_in", "page_out", "evict", "spill", "epoch",
          "notice", "drop", "forget"}  # fmt: skip


@pytest.mark.slow
def test_every_movement_has_a_row_with_step_reason_actor_and_tokens(tmp_path: Path) -> None:
    with lived(tmp_path) as life:
        memory = life.memory
        memory.page_out("f1")
        memory.forget("f2", "wrong")
        memory.move_to_archive("human", "told in turn 0", actor="agent")
        resident = {stay.page_id for stay in memory.history.resident() if stay.how != "recalled"}
        left = [stay for n in range(1, 100) for stay in memory.history.residencies(f"s{n}") if stay.until_step]
        rows = memory.ledger()
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.at for row in rows] == sorted(row.at for row in rows)
    assert [row.step for row in rows] == sorted((row.step for row in rows), key=number_of)
    assert {row.event for row in rows} >= EVENTS
    for row in rows:
        assert row.actor in ("agent", "person", "pager", "file")
        assert row.reason, row
        assert row.tokens > 0 or not row.page_id or row.event == "drop", row
    assert sum(row.tokens for row in rows if row.event == "evict") > 3_000
    assert len(left) > 50
    gone = {row.page_id for row in rows if row.event in ("evict", "drop")}
    for stay in left:
        assert stay.reason
        assert stay.page_id in gone - resident
        assert number_of(stay.from_step) <= number_of(stay.until_step or "")


def test_nobody_changes_the_ledger(memory: Memory, tmp_path: Path) -> None:
    memory.archive("has two cats")
    with closing(sqlite3.connect(tmp_path / "pager.db")) as database:
        for sql in (
            "DELETE FROM ledger",
            "UPDATE ledger SET reason = 'x'",
            "INSERT OR REPLACE INTO ledger SELECT * FROM ledger",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                database.execute(sql)
    assert len(memory.ledger()) == 1


@pytest.mark.slow
def test_an_eviction_that_nobody_announced_says_so(tmp_path: Path) -> None:
    calm, talk = Talk(tmp_path / "calm", window=8_000), Talk(tmp_path / "talk", window=8_000)
    calm.fill(9_000)
    reasons = [row.reason for row in calm.memory.ledger(events=["epoch"])]
    assert len(reasons) > 1
    assert not [reason for reason in reasons if "unannounced" in reason]
    talk.fill(2_500)
    talk.memory.append_user([{"type": "text", "text": f"part {number}: " + "word " * 350} for number in range(7)])
    talk.reply("Long.")
    assert "unannounced" in talk.memory.ledger(events=["epoch"])[-1].reason
