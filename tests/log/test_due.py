"""Which agents a worker is sent to: those that it can claim, however many there are that it cannot."""

from __future__ import annotations

from pager import Home
from pager.store.schema import VERSION
from tests.log.test_ownership import rows_of

DEAD = "'{\"worker\": \"dead\"}', clock_timestamp() - interval '1 minute'"


def test_what_nobody_can_be_sent_to_keeps_nobody_from_the_rest(home: Home, address: str) -> None:
    """Helpers that a dead worker has left stay claimed, and a newer format is for newer workers."""
    home.names()
    ask = rows_of(address).server.ask
    ask(
        f"""INSERT INTO selfpager.agents (name, seq, format, owner, lease_until)
            SELECT 'x/' || n, 1, 0, {DEAD} FROM generate_series(1, 200) n UNION ALL
            SELECT 'new' || n, 1, {VERSION + 1}, {DEAD} FROM generate_series(1, 200) n UNION ALL
            SELECT 'x', 1, {VERSION}, {DEAD}"""
    )
    assert home.take_due() == ["x"]
    assert home.take_due() == []  # for as long as a lease lasts


def test_it_is_found_without_reading_all_agents(home: Home, address: str) -> None:
    home.names()
    ask = rows_of(address).server.ask
    ask("INSERT INTO selfpager.agents (name, seq) SELECT 'a' || n, 1 FROM generate_series(1, 20000) n")
    ask("UPDATE selfpager.agents SET due = clock_timestamp() WHERE name IN ('a7', 'a9')")
    ask("VACUUM ANALYZE selfpager.agents")
    before = read(address)
    assert sorted(home.take_due()) == ["a7", "a9"]
    assert read(address) == before


def read(address: str) -> int:
    """How often the table was read from its beginning to its end."""
    server = rows_of(address).server
    with server.transaction() as transaction:
        transaction.rows("SELECT pg_stat_force_next_flush()")
    return server.ask("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'agents'")[0][0]
