"""Sleeps over HTTP: proposed, decided, taken back, and a message that comes meanwhile is answered first."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest

from agents.sleep import requests
from pager.types import Json
from tests.serve.conftest import Api, Place, wait_until

AGENT = "/v1/agents/notes"


class Sleepy:
    """A model that reads in a sleep when it may. `did` is what it was asked for, in order."""

    def __init__(self) -> None:
        self.did = list[str]()
        self.asked, self.may = Event(), Event()

    def __call__(self, params: Json) -> str:
        if params["system"] != requests.FACTS:
            self.did.append("answer")
            return "Hello."
        self.did.append("sleep")
        self.asked.set()
        assert self.may.wait(60)
        return "[]"


@pytest.fixture
def model(place: Place) -> Iterator[Sleepy]:
    model = Sleepy()
    place.model.otherwise(model)
    yield model
    model.may.set()


@pytest.fixture
def client(api: Api, model: Sleepy) -> httpx.Client:
    """A caller with an agent to which much was said, with which no fact came."""
    client = api.client()
    client.post("/v1/agents", json={"id": "notes"})
    with api.server.workers.use("notes") as agent:
        said = ({"role": "user", "text": f"I have seen tram {number}. " * 60} for number in range(20))
        agent.memory.record_many(said)
    return client


def test_a_sleep_is_proposed_decided_and_taken_back(client: httpx.Client, model: Sleepy) -> None:
    model.may.set()
    for text in ("likes the red tram", "Likes the red tram.", "the old boat", "The old boat!"):
        client.post(f"{AGENT}/facts", json={"text": text})
    slept = client.post(f"{AGENT}/sleeps").json()["sleep"]
    assert [(edit["kind"], edit["state"]) for edit in slept["edits"]] == [("merge", "open")] * 2
    assert slept["finished"]
    assert client.get(f"{AGENT}/sleeps").json() == {"sleeps": [slept]}
    assert client.get(f"{AGENT}/sleeps/1").json() == slept
    refused = client.post(f"{AGENT}/sleeps/1/refuse", json={"edits": [2]}).json()
    assert [edit["state"] for edit in refused["edits"]] == ["open", "refused"]
    applied = client.post(f"{AGENT}/sleeps/1/apply").json()
    assert [edit["state"] for edit in applied["edits"]] == ["applied", "refused"]
    assert client.post(f"{AGENT}/sleeps/1/undo").json() == {"number": 1, "undone": [1], "stays": []}
    assert client.post(f"{AGENT}/sleeps").json() == {"sleep": None}
    assert [client.post(f"{AGENT}/sleeps/{number}/undo").status_code for number in ("1", "7", "x")] == [400, 404, 404]


def test_a_message_that_comes_meanwhile_is_answered_first(api: Api, client: httpx.Client, model: Sleepy) -> None:
    with ThreadPoolExecutor() as pool:
        sleeping = pool.submit(client.post, f"{AGENT}/sleeps")
        assert model.asked.wait(60)
        turn = pool.submit(client.post, f"{AGENT}/turns", json={"text": "hello"})
        wait_until(lambda: api.server.workers.figures["waiting"] == 1)
        model.may.set()
        assert turn.result().json()["text"] == "Hello."
        assert sleeping.result().json()["sleep"]["finished"]
    assert model.did[:3] == ["sleep", "answer", "sleep"]


def test_so_is_one_that_was_left(api: Api, client: httpx.Client, model: Sleepy) -> None:
    with ThreadPoolExecutor() as pool:
        sleeping = pool.submit(client.post, f"{AGENT}/sleeps")
        assert model.asked.wait(60)
        client.post(f"{AGENT}/tell", json={"text": "hello"})
        model.may.set()
        assert sleeping.result().json()["sleep"]["finished"]
    assert model.did[:3] == ["sleep", "answer", "sleep"]


def test_sleeps_do_not_give_way_to_each_other(api: Api, client: httpx.Client, model: Sleepy) -> None:
    with ThreadPoolExecutor() as pool:
        first = pool.submit(client.post, f"{AGENT}/sleeps")
        assert model.asked.wait(60)
        second = pool.submit(client.post, f"{AGENT}/sleeps")
        wait_until(lambda: api.server.workers.figures["waiting"] == 1)
        model.may.set()
        assert first.result().json()["sleep"]["number"] == 1
        assert second.result().json() == {"sleep": None}


def test_a_message_comes_before_a_sleep_that_is_due(place: Place, model: Sleepy) -> None:
    with place.home.open("notes", embedder=None) as memory:
        said = ({"role": "user", "text": f"I have seen tram {number}. " * 60} for number in range(20))
        memory.record_many(said)
    with place.serving(place.config("notes", more="sleep: {when: idle 1s}\n")) as api:
        client = api.client()
        api.server.instances.home.set_due("notes", api.server.clock.now())
        assert model.asked.wait(60)
        client.post(f"{AGENT}/tell", json={"text": "hello"})
        model.may.set()
        wait_until(lambda: client.get(f"{AGENT}/sleeps").json()["sleeps"][0]["finished"])
    assert model.did[:3] == ["sleep", "answer", "sleep"]
