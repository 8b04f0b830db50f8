"""Measure what `selfpager serve` adds to a turn: `python -m tests.bench.bench_serve [overhead many]`

The model is a class in this process. What is compared alternates. Exits with 1 when a limit does not hold.

- overhead: POST .../turns over loopback, by a client that keeps its connection, against `Agent.turn` of an agent of the
  same past, both in a directory.
- many: turns of 20 agents from 20 clients at once, against the same turns one after the other.
"""

import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx

from agents import Agent
from agents.httpd import HttpServer
from agents.serve.app import make_app
from agents.serve.server import Server
from pager import Home, Prefetch
from tests.bench.figures import Figure, pair, run, timed
from tests.bench.reading_cost import Parrot

ROUNDS, WARM_UP, CLIENTS, EACH = 200, 30, 20, 10
MESSAGE = "I would like a seat on the left side of train number {}, if there is one with a table and a view of the sea."


def agent(home: Path, name: str) -> Agent:
    return Agent(name=name, model=Parrot(), home=home, embedder=None, prefetch=Prefetch(k=12))


@contextmanager
def serving(home: Path, count: int) -> Generator[list[httpx.Client]]:
    home.mkdir()
    with (home / "log").open("w") as log:
        server = Server(Home(home), [], token="token", log_to=log)
        server.workers._open_agent = lambda name, approve, task: agent(home, name)  # without a file
        for number in range(count):
            agent(home, f"a{number}").close()
        with HttpServer(make_app(server)) as http:
            server.start()
            clients = [
                httpx.Client(base_url=http.url, headers={"x-api-key": "token"}, timeout=60) for _ in range(count)
            ]
            try:
                yield clients
            finally:
                for client in clients:
                    client.close()
                server.close()


def ask(client: httpx.Client, number: int, name: str) -> None:
    answer = client.post(f"/v1/agents/{name}/turns", json={"text": MESSAGE.format(number)})
    assert answer.status_code == 200, answer.text


def overhead(work: Path) -> list[Figure]:
    with serving(work / "served", 1) as [client], agent(work / "bare", "a0") as bare:
        numbers = iter(range(1_000_000))
        sides = (
            lambda: timed(ask, client, next(numbers), "a0"),
            lambda: timed(bare.turn, MESSAGE.format(next(numbers))),
        )
        compared = pair(*sides, ("served", "bare"), rounds=ROUNDS, warm_up=WARM_UP)
        added = 1000 * (median(compared.ours) - median(compared.bare))
        ratio = compared.medians("a served turn against a bare one")
        return [Figure("what a request adds to a turn", "the difference of the medians", added, 5, " ms"), ratio]


def many(work: Path) -> list[Figure]:
    with serving(work / "many", CLIENTS) as clients, ThreadPoolExecutor(CLIENTS) as pool:

        def turns(number: int) -> None:
            for turn in range(EACH):
                ask(clients[number], turn, f"a{number}")

        start = time.perf_counter()
        list(pool.map(turns, range(CLIENTS)))
        rate = CLIENTS * EACH / (time.perf_counter() - start)
    return [Figure("turns a second", f"{CLIENTS} agents, as many clients, one process", rate, None, "")]


if __name__ == "__main__":
    sys.exit(run({"overhead": overhead, "many": many}, sys.argv[1:], "starlette", "uvicorn"))
