"""Turns over HTTP: said once, answered once, whatever the caller repeats."""

from __future__ import annotations

import httpx
import pytest

from agents.fleet import overview
from agents.testing import call, http_error
from tests.serve.conftest import Api, Place, events, wait_until

TURNS = "/v1/agents/notes/turns"
ANSWERED = {"reason": "answered", "text": "", "result": None}


def said(place: Place, name: str = "notes") -> list[str]:
    """What people said to the agent, oldest first."""
    with place.home.read(name, embedder=None) as reader:
        rows = reader.inspect.steps(0, 100).rows[::-1]
        return [reader.page_text(row.page_id) for row in rows if row.kind == "user"]


def test_a_turn_is_answered_with_its_steps_usage_and_end(place: Place, client: httpx.Client) -> None:
    place.model.script("Hello Dana.")
    answer = client.post(TURNS, json={"text": "hello", "name": "Dana"})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["text"], body["steps"], body["stopped"]) == ("Hello Dana.", ["s2"], ANSWERED)
    assert body["usage"]["input_tokens"] > 0
    assert answer.headers["idempotency-key"] == body["key"]


def test_the_text_of_the_last_reply_is_the_answer_and_all_steps_count(place: Place, client: httpx.Client) -> None:
    place.model.script(call("archive", text="likes trams"), "Noted.")
    body = client.post(TURNS, json={"text": "I like trams"}).json()
    assert (body["text"], body["steps"]) == ("Noted.", ["s2", "s3"])
    assert body["usage"]["output_tokens"] == sum(each["usage"]["output_tokens"] for each in place.model.replies)


def test_events_come_as_they_happen_and_end_with_the_answer(place: Place, client: httpx.Client) -> None:
    place.model.script(call("archive", text="likes trams"), "Noted.")
    answer = client.post(TURNS, json={"text": "I like trams"}, headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = events(answer)
    names = [name for _, name, _ in found]
    assert len({each for each, _, _ in found}) == len(found)
    assert {"toolstarted", "toolfinished", "paged", "text", "replied", "stopped"} <= set(names)
    assert found[-1][1:] == ("turn", client.get(f"{TURNS}/{answer.headers['idempotency-key']}").json())


def test_events_are_sent_from_where_a_reader_was(place: Place, client: httpx.Client) -> None:
    place.model.script("Hello.")
    headers = {"Accept": "text/event-stream", "Idempotency-Key": "k"}
    whole = events(client.post(TURNS, json={"text": "hello"}, headers=headers))
    rest = client.post(TURNS, json={"text": "hello"}, headers={**headers, "Last-Event-ID": whole[0][0]})
    assert events(rest) == whole[1:]
    assert events(client.get(f"{TURNS}/k", headers={**headers, "Last-Event-ID": whole[-2][0]})) == whole[-1:]
    assert events(client.get(f"{TURNS}/k", headers={**headers, "Last-Event-ID": "of another process"})) == whole


def test_the_same_key_gives_the_same_answer_and_never_a_second_turn(place: Place, client: httpx.Client) -> None:
    place.model.script("Hello.")
    answers = [client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"}) for _ in range(3)]
    assert [answer.json() for answer in answers] == [answers[0].json()] * 3
    assert said(place) == ["hello"]
    assert client.get(f"{TURNS}/k").json() == answers[0].json()


def test_also_after_a_restart_and_for_the_stops_that_are_no_answer(place: Place) -> None:
    config = place.config(more="limits: {max_steps: 1}\n")
    place.model.script("Hello.", call("archive", text="likes trams"), "That is enough.")
    headers = [{"Idempotency-Key": key} for key in "ab"]
    with place.serving(config) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        before = [client.post(TURNS, json={"text": f"hello {each}"}, headers=each).json() for each in headers]
    assert [body["stopped"]["reason"] for body in before] == ["answered", "steps"]
    with place.serving(config) as api:
        client = api.client()
        after = [client.post(TURNS, json={"text": f"hello {each}"}, headers=each).json() for each in headers]
    assert after == before
    assert len(said(place)) == 2


def test_a_key_is_for_one_request(place: Place, client: httpx.Client) -> None:
    place.model.script("Hello.")
    client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"})
    for body in ({"text": "bye"}, {"text": "hello", "name": "Dana"}):
        answer = client.post(TURNS, json=body, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (422, "key_reused")
    assert client.post("/v1/agents", json={"id": "other"}).status_code == 201
    place.model.script("Bye.")
    other = client.post("/v1/agents/other/turns", json={"text": "bye"}, headers={"Idempotency-Key": "k"})
    assert other.json()["text"] == "Bye."


def test_edits_with_a_key_are_made_once_also_after_a_restart(place: Place) -> None:
    fact = {"text": "likes trams", "key": "tram"}, {"Idempotency-Key": "f"}
    edit = {"append": "Her name is Dana."}, {"Idempotency-Key": "c"}
    answers = list[tuple[str, str]]()
    for _ in range(2):
        with place.serving() as api:
            client = api.client()
            client.post("/v1/agents", json={"id": "notes"})
            for _ in range(2):
                stored = client.post("/v1/agents/notes/facts", json=fact[0], headers=fact[1])
                edited = client.patch("/v1/agents/notes/core/human", json=edit[0], headers=edit[1])
                assert (stored.status_code, edited.status_code) == (201, 200)
                answers.append((stored.json()["id"], edited.json()["blocks"][0]["value"]))
            other = client.post("/v1/agents/notes/facts", json={"text": "likes boats"}, headers=fact[1])
            assert (other.status_code, other.json()["error"]["type"]) == (422, "key_reused")
            assert client.get("/v1/agents/notes/facts?kind=all").json()["total"] == 1
            assert client.get(f"{TURNS}/f").status_code == 404
    assert answers == [("f1", "Her name is Dana.")] * 4


def test_a_message_with_a_key_is_left_once_also_when_it_was_answered(place: Place) -> None:
    place.model.otherwise("Noted.")
    left = set[str]()
    for _ in range(2):
        with place.serving() as api:
            client = api.client()
            client.post("/v1/agents", json={"id": "notes"})
            for _ in range(2):
                sent = client.post("/v1/agents/notes/tell", json={"text": "psst"}, headers={"Idempotency-Key": "m"})
                assert sent.status_code == 202
                left.add(sent.json()["message"])
                answered(api, place)
    assert len(left) == 1
    assert said(place) == ["psst"]


def test_only_the_newest_keys_are_remembered(place: Place, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.serve.records.KEPT", 2)
    client = api.client()
    client.post("/v1/agents", json={"id": "notes"})
    place.model.otherwise("Hello.")
    for key in "abc":
        client.post(TURNS, json={"text": key}, headers={"Idempotency-Key": key})
    with place.home.read("notes", embedder=None) as reader:
        stored = [key for key in "abc" if reader.load_value(f"serve:request:{digest(key)}")]
    assert stored == ["b", "c"]


def digest(key: str) -> str:
    from agents.serve import records

    return records.digest(key)


def test_a_turn_whose_model_is_down_goes_on_with_the_same_key(place: Place) -> None:
    config = place.config(more="")
    place.model.script(http_error(400, "broken"))
    with place.serving(config) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        failed = client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"})
        assert (failed.status_code, failed.json()["error"]["type"]) == (502, "model_error")
        place.model.script("Hello.")
        assert client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"}).json()["text"] == "Hello."
    assert said(place) == ["hello"]


def test_of_an_open_turn_of_another_process_the_key_gives_what_is_stored(place: Place) -> None:
    place.model.script(call("archive", text="likes trams"), http_error(400, "broken"))
    config, headers = place.config(), {"Accept": "text/event-stream"}
    with place.serving(config) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        assert client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"}).status_code == 502
    with place.serving(config) as api:
        client = api.client()
        found = client.get(f"{TURNS}/k")
        assert (found.status_code, found.json()) == (202, {"key": "k", "state": "open"})
        [(_, name, data)] = events(client.get(f"{TURNS}/k", headers=headers))
        assert (name, data["replies"]) == ("resumed", [{"step": "s2", "text": ""}])
        place.model.script("Hello.")
        client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"})
        assert client.get(f"{TURNS}/k").json()["text"] == "Hello."


def test_a_call_waits_for_a_person_and_is_answered_over_http(place: Place) -> None:
    tools = "tools: [{use: 'tests.serve.tools:refund', approve: always}]\n"
    with place.serving(place.config(more=tools)) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        place.model.script(call("refund", order=7))
        stopped = client.post(TURNS, json={"text": "refund 7"}).json()["stopped"]
        assert stopped["reason"] == "approval"
        [waiting] = client.get("/v1/agents/notes").json()["approvals"]
        assert [each.state for each in overview(place.home)] == ["waits for approval"]  # though it is open here
        assert (waiting["name"], waiting["input"]) == ("refund", {"order": 7})
        wrong = client.post("/v1/agents/notes/approvals/nothing", json={"allow": True})
        assert wrong.status_code == 404
        place.model.script("Done.")
        headers = {"Idempotency-Key": "yes"}
        path = f"/v1/agents/notes/approvals/{waiting['id']}"
        first = client.post(path, json={"allow": True}, headers=headers)
        assert first.json()["text"] == "Done."
        assert client.post(path, json={"allow": True}, headers=headers).json() == first.json()
        assert "order 7 was refunded" in str(place.model.requests[-1])


def test_resume_goes_on_with_an_open_turn(place: Place, client: httpx.Client) -> None:
    place.model.script(http_error(400, "broken"), "Hello.")
    assert client.post(TURNS, json={"text": "hello"}).status_code == 502
    assert client.post("/v1/agents/notes/resume", json={}).json()["text"] == "Hello."
    assert said(place) == ["hello"]


def test_a_message_is_left_and_answered_by_itself(place: Place, api: Api, client: httpx.Client) -> None:
    place.model.otherwise("Noted.")
    assert client.post("/v1/agents/notes/tell", json={"text": "psst", "name": "Dana"}).status_code == 202
    answered(api, place)
    assert said(place) == ["psst"]


def answered(api: Api, place: Place, name: str = "notes") -> None:
    """Return when the agent has nothing to do any more."""
    due = place.folder / "home" / ".due" / name
    wait_until(lambda: not due.exists() and not api.server.workers.is_working(name))


def test_a_task_is_on_disk_before_it_is_acknowledged_and_goes_on_by_itself(place: Place, api: Api) -> None:
    client = api.client()
    client.post("/v1/agents", json={"id": "notes"})
    place.model.script(call("task_done", summary="All counted."), "Done.")
    place.model.otherwise("Done.")
    begun = client.post("/v1/agents/notes/tasks", json={"text": "count"}, headers={"Idempotency-Key": "t"})
    assert (begun.status_code, begun.json()["task"]["text"]) == (202, "count")
    answer = events(client.get(f"{TURNS}/t", headers={"Accept": "text/event-stream"}))[-1][2]
    assert answer["stopped"]["reason"] == "done"
    task = client.get("/v1/agents/notes/tasks").json()
    assert (task["state"], task["summary"]) == ("done", "All counted.")
    again = client.post("/v1/agents/notes/tasks", json={"text": "count"}, headers={"Idempotency-Key": "t"})
    assert again.json()["key"] == "t"
    assert len([each for each in said(place) if each == "count"]) == 1


def test_an_import_brings_neither_keys_nor_a_configuration(place: Place, api: Api, client: httpx.Client) -> None:
    place.model.otherwise("Hello.")
    client.post(TURNS, json={"text": "hello"}, headers={"Idempotency-Key": "k"})
    file = place.folder / "notes.db"
    with place.home.read("notes", embedder=None) as reader:
        reader.export(file)
    place.home.import_file(file, "other")
    assert client.get("/v1/agents/other").json()["config"] is None
    assert client.get("/v1/agents/other/turns/k").status_code == 404
    assert client.post("/v1/agents/other/turns", json={"text": "hi"}).json()["error"]["type"] == "no_configuration"
    assert client.post("/v1/agents", json={"id": "other"}).status_code == 201
    assert client.post("/v1/agents/other/turns", json={"text": "hi"}).json()["text"] == "Hello."


def test_a_text_is_destroyed_while_a_server_has_the_agent(place: Place, client: httpx.Client) -> None:
    place.model.script("I keep it.")
    client.post(TURNS, json={"text": "my code is zebra-41"})
    gone = client.delete("/v1/agents/notes/pages/s1")
    assert gone.status_code == 200
    assert gone.json()["places"] >= 1
    assert "zebra-41" not in client.get("/v1/agents/notes/pages/s1").text
    assert not any(b"zebra-41" in file.read_bytes() for file in (place.folder / "home").rglob("*") if file.is_file())
    assert client.get("/v1/agents/notes/check").json() == {"problems": []}
    assert client.delete("/v1/agents/notes/pages/s99").status_code == 404


def test_a_search_of_an_agent_that_is_not_open_finds_what_is_shared_with_it_and_its_page_is_read(place: Place) -> None:
    with place.home.open("team", embedder=None) as team:
        team.archive("the giraffe house opens at nine")
    with place.serving(place.config(more="mounts:\n  - memory: team\n")) as api:
        client = api.client()
        client.post("/v1/agents", json={"id": "notes"})
        found = client.post("/v1/agents/notes/search", json={"query": "giraffe"}).json()["hits"]
        assert [hit["page_id"] for hit in found] == ["team/f1"]
    with place.serving(place.config(more="mounts:\n  - memory: team\n")) as api:  # where it is not open yet
        client = api.client()
        assert client.get("/v1/agents/notes/pages/team/f1").json()["text"] == "the giraffe house opens at nine"
        assert client.get("/v1/agents/notes/pages/team/f2").status_code == 404
        assert client.get("/v1/agents/notes/pages/other/f1").status_code in (400, 404)
