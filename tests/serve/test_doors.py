"""Who may do what, over every route there is, and what those learn who may not."""

from __future__ import annotations

import base64
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event
from urllib.parse import unquote

import httpx
import pytest
from starlette.routing import BaseRoute, Mount, Route

from agents.serve import keys as keys_module
from agents.serve.app import make_app
from agents.serve.keys import Door, Keys
from agents.serve.log import Log
from agents.view.routes import ROUTES
from pager.clock import SystemClock
from pager.errors import AgentLostError, InUseError, StorageError
from pager.home import Home
from tests.serve.conftest import Api, Place, wait_until

OPEN, OPERATOR = "everybody", "read, without a tenant"
WHO = {
    "GET /healthz": OPEN, "GET /docs": OPEN, "GET /openapi.json": OPEN, "GET /view": OPEN,  # which leads to /view/
    "GET /metrics": OPERATOR,
    "POST /v1/agents": "admin", "GET /v1/agents": "read", "GET /v1/agents/{id}": "read",
    "DELETE /v1/agents/{id}": "admin", "POST /v1/agents/{id}/rekey": "admin",
    "POST /v1/agents/{id}/turns": "write", "GET /v1/agents/{id}/turns/{key}": "read",
    "POST /v1/agents/{id}/tell": "write", "POST /v1/agents/{id}/resume": "write",
    "POST /v1/agents/{id}/approvals/{call}": "write",
    "POST /v1/agents/{id}/tasks": "write", "GET /v1/agents/{id}/tasks": "read",
    "GET /v1/agents/{id}/core": "read", "PATCH /v1/agents/{id}/core/{block}": "write",
    "GET /v1/agents/{id}/facts": "read", "POST /v1/agents/{id}/facts": "write",
    "DELETE /v1/agents/{id}/facts/{fact}": "write",
    "GET /v1/agents/{id}/steps": "read", "GET /v1/agents/{id}/pages/{page}": "read",
    "GET /v1/agents/{id}/pages/{memory}/{page}": "read",
    "DELETE /v1/agents/{id}/pages/{page}": "admin", "GET /v1/agents/{id}/check": "read",
    "GET /v1/agents/{id}/ledger": "read", "GET /v1/agents/{id}/trace": "read", "POST /v1/agents/{id}/search": "read",
    "GET /v1/agents/{id}/sleeps": "read", "POST /v1/agents/{id}/sleeps": "write",
    "GET /v1/agents/{id}/sleeps/{number}": "read", "POST /v1/agents/{id}/sleeps/{number}/apply": "write",
    "POST /v1/agents/{id}/sleeps/{number}/refuse": "write", "POST /v1/agents/{id}/sleeps/{number}/undo": "write",
    "POST /a/{id}/v1/messages": "write", "POST /a/{id}/v1/messages/count_tokens": "write",
    "GET /view/": "read", "GET /view/{file}": "read", "GET /view/api/agents": "read", "GET /view/api/fleet": "read",
    "GET /view/api/{name}/state": "read", "GET /view/api/{name}/find": "read", "POST /view/api/{name}/edit": "write",
    "GET /view/api/{name}/{what}": "read",
}  # fmt: skip
SCOPES = ("read", "write", "admin")
BODY = {"text": "x", "kind": "archive", "arguments": {"text": "x"}, "query": "x"}
ODD = [
    "..", "%2e%2e", "%2F", "..%2Fglobex..notes", "%00", "%F0%9F%92%A9", "%ED%A0%80", "a" * 3000, "-1", "0", "9" * 30,
    "s0",
    "f99999999999999999999", "%25", "%0d%0aX: y", "notes%0a", "n%D0%BEtes", "~", "acme..notes", "*",
]  # fmt: skip


def routes(found: list[BaseRoute], before: str = "") -> list[tuple[str, str]]:
    names = list[tuple[str, str]]()
    for each in found:
        if isinstance(each, Mount):
            names += routes(list(ROUTES), before + each.path)
        else:
            assert isinstance(each, Route)
            names += [(method, before + each.path) for method in sorted((each.methods or set()) - {"HEAD"})]
    return names


def filled(path: str, agent: str = "notes") -> str:
    for name in ("id", "name"):
        path = path.replace(f"{{{name}}}", agent)
    for name in ("call", "key", "block", "fact", "page", "number", "file", "what"):
        path = path.replace(f"{{{name}}}", "1")
    return path


def test_every_route_is_for_those_who_are_named_here(api: Api) -> None:
    found = routes(make_app(api.server).routes)
    assert {f"{method} {path}" for method, path in found} == WHO.keys()
    clients = {scope: api.client("acme", scope) for scope in SCOPES}
    clients["admin"].post("/v1/agents", json={"id": "notes"})
    with httpx.Client(base_url=api.url) as nobody:
        for method, path in found:
            who, at = WHO[f"{method} {path}"], filled(path)
            if who == OPEN:
                assert nobody.request(method, at).status_code < 400
                continue
            assert nobody.request(method, at, json=BODY).status_code == 401, path
            for scope, client in clients.items():
                if method == "DELETE" and path == "/v1/agents/{id}" and scope == "admin":
                    continue
                refused = client.request(method, at, json=BODY).status_code == 403
                assert refused == (who == OPERATOR or SCOPES.index(scope) < SCOPES.index(who)), (scope, method, path)


def test_nothing_that_is_asked_for_is_a_fault_of_the_server(api: Api, client: httpx.Client) -> None:
    client.post("/v1/agents/notes/facts", json={"text": "one"})
    for method, path in routes(make_app(api.server).routes):
        for odd in ODD:
            at = path.replace("{id}", "notes").replace("{name}", "notes")
            for name in ("call", "key", "block", "fact", "page", "number", "file", "what"):
                at = at.replace(f"{{{name}}}", odd)
            query: dict[str, str] = dict.fromkeys(["at", "limit", "offset", "text"], unquote(odd, errors="replace"))
            if method == "GET" and ("{" in path.replace("{id}", "").replace("{name}", "") or odd in ODD[:8]):
                assert client.get(at, params=query).status_code < 500, (at, odd)
            elif method != "GET" and at != path.replace("{id}", "notes"):
                assert client.request(method, at, json=BODY).status_code < 500, (at, odd)


@pytest.mark.parametrize("odd", ODD)
def test_no_odd_name_is_that_of_an_agent_of_others(api: Api, odd: str) -> None:
    api.client("globex").post("/v1/agents", json={"id": "notes"})
    mine = api.client("acme")
    for path in (f"/v1/agents/{odd}", f"/v1/agents/{odd}/core", f"/view/api/{odd}/state"):
        answer = mine.get(path)
        assert answer.status_code in (200, 307, 404)
        assert "globex" in odd or "globex" not in answer.text


def test_a_password_of_a_browser_counts_where_its_page_is_checked(api: Api) -> None:
    _, key = api.server.keys.add("web", "", "admin", None)
    for path in ("/v1/agents", "/a/notes/v1/messages", "/metrics"):
        answer = httpx.post(f"{api.url}{path}", content='{"id": "evil"}', auth=("", key))
        assert answer.status_code in (401, 404)
    page = f"{api.url}/view/"
    assert httpx.get(page, auth=("", key)).status_code == 200
    assert httpx.get(page, headers={"Authorization": "Basic !"}).headers["www-authenticate"].startswith("Basic")
    for origin in ("http://evil.example", "null", api.url.replace("http", "ftp") + ".evil"):
        assert httpx.get(page, auth=("", key), headers={"Origin": origin}).status_code == 403
    assert httpx.get(f"{api.url}/v1/agents").headers["www-authenticate"] == "Bearer"


def test_an_agent_that_is_gone_is_told_of_without_the_names_of_others(place: Place, api: Api) -> None:
    api.client("globex").post("/v1/agents", json={"id": "secret"})
    mine = api.client("acme")
    mine.post("/v1/agents", json={"id": "notes"})
    assert mine.post("/v1/agents/notes/facts", json={"text": "it is open now"}).status_code == 201
    place.home.place("acme..notes").discard()
    for answer in (mine.post("/v1/agents/notes/tell", json={"text": "x"}), mine.get("/view/api/notes/state")):
        assert answer.status_code == 404
        assert "globex" not in answer.text
        assert str(place.folder) not in answer.text


def test_a_tenant_learns_nothing_of_the_machine_from_the_view(place: Place, api: Api) -> None:
    mine, operator = api.client("acme"), api.client()
    mine.post("/v1/agents", json={"id": "notes"})
    mine.post("/v1/agents/notes/facts", json={"text": "it is open now"})
    assert mine.get("/view/api/notes/state").json()["running"] == {"pid": os.getpid()}
    assert (mine.get("/view/api/agents").json()["home"], operator.get("/view/api/agents").json()["home"]) == (
        "", str(place.folder / "home"),
    )  # fmt: skip
    mine.post("/v1/agents", json={"id": "broken"})
    (place.folder / "home" / "acme..broken" / "pager.db").write_bytes(b"no database" * 1000)
    for path in ("fleet", "broken/facts", "broken/state"):
        answer = mine.get(f"/view/api/{path}")
        assert "cannot be used now" in answer.text
        assert str(place.folder) not in answer.text


def test_a_tenant_learns_nothing_of_the_machine_from_a_request_that_a_directory_refuses(place: Place, api: Api) -> None:
    mine = api.client("acme")
    mine.post("/v1/agents", json={"id": "notes"})
    answer = mine.post("/v1/agents/notes/rekey")
    assert (answer.status_code, "home in Postgres" in answer.text) == (400, True)
    assert str(place.folder) not in answer.text


def test_a_stream_ends_with_its_key(place: Place, api: Api, client: httpx.Client) -> None:
    may = Event()

    def model(_: object) -> str:
        may.wait(60)
        return "Hello."

    place.model.otherwise(model)
    guest = api.client("", "write")
    [key] = [key for key in api.server.keys.all().values() if key.scope == "write"]
    stream = {"Accept": "text/event-stream", "Idempotency-Key": "k"}
    with guest.stream("POST", "/v1/agents/notes/turns", json={"text": "hi"}, headers=stream) as events:
        api.server.keys.revoke(key.id)
        may.set()
        assert "event: turn" not in events.read().decode()
    assert guest.get("/v1/agents").status_code == 401
    wait_until(lambda: client.get("/v1/agents/notes/turns/k").status_code == 200)


def test_two_that_make_the_same_agent_at_once_get_the_same(place: Place, api: Api) -> None:
    client = api.client()
    with ThreadPoolExecutor() as pool:
        for number in range(5):
            made = [pool.submit(client.post, "/v1/agents", json={"id": f"a{number}"}) for _ in range(4)]
            assert sorted(each.result().status_code for each in made) == [200, 200, 200, 201]
    assert len(place.home.names()) == 5


def test_an_agent_that_somebody_else_is_making_is_not_removed(tmp_path: Path) -> None:
    home = Home(tmp_path)

    def make() -> None:
        with home.remove_if_failed("notes"), home.open("notes", embedder=None) as memory:
            memory.archive("made meanwhile")
            home.open("notes", embedder=None)

    with pytest.raises(InUseError):
        make()
    assert home.names() == ["notes"]


def test_what_a_removed_agent_said_is_not_answered_to_its_successor(place: Place, client: httpx.Client) -> None:
    place.model.otherwise("Hello.")
    keyed = {"Idempotency-Key": "k"}
    assert client.post("/v1/agents/notes/turns", json={"text": "hi"}, headers=keyed).status_code == 200
    wait_until(lambda: client.delete("/v1/agents/notes").status_code == 200)
    client.post("/v1/agents", json={"id": "notes"})
    assert client.get("/v1/agents/notes/turns/k").status_code == 404


def test_what_was_purged_is_not_told_again_as_an_event(place: Place, client: httpx.Client) -> None:
    place.model.otherwise("The code is fourtytwo.")
    headers = {"Idempotency-Key": "k", "Accept": "text/event-stream"}
    at = "/v1/agents/notes/turns"
    assert "fourtytwo" in client.post(at, json={"text": "hi"}, headers=headers).text
    assert client.delete("/v1/agents/notes/pages/s2").status_code == 200
    for again in (client.post(at, json={"text": "hi"}, headers=headers), client.get(f"{at}/k", headers=headers)):
        assert again.status_code == 200
        assert "fourtytwo" not in again.text
    assert len(place.model.requests) == 1


def test_a_client_that_leaves_is_no_fault_of_the_server(api: Api, client: httpx.Client) -> None:
    url = httpx.URL(api.url)
    head = (
        f"POST /v1/agents HTTP/1.1\r\nHost: x\r\nx-api-key: {client.headers['x-api-key']}\r\nContent-Length: 9\r\n\r\n"
    )
    with socket.create_connection((url.host, url.port or 80)) as connection:
        connection.sendall(head.encode() + b"{")
    wait_until(lambda: any(line.get("status") == 400 for line in api.lines))
    assert "a request failed" not in api.log.getvalue()


def test_who_waits_for_an_agent_that_is_removed_does_not_make_it_again(place: Place, api: Api) -> None:
    client = api.client()
    client.post("/v1/agents", json={"id": "notes"})
    with api.server.workers.put_away("notes"):
        waiting = api.server.workers.submit("notes", lambda agent: agent.memory.core())
        place.home.remove("notes")
    with pytest.raises(Exception, match="was removed"):
        waiting.result(60)
    assert place.home.names() == []
    with pytest.raises(RuntimeError), api.server.workers.put_away("notes"):
        raise RuntimeError
    assert client.post("/v1/agents", json={"id": "notes"}).status_code == 201
    assert client.post("/v1/agents/notes/facts", json={"text": "x"}).status_code == 201


def test_an_agent_that_is_lost_is_opened_again_by_readers_too(api: Api, client: httpx.Client) -> None:
    workers = api.server.workers
    assert client.post("/v1/agents/notes/facts", json={"text": "x"}).status_code == 201

    def lose() -> None:
        with workers.use_if_open("notes"):
            raise AgentLostError

    with pytest.raises(AgentLostError):
        lose()
    assert not workers.has_open("notes")
    assert client.get("/v1/agents/notes/facts").json()["total"] == 1


def test_a_short_call_is_not_cut_by_the_end(place: Place) -> None:
    with place.serving() as api, ThreadPoolExecutor() as pool:
        api.client().post("/v1/agents", json={"id": "notes"})
        with api.server.workers.use("notes") as agent:
            closing = pool.submit(api.server.close)
            wait_until(lambda: api.server.workers._stopping)
            agent.memory.archive("before the end")
        assert closing.result(60)
        with pytest.raises(Exception, match="stopping"), api.server.workers.use("notes"):
            pass
    with place.home.read("notes", embedder=None) as reader:
        assert reader.inspect.facts("current").total == 1


def test_an_empty_list_of_edits_is_not_all_of_them(client: httpx.Client) -> None:
    answer = client.post("/v1/agents/notes/sleeps/1/apply", json={"edits": []})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_body")


def test_keys_that_cannot_be_read_are_asked_for_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    home, asked, may = place.home, list[str](), Event()

    def value(key: str) -> str:
        asked.append(key)
        may.wait(60)
        raise StorageError("there is no Postgres")

    monkeypatch.setattr(home, "value", value)
    keys = Keys(home, SystemClock())
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(keys.all) for _ in range(8)]
        wait_until(lambda: bool(asked) and pool._work_queue.empty())
        may.set()
        assert all(isinstance(each.exception(60), StorageError) for each in waiting)
    assert len(asked) < 8


def test_an_expired_key_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "CACHED_SECONDS", 0)
    keys = Keys(place.home, SystemClock())
    _, text = keys.add("web", "", "read", timedelta(days=1))
    door = Door(keys, SystemClock())
    caller = door.caller(f"Bearer {text}", "")
    assert not keys.has_ended(caller)
    stored = json.loads(str(place.home.value("keys")))
    stored[0]["expires"] = SystemClock().now().isoformat()
    place.home.change_value("keys", lambda _: json.dumps(stored))
    assert keys.has_ended(caller)
    with pytest.raises(Exception, match="this key is expired"):
        door.caller("Basic " + base64.b64encode(f":{text}".encode()).decode(), "", is_browser=True)


def test_a_log_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    closed = (tmp_path / "log").open("w")
    closed.close()
    Log(SystemClock(), closed).write("request")


def test_two_threads_note_when_an_agent_is_due(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.open("notes", embedder=None):
        pass
    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(home.set_due, "notes", SystemClock().now()) for _ in range(400)]:
            each.result()
    assert home.take_due() == ["notes"]


def test_a_parameter_that_an_address_does_not_take_is_refused(client: httpx.Client) -> None:
    refused = client.get("/v1/agents/notes/core", params={"At": "s1"})
    error = refused.json()["error"]
    assert (refused.status_code, error["message"]) == (400, "there is no parameter 'At' here.")
    assert error["advice"] == "It takes at: change the address."
    assert client.post("/v1/agents/notes/tell?text=a", json={"text": "b"}).status_code == 400
