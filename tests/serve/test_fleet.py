"""Several workers on one Postgres: whoever is asked, the agent answers, once."""

from __future__ import annotations

import base64
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest

from agents.serve.keys import Keys
from agents.testing import Reply, call, stall
from pager.clock import SystemClock
from pager.errors import UnavailableError
from tests.log.test_ownership import stop_renewing
from tests.serve.conftest import Place, arriving, events, wait_until
from tests.serve.test_kill import Gate, process
from tests.support.cli import command_line
from tests.support.postgres import Postgres, rows_of

TURNS = "/v1/agents/notes/turns"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    made = Postgres()
    yield made
    made.close()


@pytest.fixture
def fleet(place: Place, postgres: Postgres, request: pytest.FixtureRequest) -> Place:
    name = f"serve_{abs(hash(request.node.name)):x}"
    postgres.make_database(name)
    place.address = postgres.address(name, lease_seconds=2)
    return place


def workers(place: Place, opened: ExitStack, count: int = 2) -> list[tuple[subprocess.Popen[str], httpx.Client]]:
    return [opened.enter_context(process(place, "--advertise", "own")) for _ in range(count)]


def owner(place: Place) -> str | None:
    found = place.home.owner("notes")
    return str(found["url"]) if found else None


def test_a_request_is_passed_on_to_the_worker_that_has_the_agent(fleet: Place) -> None:
    fleet.model.otherwise("Hello.")
    fleet.address = fleet.address.replace("lease_seconds=2", "lease_seconds=3600")
    with ExitStack() as opened:
        (_, first), (_, second) = workers(fleet, opened)
        assert first.post("/v1/agents", json={"id": "notes"}).status_code == 201
        assert first.post(TURNS, json={"text": "1"}).json()["text"] == "Hello."
        at = owner(fleet)
        assert at == str(first.base_url).rstrip("/")
        answer = second.post(TURNS, json={"text": "2"}, headers={"Idempotency-Key": "k"})
        assert answer.json()["steps"] == ["s4"]
        assert first.get(f"{TURNS}/k").json() == answer.json()
        streamed = second.post(TURNS, json={"text": "3"}, headers={"Accept": "text/event-stream"})
        assert events(streamed)[-1][1] == "turn"
        assert second.get("/v1/agents/notes/steps").json()["total"] == 6
        asked = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "4"}]}
        message = second.post("/a/notes/v1/messages", json=asked, headers={"anthropic-version": "2023-06-01"})
        assert message.json()["content"] == [{"type": "text", "text": "Hello."}]
        assert "selfpager-history" in message.headers
        assert owner(fleet) == at
        wrong = {"x-selfpager-worker": "guess", "x-selfpager-caller": '{"name":"x","tenant":"","scope":"admin"}'}
        assert httpx.get(f"{first.base_url}/v1/agents", headers=wrong).status_code == 401


def test_another_worker_goes_on_when_one_is_killed(fleet: Place) -> None:
    gate = Gate()
    fleet.model.otherwise(gate)
    with ExitStack() as opened, ThreadPoolExecutor() as pool:
        (running, first), (_, second) = workers(fleet, opened)
        first.post("/v1/agents", json={"id": "notes"})
        asking = pool.submit(first.post, TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"})
        gate.asked.wait(60)
        running.send_signal(signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            asking.result()
        gate.opened.set()
        answer = second.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"})
        assert answer.json()["text"] == "Hello."
        assert second.get("/v1/agents/notes/steps").json()["total"] == 2


def test_a_reader_whose_worker_died_gets_what_is_stored_and_the_rest(fleet: Place) -> None:
    """What a reader puts together is the answer, once: of the dead worker's events only those count that are stored."""
    fleet.model.script(Reply("I note that. ", call("archive", text="likes trams")), stall("It is no", after=0.9))
    headers = {"Accept": "text/event-stream", "Idempotency-Key": "k"}
    with ExitStack() as opened:
        (running, first), (_, second) = workers(fleet, opened)
        first.post("/v1/agents", json={"id": "notes"})
        seen = list[tuple[str, str, Any]]()
        with suppress(httpx.TransportError), first.stream("POST", TURNS, json={"text": "hi"}, headers=headers) as read:
            for event in arriving(read):
                seen.append(event)
                if event[1:] == ("text", {"text": "It is no"}):
                    fleet.model.otherwise("It is noted.")
                    running.kill()
        after = {**headers, "Last-Event-ID": seen[-1][0]}
        rest = events(second.post(TURNS, json={"text": "hi"}, headers=after))
        assert rest[0][1] == "resumed"
        assert rest[0][2]["replies"] == [{"step": "s2", "text": "I note that. "}]
        stored = [each["text"] for each in rest[0][2]["replies"]]
        new = [data["text"] for _, name, data in rest if name == "text"]
        assert "".join(stored + new) == "I note that. It is noted."
        assert rest[-1][1] == "turn"
        assert rest[-1][2]["text"] == "It is noted."
        assert events(second.get(f"{TURNS}/k", headers={**headers, "Last-Event-ID": rest[-2][0]})) == rest[-1:]


def test_what_a_killed_worker_had_begun_is_gone_on_with_unasked(fleet: Place) -> None:
    gate = Gate()
    fleet.model.otherwise(gate)
    with ExitStack() as opened:
        (running, first), (_, second) = workers(fleet, opened)
        first.post("/v1/agents", json={"id": "notes"})
        assert first.post("/v1/agents/notes/tell", json={"text": "psst"}).status_code == 202
        gate.asked.wait(60)
        running.send_signal(signal.SIGKILL)
        gate.opened.set()

        def answered() -> bool:
            with fleet.home.read("notes", embedder=None) as reader:
                return reader.inspect.steps(0, 1).rows[0].kind == "assistant"

        wait_until(answered)
        assert second.get("/v1/agents/notes/steps").json()["total"] == 2


def test_keys_are_those_of_the_database_and_its_outage_is_told(fleet: Place, postgres: Postgres) -> None:
    with ExitStack() as opened:
        [(_, client)] = workers(fleet, opened, 1)
        assert client.get("/healthz").status_code == 200
        postgres.kill()
        try:
            assert client.get("/healthz").status_code == 503
        finally:
            postgres.start()
        wait_until(lambda: client.get("/healthz").status_code == 200)


def test_keys_that_cannot_be_read_are_an_outage_for_all_who_ask(fleet: Place, postgres: Postgres) -> None:
    keys, together = Keys(fleet.home, SystemClock()), Barrier(16)

    def ask() -> object:
        together.wait()
        return keys.all()

    postgres.kill()
    try:
        with ThreadPoolExecutor(16) as pool:  # the first one asks, the others wait for it
            asking = [pool.submit(ask) for _ in range(16)]
            assert {type(each.exception()) for each in asking} == {UnavailableError}
    finally:
        postgres.start()


def test_a_worker_that_stops_gives_its_agents_back_at_once(fleet: Place) -> None:
    fleet.model.otherwise("Hello.")
    fleet.address = fleet.address.replace("lease_seconds=2", "lease_seconds=3600")
    with ExitStack() as opened:
        (running, first), (_, second) = workers(fleet, opened)
        first.post("/v1/agents", json={"id": "notes"})
        assert first.post(TURNS, json={"text": "1"}).status_code == 200
        assert owner(fleet) == str(first.base_url).rstrip("/")
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        assert owner(fleet) is None
        assert second.post(TURNS, json={"text": "2"}).json()["steps"] == ["s4"]


def test_an_agent_that_is_too_new_says_so(fleet: Place) -> None:
    with ExitStack() as opened:
        [(_, client)] = workers(fleet, opened, 1)
        client.post("/v1/agents", json={"id": "notes"})
        rows_of(fleet.address).server.ask("UPDATE selfpager.agents SET format = format + 1")
        answer = client.post(TURNS, json={"text": "1"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "newer")
        assert client.get("/v1/agents").json()["agents"] == ["notes"]


@pytest.mark.parametrize(
    "url", ["10.0.0.7:8300", "http://", "http://10.0.0.7:8300/v1", "http://me:pw1234@10.0.0.7:8300"]
)
def test_an_address_at_which_nobody_can_reach_it_is_refused(tmp_path: Path, url: str) -> None:
    refused = command_line("serve", "--home", tmp_path / "home", "--advertise", url)
    assert refused.code == 2
    assert "give an address such as http://10.0.0.7:8300" in refused.err
    assert "pw1234" not in refused.err


@pytest.mark.parametrize("way", ["tasks", "tell"])
def test_what_was_taken_on_is_gone_on_with_after_an_outage(fleet: Place, way: str) -> None:
    """The worker lives, and has lost the agent in the middle: nobody has died, and nobody asks again."""
    gate = Gate(call("task_done", summary="Done."), "Done.")
    fleet.model.otherwise(gate)
    with fleet.serving() as api:
        client, ask = api.client(), rows_of(fleet.address).server.ask
        client.post("/v1/agents", json={"id": "notes"})
        assert client.post(f"/v1/agents/notes/{way}", json={"text": "count"}).status_code == 202
        gate.asked.wait(60)
        ask("ALTER TABLE selfpager.commits ADD CONSTRAINT down CHECK (false) NOT VALID")
        gate.opened.set()
        wait_until(lambda: any("AgentLostError" in str(line) for line in api.lines))
        ask("ALTER TABLE selfpager.commits DROP CONSTRAINT down")

        def answered() -> bool:
            steps = client.get("/v1/agents/notes/steps").json().get("steps")
            return bool(steps) and steps[0]["kind"] == "assistant"

        wait_until(answered)


def test_clients_of_the_messages_api_ask_again_after_an_outage(fleet: Place) -> None:
    fleet.model.otherwise("Hello.")
    asked = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "1"}]}
    with fleet.serving() as api:
        client, ask = api.client(), rows_of(fleet.address).server.ask
        client.post("/v1/agents", json={"id": "notes"})
        ask("ALTER TABLE selfpager.commits ADD CONSTRAINT down CHECK (false) NOT VALID")

        def answer() -> httpx.Response:
            return client.post("/a/notes/v1/messages", json=asked, headers={"Idempotency-Key": "k"})

        lost = answer()
        assert lost.status_code == 503
        assert "x-should-retry" not in lost.headers  # the SDK does by itself
        ask("ALTER TABLE selfpager.commits DROP CONSTRAINT down")
        wait_until(lambda: answer().status_code == 200)
        assert answer().json()["content"] == [{"type": "text", "text": "Hello."}]


def test_an_agent_whose_lease_is_not_renewed_is_not_read_from_its_file(fleet: Place) -> None:
    with fleet.serving() as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        client.post("/v1/agents/notes/facts", json={"text": "one"})

        def is_read_there() -> bool:
            with api.server.workers.use_if_open("notes") as agent:
                return agent is not None

        wait_until(is_read_there)  # a process that stood still renews first
        stop_renewing(fleet.address)
        wait_until(lambda: not is_read_there())
        assert client.get("/v1/agents/notes/facts").json()["total"] == 1


def test_a_worker_that_stood_still_answers_with_what_another_has_stored(fleet: Place) -> None:
    with ExitStack() as opened:
        (running, first), (_, second) = workers(fleet, opened)
        first.post("/v1/agents", json={"id": "notes"})
        assert first.post("/v1/agents/notes/facts", json={"text": "one", "key": "k"}).status_code == 201
        running.send_signal(signal.SIGSTOP)

        def stored() -> bool:
            with suppress(httpx.TransportError):
                return second.post("/v1/agents/notes/facts", json={"text": "two", "key": "k"}).status_code == 201
            return False

        wait_until(stored)
        running.send_signal(signal.SIGCONT)
        assert [each["text"] for each in first.get("/v1/agents/notes/facts").json()["facts"]] == ["two"]


def test_an_agent_that_a_worker_has_open_gets_a_new_key(fleet: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setenv("SELFPAGER_MASTER_KEY", base64.b64encode(bytes(32)).decode())
    fleet.model.otherwise("Hello.")
    ask = rows_of(fleet.address).server.ask
    with fleet.serving() as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        assert client.post(TURNS, json={"text": "1"}).status_code == 200
        [(before,)] = ask("SELECT id FROM selfpager.keys")
        wait_until(lambda: client.post("/v1/agents/notes/rekey").json() == {"memories": 1})  # when its turn has ended
        assert ask("SELECT id FROM selfpager.keys") != [(before,)]
        assert client.post(TURNS, json={"text": "2"}).json()["steps"] == ["s4"]
