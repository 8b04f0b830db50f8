"""Law 10: every request can be made again, and every piece says why it entered and why it left."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pager import BlockSpec, Prefetch
from pager.types import Json, number_of
from tests.standin import Reply, call, search_result, thinking
from tests.support import Talk, Words


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path, window=8_000, core={"human": BlockSpec()}, embedder=Words(), prefetch=Prefetch(k=2))
    yield talk
    talk.memory.close()


def live(talk: Talk) -> dict[str, Json]:
    """Some of everything, over several epochs and openings; each reply with the request that it answered, as sent."""
    sent: dict[str, Json] = {}

    def reply(*blocks: Json | str | Reply) -> str:
        step = talk.reply(*blocks)
        assert talk.last
        sent[step] = json.loads(json.dumps(talk.last.params))
        return step

    for number in range(60):
        talk.memory.append_user(f"turn {number}: " + "and so we went on " * 8)
        if number % 7 == 0:
            talk.memory.archive(f"turn {number}: and so we went on", key="fact")
            talk.memory.core_append("human", f"line {number}")
        if number % 7 == 2:
            talk.memory.page_in(talk.memory.inspect.newest_facts(1)[0].id, pin=True)
        if number % 9 == 4:
            reply(thinking("hm"), call("weather", {"city": "x"}), call("weather", {"city": "y"}))
            talk.answer("sunny " * (2_000 if number == 13 else 20), is_error=number == 22)
        if number % 11 == 5:
            paused = reply(Reply.pause())
            reply(search_result(talk.memory.history.blocks_of(paused)[-1]["id"]), "found")
        elif number % 13 == 6:
            reply(Reply.empty())
        elif number % 17 == 8:
            reply(Reply.refusal())
            talk.watch.forget_tail()
        else:
            reply(thinking("so"), f"Answer {number}. " + "it is so " * 15)
        if number % 10 == 3:
            talk.reopen()
        if number == 40:
            talk.reopen(instructions="Be long.")
    return sent


@pytest.mark.slow
def test_every_step_that_left_says_when_and_why(talk: Talk) -> None:
    live(talk)
    now = {stay.page_id for stay in talk.memory.history.resident()}
    left = 0
    for number in range(1, 100):
        for stay in talk.memory.history.residencies(f"s{number}"):
            assert (stay.until_step is None) == (stay.page_id in now)
            if stay.until_step is not None:
                left += 1
                assert stay.reason
                assert number_of(stay.from_step) <= number_of(stay.until_step)
                assert [m for m in talk.memory.ledger(page=stay.page_id) if m.event in ("evict", "drop")]
    assert left > 50


@pytest.mark.slow
def test_the_ledger_has_a_row_for_every_movement_with_step_reason_actor_and_tokens(talk: Talk) -> None:
    live(talk)
    talk.memory.forget("f1", "wrong")
    talk.memory.move_to_archive("human", "line 0", actor="agent")
    rows = talk.memory.ledger()
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.at for row in rows] == sorted(row.at for row in rows)
    assert [row.step for row in rows] == sorted((row.step for row in rows), key=number_of)
    seen = {row.event for row in rows}
    assert seen >= {"archive", "supersede", "core", "recall", "pin", "unpin", "page_in", "page_out", "evict", "spill",
                    "epoch", "notice", "drop", "forget"}  # fmt: skip
    for row in rows:
        assert row.actor in ("agent", "person", "pager", "file")
        assert row.reason, row
        if row.page_id and row.event != "drop":
            assert row.tokens > 0, row
    told = sum(row.tokens for row in rows if row.event == "evict")
    assert told > 3_000


def test_nobody_changes_the_ledger(talk: Talk) -> None:
    talk.memory.archive("has two cats")
    with closing(sqlite3.connect(talk.directory / "pager.db")) as database:
        for sql in (
            "DELETE FROM ledger",
            "UPDATE ledger SET reason = 'x'",
            "INSERT OR REPLACE INTO ledger SELECT * FROM ledger",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                database.execute(sql)
    assert len(talk.memory.ledger()) == 2


@pytest.mark.slow
def test_an_eviction_that_nobody_announced_says_so(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    talk.fill(2_500)
    talk.memory.append_user([{"type": "text", "text": f"part {number}: " + "word " * 350} for number in range(7)])
    talk.reply("Long.")
    assert "unannounced" in talk.memory.ledger(events=["epoch"])[-1].reason
    calm = Talk(tmp_path / "calm", window=8_000)
    calm.fill(9_000)
    reasons = [row.reason for row in calm.memory.ledger(events=["epoch"])]
    assert len(reasons) > 1
    assert not [reason for reason in reasons if "unannounced" in reason]
