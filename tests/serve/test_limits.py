"""What is too much is refused, with what to do, and nothing that is private is in an error or in the log."""

from __future__ import annotations

import gc
import io
import json
import resource
import socket
import subprocess
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import repeat
from threading import Barrier, Event
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import httpx
import pytest

from agents.logs import log
from agents.serve.app import ENDPOINTS
from agents.serve.log import Log
from agents.serve.openapi import as_page, describe
from pager.errors import StorageError
from pager.types import Json
from tests.serve.conftest import Api, Place, events, wait_until
from tests.support.cli import COMMAND, environment
from tests.support.clock import HandClock

TURNS = "/v1/agents/notes/turns"


class Slow:
    """A model that answers when it may."""

    def __init__(self) -> None:
        self.asked, self.may = Event(), Event()

    def __call__(self, _: Json) -> str:
        self.asked.set()
        assert self.may.wait(60)
        return "Hello."


def test_a_full_line_is_refused_with_the_time_to_come_back(place: Place) -> None:
    slow = Slow()
    place.model.otherwise(slow)
    with place.serving(line=1) as api, ThreadPoolExecutor() as pool:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        first = pool.submit(client.post, TURNS, json={"text": "1"})
        slow.asked.wait(60)
        second = pool.submit(client.post, TURNS, json={"text": "2"})
        wait_until(lambda: api.server.workers.figures["waiting"] == 1)
        third = client.post(TURNS, json={"text": "3"})
        assert (third.status_code, third.json()["error"]["type"]) == (429, "busy")
        assert int(third.headers["retry-after"]) >= 1
        slow.may.set()
        assert [each.result().status_code for each in (first, second)] == [200, 200]
        assert client.post(TURNS, json={"text": "3"}).status_code == 200


def test_all_lines_together_have_a_limit(place: Place) -> None:
    slow = Slow()
    place.model.otherwise(slow)
    with place.serving(threads=1, whole_line=1) as api, ThreadPoolExecutor() as pool:
        client = api.client()
        for name in "abc":
            client.post("/v1/agents", json={"id": name})
        first = pool.submit(client.post, "/v1/agents/a/turns", json={"text": "1"})
        slow.asked.wait(60)
        second = pool.submit(client.post, "/v1/agents/b/turns", json={"text": "2"})
        wait_until(lambda: api.server.workers.figures["waiting"] == 1)
        assert client.post("/v1/agents/c/turns", json={"text": "3"}).status_code == 429
        assert client.get("/v1/agents/c/core").status_code == 200
        slow.may.set()
        assert [each.result().status_code for each in (first, second)] == [200, 200]


def test_a_request_that_waits_too_long_is_told_that_its_turn_goes_on(place: Place) -> None:
    slow = Slow()
    place.model.otherwise(slow)
    with place.serving(answer_seconds=0.2) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        late = client.post(TURNS, json={"text": "1"}, headers={"Idempotency-Key": "k"})
        assert (late.status_code, late.json()["error"]["type"]) == (504, "timeout")
        assert client.get(f"{TURNS}/k").status_code == 202
        slow.may.set()
        wait_until(lambda: not api.server.workers.is_working("notes"))
        assert client.get(f"{TURNS}/k").json()["text"] == "Hello."


def test_a_client_that_leaves_does_not_end_the_turn(place: Place, api: Api) -> None:
    slow = Slow()
    place.model.otherwise(slow)
    client = api.client()
    client.post("/v1/agents", json={"id": "notes"})
    headers = {"Idempotency-Key": "k", "Accept": "text/event-stream"}
    with client.stream("POST", TURNS, json={"text": "1"}, headers=headers):
        slow.asked.wait(60)
    slow.may.set()
    assert events(client.get(f"{TURNS}/k", headers=headers))[-1][2]["text"] == "Hello."
    assert len(place.model.requests) == 1


def test_a_stop_leaves_what_waits_and_the_rest_goes_on_at_the_next_start(place: Place) -> None:
    slow = Slow()
    place.model.otherwise(slow)
    with ThreadPoolExecutor() as pool:
        with place.serving(grace_seconds=0.1) as api:
            client = api.client()
            client.post("/v1/agents", json={"id": "notes"})
            first = pool.submit(client.post, TURNS, json={"text": "1"}, headers={"Idempotency-Key": "a"})
            slow.asked.wait(60)
            second = pool.submit(client.post, TURNS, json={"text": "2"}, headers={"Idempotency-Key": "b"})
            wait_until(lambda: api.server.workers.figures["waiting"] == 1)
            closing = pool.submit(api.server.close)
            assert second.result().json()["error"]["type"] == "stopping"
            assert client.post(TURNS, json={"text": "3"}).status_code == 503
            slow.may.set()
            closing.result()
            assert first.result().status_code in (200, 503)
        with place.serving() as api:
            client = api.client()
            answers = [
                client.post(TURNS, json={"text": text}, headers={"Idempotency-Key": key}).json()["text"]
                for key, text in (("a", "1"), ("b", "2"))
            ]
    assert answers == ["Hello.", "Hello."]
    assert len(place.model.requests) == 2


def test_only_so_many_agents_stay_open_and_all_answer(place: Place) -> None:
    place.model.otherwise("Hello.")
    with place.serving(open_agents=2) as api:
        client = api.client()
        for _ in range(2):
            for number in range(5):
                client.post("/v1/agents", json={"id": f"a{number}"})
                assert client.post(f"/v1/agents/a{number}/turns", json={"text": "hi"}).status_code == 200
        assert api.server.workers.figures["open"] == 2
        assert client.get("/v1/agents/a0").json()["steps"] == 4


def test_no_more_than_so_many_stay_open_after_many_were_at_work_at_once(place: Place) -> None:
    together = Barrier(4, timeout=60)
    with place.serving(open_agents=2) as api:
        client, workers = api.client(), api.server.workers
        for number in range(4):
            client.post("/v1/agents", json={"id": f"a{number}"})
        jobs = [workers.submit(f"a{number}", lambda _: together.wait()) for number in range(4)]
        assert sorted(job.result() for job in jobs) == [0, 1, 2, 3]
        wait_until(lambda: workers.figures["open"] == 2)


def ours() -> list[object]:
    """Return each object of a class of ours. A window may fill up, so what is in it is left out."""
    gc.collect()
    return [
        each
        for each in gc.get_objects()
        if str(type(each).__module__).startswith(("agents.", "pager."))
        and type(each).__name__ not in ("Step", "Part", "Counts")
    ]


def names_of(objects: Iterable[object]) -> Iterator[str]:
    """Name each object, and each thing in the collections of the server's objects."""
    for each in objects:
        kind = type(each)
        yield kind.__qualname__
        if str(kind.__module__).startswith("agents.serve"):
            for name, value in getattr(each, "__dict__", {}).items():
                if isinstance(value, dict | set | list | deque | WeakValueDictionary):
                    yield from repeat(f"{kind.__qualname__}.{name}", len(value))


def test_nothing_grows_with_the_agents_there_are_nor_with_what_they_have_done(place: Place) -> None:
    place.model.otherwise("Hello.")
    clock = HandClock()
    others = ours()  # of other tests: kept until the end, as they might go meanwhile
    known = {id(each) for each in others}
    with place.serving(open_agents=2, clock=clock) as api:
        client = api.client()
        names = [f"a{number}" for number in range(8)]

        def go() -> None:
            for name in names:
                client.post("/v1/agents", json={"id": name})
                assert client.post(f"/v1/agents/{name}/turns", json={"text": "hi"}).status_code == 200
                assert client.get(f"/v1/agents/{name}/turns/nothing").status_code == 404
                assert client.get(f"/v1/agents/{name}/facts").status_code == 200
            clock.set(clock.now() + timedelta(hours=2))  # events are kept for an hour
            client.post("/v1/agents/a0/turns", json={"text": "hi"})

        def count() -> Counter[str]:
            return Counter(names_of(each for each in ours() if id(each) not in known))

        go()
        wait_until(lambda: (found := count())["Desk"] == found["Agent"] == 2)
        first = count()
        for _ in range(2):
            go()
            wait_until(lambda: not count() - first)  # a thread may hold for a moment what it has just done


def test_agents_of_one_configuration_share_its_model_until_the_file_is_another(place: Place) -> None:
    file = place.config()
    with place.serving(file) as api:
        client = api.client()

        def model_of(name: str) -> object:
            client.post("/v1/agents", json={"id": name})
            with api.server.workers.use(name) as agent:
                return agent.model.close.__self__  # within what reads calls in texts

        first = model_of("a")
        assert model_of("b") is first
        file.write_text(file.read_text().replace("id: m,", "id: other,"))
        assert model_of("c") is not first
        assert model_of("a") is first  # it is open


def test_more_agents_than_files_are_refused_at_the_start(place: Place) -> None:
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 700))

    command = [*COMMAND, "serve", "--home", str(place.folder), "--port", "0", "--open", "500"]
    done = subprocess.run(command, preexec_fn=few_files, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 1
    assert "500 open agents need 2756 file descriptors, and this process may have 700. Give --open 88" in done.stderr


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "Invalid JSON"),
        (b'{"txt": "x"}', 400, "text: Field required"),
        (b'{"text": "x", "more": 1}', 400, "more: Extra inputs are not permitted"),
        (b'{"text": " "}', 400, "text: "),
        (b'{"text": 1}', 400, "text: Input should be a valid string"),
        (b'{"text": "' + b"x" * (1 << 20) + b'"}', 413, "more than 1048576 bytes"),
    ],
)
def test_a_body_that_does_not_fit_is_refused(client: httpx.Client, body: bytes, status: int, says: str) -> None:
    answer = client.post(TURNS, content=body)
    assert answer.status_code == status
    assert says in answer.json()["error"]["message"]
    assert answer.json()["error"]["advice"]


def test_a_body_that_does_not_come_is_not_waited_for(place: Place) -> None:
    with place.serving(body_seconds=0.2) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        at = urlsplit(api.url)
        with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
            key = client.headers["x-api-key"]
            head = f"POST {TURNS} HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\nContent-Length: 9\r\n\r\n{{"
            connection.sendall(head.encode())
            assert b" 408 " in connection.recv(100)


def test_the_log_has_no_texts_and_no_keys(place: Place, api: Api, client: httpx.Client) -> None:
    place.model.script("The answer is secret-answer.")
    client.post(TURNS, json={"text": "secret-question"}, headers={"Idempotency-Key": "secret-key"})
    client.get("/v1/agents/notes/trace", params={"text": "secret-question"})
    log = api.log.getvalue()
    assert "secret" not in log
    assert client.headers["x-api-key"].split("_", 2)[2] not in log  # a secret may have that sign
    routes = [line["route"] for line in api.lines if line["event"] == "request"]
    assert "/v1/agents/{id}/turns" in routes


def test_what_the_rest_of_the_program_logs_is_a_line_with_what_is_wrong_with_the_machine() -> None:
    out = io.StringIO()
    into = Log(HandClock(), out)
    handler = into.adopt()
    try:
        for error in (StorageError("the disk is full"), ValueError("a secret")):
            try:
                raise error
            except Exception:
                log.exception("the tool %s failed", "secret")
    finally:
        into.remove(handler)
    of_machine, other = map(json.loads, out.getvalue().splitlines())
    assert (of_machine["error"], of_machine["text"]) == ("StorageError", "the tool %s failed: the disk is full")
    assert (other["error"], other["text"]) == ("ValueError", "the tool %s failed")
    assert "secret" not in out.getvalue()


def test_health_and_figures(api: Api, client: httpx.Client) -> None:
    assert client.get("/healthz").json()["status"] == "ok"
    assert httpx.get(f"{api.url}/metrics").status_code == 401
    assert api.client("acme").get("/metrics").status_code == 403
    figures = client.get("/metrics").text
    assert 'selfpager_request_seconds_count{method="POST",route="/v1/agents",status="201"}' in figures
    assert "selfpager_agents_open" in figures


def test_the_description_is_made_of_all_endpoints_and_its_page_loads_nothing(client: httpx.Client) -> None:
    api = client.get("/openapi.json").json()
    assert api == describe(ENDPOINTS)
    page = client.get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.text == as_page(api)
    assert "src=" not in page.text
    assert "http://" not in page.text
    for reference in set(json.dumps(api).split('"$ref": "')[1:]):
        assert reference.split('"')[0].rpartition("/")[2] in api["components"]["schemas"]
