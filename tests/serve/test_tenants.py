"""Keys, scopes, and tenants that learn nothing of each other."""

from __future__ import annotations

import re
from datetime import timedelta

import httpx
import pytest

from agents.serve.app import ENDPOINTS
from agents.serve.calls import Endpoint
from agents.serve.keys import SCOPES, Keys
from agents.serve.openapi import describe
from pager.errors import NotFoundError, RejectedError
from tests.serve.conftest import Api, Place
from tests.support.clock import HandClock

BODIES = {
    "Said": {"text": "x"}, "Told": {"text": "x"}, "TaskAsked": {"text": "x"}, "Allowed": {"allow": True},
    "Made": {"id": "x"}, "Searched": {"query": "x"}, "FactAsked": {"text": "x"}, "BlockEdit": {"append": "x"},
    "Decision": {}, "Nothing": {},
    "ToAnswer": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    "ToCount": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
}  # fmt: skip
REQUEST_ID = re.compile(r"req_\w{24}")
OF_AGENTS = [each for each in ENDPOINTS if "{id}" in each.path]


def ask(client: httpx.Client, each: Endpoint, agent: str) -> httpx.Response:
    path = each.path.replace("{id}", agent)
    for name in ("call", "key", "block", "fact", "page", "number"):
        path = path.replace(f"{{{name}}}", "1")
    body = BODIES[each.body.__name__] if each.body else None
    return client.request(each.method, path, json=body)


def named(each: Endpoint) -> str:
    return f"{each.method} {each.path}"


def test_an_agent_of_another_tenant_is_as_one_that_does_not_exist(api: Api) -> None:
    owner, other = api.client("acme"), api.client("globex")
    assert owner.post("/v1/agents", json={"id": "notes"}).status_code == 201
    for each in OF_AGENTS:
        foreign, unknown = ask(other, each, "notes"), ask(other, each, "nobody")
        assert (foreign.status_code, unknown.status_code) == (404, 404), named(each)
        assert REQUEST_ID.sub("", foreign.text).replace("notes", "nobody") == REQUEST_ID.sub("", unknown.text)
        assert foreign.headers.keys() == unknown.headers.keys()
    assert owner.get("/v1/agents/notes").status_code == 200


def test_a_list_of_no_agents_is_refused_as_it_would_hide_those_behind_it(api: Api, client: httpx.Client) -> None:
    refused = client.get("/v1/agents", params={"limit": 0})
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "limit is 0; it is at least 1.")


def test_names_of_tenants_stand_apart(place: Place, api: Api) -> None:
    clients = {tenant: api.client(tenant) for tenant in ("", "acme", "globex")}
    place.model.otherwise(lambda request: str(request["messages"][-1]["content"][0]["text"]))
    for tenant, client in clients.items():
        assert client.post("/v1/agents", json={"id": "notes"}).status_code == 201
        client.post("/v1/agents/notes/facts", json={"text": f"of {tenant}"})
    for tenant, client in clients.items():
        assert client.get("/v1/agents").json() == {"agents": ["notes"], "next": None}
        [fact] = client.get("/v1/agents/notes/facts").json()["facts"]
        assert (fact["text"], fact["sources"]) == (f"of {tenant}", [f"api:{tenant}-admin"])
    assert place.home.names() == ["acme..notes", "globex..notes", "notes"]
    clients["acme"].delete("/v1/agents/notes")
    assert place.home.names() == ["globex..notes", "notes"]


@pytest.mark.parametrize("name", ["acme..notes", "..notes", "a/b", "%2e%2e", "x" * 65, "ä", "notes%00"])
def test_no_id_reaches_across(api: Api, name: str) -> None:
    api.client("acme").post("/v1/agents", json={"id": "notes"})
    mine = api.client()
    assert mine.get(f"/v1/agents/{name}").status_code == 404
    assert mine.post("/v1/agents", json={"id": name}).status_code in (400, 404)
    assert mine.get("/v1/agents").json()["agents"] == []


def test_every_request_needs_a_key_with_its_scope(api: Api) -> None:
    clients = {scope: api.client(scope=scope) for scope in SCOPES}
    paths = describe(ENDPOINTS)["paths"]
    with httpx.Client(base_url=api.url) as nobody:
        for each in ENDPOINTS:
            assert ask(nobody, each, "notes").status_code == 401, named(each)
            for scope, client in clients.items():
                refused = ask(client, each, "notes").status_code == 403
                assert refused == (SCOPES.index(scope) < SCOPES.index(each.scope)), named(each)
            assert f"Needs the scope {each.scope}." in paths[each.path][each.method.lower()]["description"]


def test_a_key_is_shown_once_and_stored_nowhere(place: Place, api: Api) -> None:
    key, text = api.server.keys.add("web", "acme", "read", None)
    assert text.startswith(f"sp_{key.id}_")
    file = place.folder / "home" / "keys.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert text.removeprefix(f"sp_{key.id}_") not in file.read_text()
    assert text not in api.log.getvalue()
    headers = ({"Authorization": f"Bearer {text}"}, {"x-api-key": text})
    assert [httpx.get(f"{api.url}/v1/agents", headers=each).status_code for each in headers] == [200, 200]
    assert httpx.get(f"{api.url}/view/", auth=("", text)).status_code == 200
    for wrong in (text[:-1] + ("a" if text[-1] != "a" else "b"), f"sp_{key.id}_", "x", text.replace("sp_", "sk_")):
        assert httpx.get(f"{api.url}/v1/agents", headers={"x-api-key": wrong}).status_code == 401


def test_a_key_ends(place: Place) -> None:
    clock = HandClock()
    keys = Keys(place.home, clock)
    key, _ = keys.add("web", "", "read", timedelta(days=1))
    assert keys.all()[key.id].ended(clock.now()) == ""
    clock.set(clock.now() + timedelta(days=1))
    assert keys.all()[key.id].ended(clock.now()) == "expired"
    assert keys.revoke(key.id).ended(clock.now()) == "revoked"
    assert Keys(place.home, clock).all()[key.id].revoked
    with pytest.raises(NotFoundError, match="there is no key 'x'; there are: "):
        keys.revoke("x")
    for tenant in ("Acme", "a.b", "x" * 30):
        with pytest.raises(RejectedError, match="cannot be a tenant"):
            keys.add("web", tenant, "read", None)


def test_the_token_of_a_server_without_keys_ends_with_the_first_key(api: Api) -> None:
    api.server.let_in("printed")

    def status() -> int:
        return httpx.get(f"{api.url}/v1/agents", headers={"Authorization": "Bearer printed"}).status_code

    assert status() == 200
    key, _ = api.server.keys.add("web", "", "read", None)
    assert status() == 401
    api.server.keys.revoke(key.id)
    assert status() == 200


def test_a_revoked_key_is_refused(api: Api) -> None:
    client = api.client()
    assert client.get("/v1/agents").status_code == 200
    for key in list(api.server.keys.all()):
        api.server.keys.revoke(key)
    assert client.get("/v1/agents").json()["error"]["message"] == "this key is revoked."


def test_the_view_is_of_the_callers_agents(api: Api) -> None:
    owner, other = api.client("acme"), api.client("globex", "read")
    owner.post("/v1/agents", json={"id": "notes"})
    assert httpx.get(f"{api.url}/view/").headers["www-authenticate"].startswith("Basic")
    assert "<title>" in owner.get("/view/").text
    assert owner.get("/view/api/agents").json()["agents"] == ["notes"]
    assert other.get("/view/api/agents").json()["agents"] == []
    assert other.get("/view/api/notes/state").status_code == 404
    edit = {"kind": "archive", "arguments": {"text": "x"}}
    assert owner.post("/view/api/notes/edit", json=edit, headers={"Origin": "http://evil.example"}).status_code == 403
    assert owner.post("/view/api/notes/edit", json=edit).status_code == 200
    assert other.post("/view/api/notes/edit", json=edit).status_code in (403, 404)
