"""Those benches of bench_fleet.py that run real workers (fleet_worker.py): 500 open agents, four workers, a kill."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median

from agents.fleet import overview
from pager import Home
from pager.log.rows import Rows
from tests.bench.figures import Figure, timed
from tests.bench.fleet_worker import Fleet, Worker
from tests.bench.played_model import PlayedModel
from tests.support.postgres import Postgres, rows_of

KNOWN, OPEN, FIRST, FAILOVERS, BESIDE, WARM_UP_S, MEASURED_S = 10_000, 500, 100, 5, 300, 3, 12
MESSAGE = "I would like a seat on the left side of train number {}, if there is one with a table and a view of the sea."
PATHS = ("/v1/agents?after=a5000", "/view/api/fleet?from=a5000", "/healthz", "/metrics")


def failover(work: Path, lease_seconds: float) -> list[Figure]:
    with closing(Postgres(syncs=True)) as postgres, PlayedModel(1) as model, ExitStack() as opened:
        fleet = opened.enter_context(Fleet.of(postgres, work, model.base_url, lease_seconds=lease_seconds))
        kills = list[tuple[float, float]]()
        workers = fleet.start(2, "--open", str(OPEN))
        for number in range(FAILOVERS):
            *seconds, survivor = _killed_at_work(fleet, model, workers, f"of-{number}")
            kills.append((seconds[0], seconds[1]))
            workers = [survivor, *fleet.start(1, "--open", str(OPEN))]
        fleet.know(2 * BESIDE + 1, workers[0])
        with workers[0].client() as first, workers[1].client() as second, ThreadPoolExecutor(8) as pool:

            def open_agent(number: int) -> None:
                client, path = (first, second)[number % 2], f"/v1/agents/a{number}/facts"
                # On a machine that is busy with other things, a lease of 3 s may end before it is renewed.
                until(lambda: client.post(path, json={"text": "is known"}).status_code == 201)

            list(pool.map(open_agent, range(1, 2 * BESIDE + 1)))
        beside, stored, _ = _killed_at_work(fleet, model, workers, "of-many")
    claimed, answered = ([seconds[which] for seconds in kills] for which in range(2))
    spread = f"lease of {lease_seconds:g} s, {FAILOVERS} kills; {min(claimed):.2f} to {max(claimed):.2f} s"
    until_stored = f"of which the model takes 1 s; {min(answered):.2f} to {max(answered):.2f} s"
    others = f"one kill; until the answer is stored {stored:.2f} s"
    return [
        Figure("the same of `selfpager serve`, at work", spread, max(claimed), 4, " s"),
        Figure("until the answer is stored", until_stored, max(answered), None, " s"),
        Figure(f"with {BESIDE} others open there", others, beside, 4, " s"),
    ]


def _killed_at_work(fleet: Fleet, model: PlayedModel, workers: list[Worker], name: str) -> tuple[float, float, Worker]:
    """Kill the worker that answers a message that was left. Return the seconds until the other one has claimed the
    agent, and until it has answered, and that one."""
    with workers[0].client() as client:
        assert client.post("/v1/agents", json={"id": name}).status_code == 201
        asked = model.asked()
        assert client.post(f"/v1/agents/{name}/tell", json={"text": "hello"}).status_code == 202
    until(lambda: model.asked() > asked)
    at_work = owner(fleet.home, name)
    [killed] = (worker for worker in workers if worker.url == at_work)
    [other] = (worker for worker in workers if worker is not killed)
    killed.end(signal.SIGKILL)
    start = time.perf_counter()
    until(lambda: owner(fleet.home, name) == other.url)
    claimed = time.perf_counter() - start
    until(lambda: is_answered(fleet.home, name), 0.1)
    return claimed, time.perf_counter() - start, other


def until(holds: Callable[[], bool], pause_seconds: float = 0.01) -> None:
    while not holds():
        time.sleep(pause_seconds)


def owner(home: Home, name: str) -> str:
    return str((home.owner(name) or {}).get("url"))


def is_answered(home: Home, name: str) -> bool:
    with home.read(name, embedder=None) as reader:
        steps = reader.inspect.steps(0, 1).rows
        return bool(steps) and steps[0].kind == "assistant"


def opening(work: Path) -> list[Figure]:
    with closing(Postgres(syncs=True)) as postgres, PlayedModel(0) as model, ExitStack() as opened:
        fleet = opened.enter_context(Fleet.of(postgres, work, model.base_url))
        [worker] = fleet.start(1, "--open", str(OPEN))
        fleet.know(KNOWN, worker)
        client, pool = opened.enter_context(worker.client()), opened.enter_context(ThreadPoolExecutor(8))

        def turn(number: int) -> None:
            answer = client.post(f"/v1/agents/a{number}/turns", json={"text": "hello"})
            assert answer.status_code == 200, answer.text

        more = range(FIRST + 1, OPEN + 1)
        list(pool.map(turn, range(1, FIRST + 1)))  # with the first ones the worker loads what it needs
        megabytes, files = worker.megabytes, worker.files
        first, again = (timed(lambda: list(pool.map(turn, more))) / len(more) for _ in range(2))
        megabytes, files = (worker.megabytes - megabytes) / len(more), (worker.files - files) / len(more)
        at_once = f"{len(more)} agents, 8 at once; {1000 * again:.1f} ms for one that is open"
        figures = [
            Figure("open an agent and take a turn", at_once, 1000 * first, None, " ms"),
            Figure("memory of an open agent", f"the worker has {worker.megabytes:.0f} MB", megabytes, 0.8, " MB"),
            Figure("file descriptors of an open agent", f"the worker has {worker.files}", files, 4, ""),
        ]
        for path in PATHS:
            taken = [timed(client.get, path) for _ in range(9)]
            measured = f"{KNOWN:,} agents; the first time {1000 * taken[0]:.0f} ms"
            figures.append(Figure(f"GET {path}", measured, 1000 * median(taken), None, " ms"))
        figures += [_renewal(rows_of(fleet.address)), _listed(fleet.home)]
        stopped = timed(worker.end)
        return [*figures, Figure("stop, and give all back", f"{OPEN} open agents", stopped, None, " s")]


def _renewal(rows: Rows) -> Figure:
    claims = [claim for number in range(OPEN) if (claim := rows.claim(f"a{KNOWN // 2 + number}", {"pid": 1}))]
    taken = [timed(rows.renew, claims) for _ in range(20)]
    return Figure("renew all leases", f"{len(claims)} agents, one statement", 1000 * median(taken), None, " ms")


def _listed(home: Home) -> Figure:
    names = home.names(begin="a5000", limit=200)
    return Figure("`selfpager list`", f"{len(names)} of them", timed(lambda: list(overview(home, names))), None, " s")


def several(work: Path) -> list[Figure]:
    found = list[Figure]()
    for model_seconds, clients in ((0, 32), (1, 128)):
        rates = list[float]()
        for count in (1, 4):
            folder = work / f"{model_seconds}-{count}"
            folder.mkdir()
            with closing(Postgres(syncs=True)) as postgres, PlayedModel(model_seconds) as model, ExitStack() as opened:
                fleet = opened.enter_context(Fleet.of(postgres, folder, model.base_url))
                rate, measured = _turns(fleet, model, count, clients)
            rates.append(rate)
            what = f"turns a second, {count} worker{'s' if count > 1 else ''}, the model takes {model_seconds} s"
            found.append(Figure(what, measured, rate, None, ""))
        found.append(Figure("4 workers against 1", f"the model takes {model_seconds} s", rates[1] / rates[0]))
    return found


def _turns(fleet: Fleet, model: PlayedModel, count: int, clients: int) -> tuple[float, str]:
    """Let each client talk with an agent of its own, each at its worker. Return turns a second, and who took the
    processor."""
    workers = fleet.start(count, "--threads", str(clients))
    opened = [workers[number % count].client() for number in range(clients)]

    def turns(number: int, end: float) -> int:
        done = 0
        while time.perf_counter() < end:
            answer = opened[number].post(f"/v1/agents/a{number}/turns", json={"text": MESSAGE.format(done)})
            assert answer.status_code == 200, answer.text
            done += 1
        return done

    def spent_by() -> dict[str, float]:
        return {
            "workers": sum(worker.spent() for worker in workers), "Postgres": fleet.postgres_spent(),
            "model": model.spent(), "clients": time.process_time(),
        }  # fmt: skip

    with ThreadPoolExecutor(clients) as pool:
        for number in range(clients):
            assert opened[number].post("/v1/agents", json={"id": f"a{number}"}).status_code == 201
        end = time.perf_counter() + WARM_UP_S
        list(pool.map(partial(turns, end=end), range(clients)))
        before, start = spent_by(), time.perf_counter()
        done = sum(pool.map(partial(turns, end=start + MEASURED_S), range(clients)))
        seconds, after = time.perf_counter() - start, spent_by()
    for each in opened:
        each.close()
    spent = {name: after[name] - before[name] for name in before}
    each_turn = ", ".join(f"{name} {1000 * taken / done:.1f}" for name, taken in spent.items())
    busy = f"{sum(spent.values()) / seconds:.1f} of {os.cpu_count()} cores busy with it"
    return done / seconds, f"{clients} clients; ms of a core for a turn: {each_turn}; {busy}"
