"""The debug view over a home in Postgres: the same answers, live, and edits."""

import json
import os

import pytest

from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager.home import Home
from tests.view.asking import api, ask

pytestmark = pytest.mark.slow


def test_agents_in_postgres_are_shown_live_and_edited(address: str) -> None:
    home = Home(address)
    home.advertise("http://10.0.0.7:8300")  # as a worker does, whose address the page shows
    with ViewServer(Readers(home)) as server, home.open("guide", embedder=None) as memory:
        memory.archive("likes trams")
        first = api(server, "guide/state")
        assert (first["running"]["pid"], first["running"]["url"]) == (os.getpid(), "http://10.0.0.7:8300")
        memory.archive("likes boats")
        assert api(server, "guide/state")["revision"] != first["revision"]
        assert [row["text"] for row in api(server, "guide/facts")["rows"]] == ["likes boats", "likes trams"]
        assert [(row["name"], row["facts"]) for row in api(server, "fleet")["fleet"]] == [("guide", 2)]
        memory.archive("likes planes")
        assert api(server, "fleet")["fleet"][0]["facts"] == 3
        assert api(server, "agents")["home"] == Home(address).address
        memory.close()
        body = json.dumps({"kind": "archive", "arguments": {"text": "likes trains"}}).encode()
        status, _, done = ask(server, f"/{server.token}/api/guide/edit", method="POST", body=body)
        assert (status, json.loads(done)["state"]) == (200, "done")
        assert api(server, "guide/facts")["rows"][0]["text"] == "likes trains"
