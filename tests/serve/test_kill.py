"""The server as a process that is killed in the middle of its work, and started again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Event, Timer

import httpx
import pytest

from agents.serve.keys import Keys
from agents.testing import call
from pager.clock import SystemClock
from pager.types import Json
from tests.serve.conftest import Place, wait_until
from tests.support.cli import COMMAND, environment
from tests.support.ports import hold_port

TURNS = "/v1/agents/notes/turns"


@contextmanager
def process(place: Place, *more: str | Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    _, key = Keys(place.home, SystemClock()).add("test", "", "admin", None)
    held = hold_port()
    port = held.getsockname()[1] if "own" in more else 0
    given = [f"http://127.0.0.1:{port}" if each == "own" else str(each) for each in more]
    home = place.address or str(place.folder / "home")
    command = [*COMMAND, "serve", str(place.config()), "--home", home, "--port", str(port), "--json", *given]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(), start_new_session=True
    )
    try:
        assert running.stdout
        address = json.loads(running.stdout.readline())["address"]
        with httpx.Client(base_url=address, headers={"x-api-key": key}, timeout=60) as client:
            yield running, client
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        if running.stdout:
            running.stdout.close()
        held.close()


class Gate:
    """A model that stands still at its first request."""

    def __init__(self, *lines: str | Json) -> None:
        self.asked, self.lines = Event(), list(lines)
        self.opened = Event()

    def __call__(self, _: Json) -> str | Json:
        if not self.asked.is_set():
            self.asked.set()
            self.opened.wait(60)
            return "too late"
        return self.lines.pop(0) if self.lines else "Hello."


def said(place: Place) -> list[str]:
    with place.home.read("notes", embedder=None) as reader:
        rows = reader.inspect.steps(0, 100).rows[::-1]
        return [reader.page_text(row.page_id) for row in rows if row.kind == "user"]


def test_killed_in_a_turn_it_goes_on_and_the_key_gives_its_answer(place: Place) -> None:
    gate = Gate()
    place.model.otherwise(gate)
    headers = {"Idempotency-Key": "k"}
    with ThreadPoolExecutor() as pool, process(place) as (running, client):
        client.post("/v1/agents", json={"id": "notes"})
        asking = pool.submit(client.post, TURNS, json={"text": "hello"}, headers=headers)
        gate.asked.wait(60)
        running.send_signal(signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            asking.result()
        gate.opened.set()
    with process(place) as (_, client):
        wait_until(lambda: client.get("/v1/agents/notes").json()["state"] == "idle")
        answers = [client.post(TURNS, json={"text": "hello"}, headers=headers).json() for _ in range(2)]
        assert [each["text"] for each in answers] == ["Hello.", "Hello."]
        assert answers[0] == answers[1]
    assert said(place) == ["hello"]


def test_killed_before_anything_was_said_the_key_begins_the_turn(place: Place) -> None:
    place.model.otherwise("Hello.")
    with process(place) as (running, client):
        client.post("/v1/agents", json={"id": "notes"})
        running.send_signal(signal.SIGKILL)
        running.wait()
    with process(place) as (_, client):
        answer = client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"})
        assert answer.json()["text"] == "Hello."
    assert said(place) == ["hello"]


def test_a_message_and_a_task_survive_the_process(place: Place) -> None:
    gate = Gate(call("task_done", summary="Counted."), "Done.")
    place.model.otherwise(gate)
    with process(place) as (running, client):
        client.post("/v1/agents", json={"id": "notes"})
        begun = client.post("/v1/agents/notes/tasks", json={"text": "count"}, headers={"Idempotency-Key": "t"})
        assert begun.status_code == 202
        gate.asked.wait(60)
        assert client.post("/v1/agents/notes/tell", json={"text": "psst"}).status_code == 202
        running.send_signal(signal.SIGKILL)
        gate.opened.set()
    with process(place) as (_, client):
        wait_until(lambda: client.get("/v1/agents/notes/tasks").json()["state"] == "done")
        wait_until(lambda: client.get("/v1/agents/notes").json()["state"] == "idle")
        answer = client.get(f"{TURNS}/t").json()
    assert answer["key"] == "t"
    assert sorted(said(place)) == ["count", "psst"]


def test_sigterm_ends_it_and_releases_the_agents(place: Place) -> None:
    place.model.otherwise("Hello.")
    with process(place) as (running, client):
        client.post("/v1/agents", json={"id": "notes"})
        client.post(TURNS, json={"text": "hello"})
        assert place.home.owner("notes")
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    assert place.home.owner("notes") is None


def test_without_a_key_only_this_machine_is_served_with_a_token(place: Place) -> None:
    config, home = place.config(), place.folder / "other"
    command = [*COMMAND, "serve", str(config), "--home", str(home), "--port", "0"]
    anywhere = [*command, "--host", "0.0.0.0"]
    refused = subprocess.run(anywhere, env=environment(), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "make one first: selfpager keys add NAME" in refused.stderr
    running = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    )
    assert running.stdout
    with running.stdout:
        told = json.loads(running.stdout.readline())
        assert httpx.get(f"{told['address']}/v1/agents").status_code == 401
        headers = {"Authorization": f"Bearer {told['token']}"}
        assert httpx.get(f"{told['address']}/v1/agents", headers=headers).status_code == 200
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


@pytest.mark.long
def test_killed_at_any_moment_every_key_is_one_turn(place: Place) -> None:
    place.model.otherwise("Hello.")
    left = [f"message {number}" for number in range(16)]
    answers: dict[str, Json] = {}
    moments = random.Random(21)
    while left:
        with process(place) as (running, client), suppress(httpx.TransportError):
            client.post("/v1/agents", json={"id": "notes"})
            for done in count():
                headers = {"Idempotency-Key": left[0].replace(" ", "-")}
                answers[left[0]] = client.post(TURNS, json={"text": left[0]}, headers=headers).json()
                del left[0]
                if not left:
                    break
                if not done:  # its first turn loads what takes a while
                    Timer(moments.uniform(0.0, 0.2), running.kill).start()
    with process(place) as (_, client):
        again = {text: client.get(f"{TURNS}/{text.replace(' ', '-')}").json() for text in answers}
    assert again == answers
    assert said(place) == list(answers)
