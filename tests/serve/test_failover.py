"""A server whose Postgres fails over, or has a full disk: it goes on by itself, with nothing lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from threading import Event, Thread

import httpx
import pytest

from tests.serve.conftest import Api, Place, wait_until
from tests.support.standby import Pair

_numbers = count()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    made = Pair(own_disks=True)
    yield made
    made.close()


@pytest.fixture
def served(place: Place, pair: Pair) -> Iterator[Api]:
    name = f"serve{next(_numbers)}"
    pair.make_database(name)
    place.address = pair.address(name, lease_seconds=2)
    place.model.otherwise("Hello.")
    with place.serving() as api:
        yield api


def asked(place: Place, agent: str) -> list[str]:
    """Return what the agent was asked, oldest first."""
    found = list[str]()
    with place.home.read(agent, embedder=None) as reader:
        total = reader.inspect.steps(0, 1).total
        for offset in range(0, total, 100):
            rows = reader.inspect.steps(offset, 100).rows
            found += [reader.page_text(row.page_id) for row in rows if row.kind == "user"]
    return found[::-1]


def say(client: httpx.Client, agent: str, number: int) -> bool:
    """Say something, whose number is its key too. Return whether it was answered."""
    headers = {"Idempotency-Key": f"k{number}"}
    answer = client.post(f"/v1/agents/{agent}/turns", json={"text": f"number {number}"}, headers=headers)
    if answer.status_code == 200:
        assert answer.json()["text"] == "Hello."
        return True
    assert answer.status_code == 503, answer.text
    assert answer.headers["retry-after"]
    return False


def test_promotions_during_turns_lose_and_double_nothing(place: Place, pair: Pair, served: Api) -> None:
    agents, ended = {"a": 0, "b": 0, "c": 0}, Event()
    client = served.client()
    for agent in agents:
        assert client.post("/v1/agents", json={"id": agent}).status_code == 201

    def talk(agent: str) -> None:
        while not ended.is_set():
            number = agents[agent]
            wait_until(partial(say, client, agent, number))
            agents[agent] += 1

    talks = [Thread(target=talk, args=(agent,)) for agent in agents]
    for each in talks:
        each.start()
    try:
        for round_ in range(1, 4):
            wait_until(lambda enough=5 * round_: min(agents.values()) >= enough)
            assert client.post("/v1/agents/a/tell", json={"text": f"told {round_}"}).status_code == 202
            pair.fail_over()
    finally:
        ended.set()
        for each in talks:
            each.join()
    for agent, said in agents.items():
        assert [each for each in asked(place, agent) if each[:4] != "told"] == [
            f"number {each}" for each in range(said)
        ]
    told = ["told 1", "told 2", "told 3"]
    wait_until(lambda: [each for each in asked(place, "a") if each[:4] == "told"] == told)
    assert client.get("/healthz").json()["status"] == "ok"


def test_a_full_disk_of_postgres_is_told_and_then_all_goes_on(place: Place, pair: Pair, served: Api) -> None:
    client = served.client()
    assert client.post("/v1/agents", json={"id": "a"}).status_code == 201
    said = 0
    while say(client, "a", said):
        said += 1
        if said == 5:
            pair.fill_disk()
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert answer.json()["home"] in ("its disk is full", "it refuses")
    pair.free_disk()
    wait_until(lambda: say(client, "a", said))
    assert asked(place, "a") == [f"number {number}" for number in range(said + 1)]
    assert client.get("/healthz").json()["status"] == "ok"
