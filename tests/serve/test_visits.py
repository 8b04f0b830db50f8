"""Work without a request goes on, whatever became of one piece of it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from agents.schedule import STORED_AS
from agents.testing import call, http_error
from pager.clock import SystemClock
from pager.errors import RejectedError
from pager.types import Json
from tests.serve.conftest import Place, wait_until

HOURLY = 'schedule: [{at: "0 * * * *", say: "hello"}]\n'


def test_a_schedule_goes_on_after_a_run_that_failed(place: Place) -> None:
    place.model.otherwise(http_error(400))
    with place.serving(place.config(more=HOURLY)) as api:
        api.client().post("/v1/agents", json={"id": "notes"})
        home, clock = api.server.instances.home, SystemClock()
        with api.server.workers.use("notes") as agent:
            [entry] = json.loads(str(agent.memory.load_value(STORED_AS)))
            before = (clock.now() - timedelta(hours=3)).isoformat()
            agent.memory.save_value(STORED_AS, json.dumps({entry: before}))
        home.set_due("notes", clock.now())
        api.server.visits.soon()
        wait_until(lambda: "a visit failed" in api.log.getvalue())
        wait_until(lambda: not api.server.workers.is_working("notes"))
        due = datetime.fromisoformat((place.folder / "home" / ".due" / "notes").read_text())
        assert timedelta(minutes=55) < due - clock.now() < timedelta(hours=3)
    assert len(place.model.requests) == 1


def test_a_look_that_fails_is_not_the_last(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.model.otherwise("Hello.")
    with place.serving() as api:
        client, home = api.client(), api.server.instances.home
        client.post("/v1/agents", json={"id": "notes"})
        take, failures = home.take_due, [RejectedError("a"), ValueError("b")]

        def take_due(limit: int = 100) -> list[str]:
            if failures:
                raise failures.pop()
            return take(limit)

        monkeypatch.setattr(home, "take_due", take_due)
        client.post("/v1/agents/notes/tell", json={"text": "x"})
        wait_until(lambda: client.get("/v1/agents/notes/steps").json()["total"] == 2)
    assert api.log.getvalue().count("the home cannot be looked through") == 2


def test_an_edit_from_elsewhere_is_carried_out_though_the_agent_is_open_and_idle(place: Place) -> None:
    with place.serving() as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        fact = client.post("/v1/agents/notes/facts", json={"text": "The depot closes at six."}).json()["id"]
        sent = api.server.instances.home.send("notes", "forget", {"page_id": fact, "reason": "it moved"})
        assert sent.state == "pending"
        wait_until(lambda: client.get("/v1/agents/notes/facts").json()["total"] == 0)


def test_an_edit_that_comes_during_a_turn_does_not_wait_for_the_person_who_has_to_approve_its_call(
    place: Place,
) -> None:
    tools = "tools: [{use: 'tests.serve.tools:refund', approve: always}]\n"
    with place.serving(place.config(more=tools)) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        fact = client.post("/v1/agents/notes/facts", json={"text": "The depot closes at six."}).json()["id"]

        def edited(_: Json) -> Json:
            place.home.send("notes", "forget", {"page_id": fact, "reason": "it moved"})
            return call("refund", order=7)

        place.model.script(edited)
        assert client.post("/v1/agents/notes/turns", json={"text": "go"}).json()["stopped"]["reason"] == "approval"
        wait_until(lambda: client.get("/v1/agents/notes/facts").json()["total"] == 0)


def test_a_schedule_that_a_file_has_got_since_is_kept_by_agents_that_were_there(place: Place) -> None:
    place.home.open("clerk", embedder=None).close()
    place.home.open("foreign", embedder=None).close()  # its configuration is not here
    due = place.folder / "home" / ".due"
    with place.serving() as api:
        api.client().post("/v1/agents", json={"id": "notes"})
    assert not list(due.glob("*"))
    with place.serving(place.config(more=HOURLY)):
        wait_until(lambda: {file.name for file in due.glob("[!.]*")} == {"clerk", "notes"})
        wait_until(
            lambda: all(datetime.fromisoformat((due / name).read_text()).minute == 0 for name in ("clerk", "notes"))
        )
    tomorrow = SystemClock().now() + timedelta(days=1)
    place.home.set_due("clerk", tomorrow)
    place.home.set_due("foreign", SystemClock().now())
    with place.serving(place.config(more=HOURLY)):  # nothing has changed
        wait_until(lambda: not (due / "foreign").exists())
        assert datetime.fromisoformat((due / "clerk").read_text()) == tomorrow


def test_what_is_sent_to_a_shared_memory_without_an_agent_is_stored_when_it_is_free(place: Place) -> None:
    place.model.script(call("share", text="The depot closes at six.", memory="sales"), "Done.")
    with place.serving(place.config(more="mounts: [{memory: sales, access: write}]\n")) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        with place.home.open("sales", embedder=None):
            client.post("/v1/agents/notes/turns", json={"text": "go"})
            assert [command["kind"] for command in place.home.pending("sales")] == ["archive"]
        wait_until(lambda: not place.home.pending("sales"))
    assert "a visit failed" not in api.log.getvalue()
    with place.home.read("sales") as reader:
        assert reader.inspect.fact_counts().current == 1
