"""The debug view over HTTP: who is let in, what is answered, what is done. The page itself is for tests/browser."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import palette
from agents.view.answers import ANSWERS
from agents.view.requests import changed_lines
from agents.view.serving import ViewServer
from pager import MemoryReader, send_command
from tests.support.clock import HandClock
from tests.view.asking import api, ask, opened, serving

PAGE = Path(__file__).parents[2] / "agents" / "view" / "page"


def edit(server: ViewServer, kind: str, arguments: dict[str, Any], **headers: str) -> tuple[int, Any]:
    body = json.dumps({"kind": kind, "arguments": arguments}).encode()
    status, _, body = ask(server, f"/{server.token}/api/guide/edit", method="POST", body=body, **headers)
    return status, json.loads(body)


# --- the door


def test_a_body_is_not_read_before_the_token_is_checked(server: ViewServer) -> None:
    request = f"POST /wrong/api/guide/edit HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 10\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        caller.sendall(request.encode())
        assert caller.recv(100).startswith(b"HTTP/1.1 403")


def test_without_its_token_nothing_is_answered(server: ViewServer, home: Path) -> None:
    token = server.token
    for path in ("/", "/x/", f"/{token[:-1]}/", f"/{token}x/", "/api/agents", "/view.js", "/%2e%2e/", "//", "/%C3%BC/"):
        status, _, body = ask(server, path)
        assert status == 403, path
        assert token.encode() not in body
    with serving(home) as other:
        assert other.token != token
        assert len(token) >= 24


def test_another_host_is_refused_even_with_the_token(server: ViewServer) -> None:
    path = f"/{server.token}/"
    port = server.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", f"0.0.0.0:{port}"):
        assert ask(server, path, Host=host)[0] == 403, host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert ask(server, path, Host=host)[0] == 200


def test_another_page_can_change_nothing(server: ViewServer, home: Path) -> None:
    arguments = {"block": "human", "text": "x"}
    assert edit(server, "core_append", arguments, Origin="http://evil.example")[0] == 403
    assert edit(server, "core_append", arguments, Origin="null")[0] == 403
    assert edit(server, "core_append", arguments, Content_Type="text/plain")[0] == 400
    with MemoryReader.open(home / "guide") as reading:
        assert reading.core()[0].value == "name is Dana"
    assert server.address.startswith("http://127.0.0.1:"), "it listens on this machine alone"
    status, done = edit(server, "core_append", arguments, Origin=f"http://127.0.0.1:{server.port}")
    assert (status, done["state"]) == (200, "done")


def test_every_answer_tells_the_browser_to_trust_nothing_else(server: ViewServer) -> None:
    for path in ("", "view.js", "api/agents", "nothing"):
        _, headers, _ = ask(server, f"/{server.token}/{path}")
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_only_the_pages_own_files_are_served(server: ViewServer) -> None:
    for file in PAGE.iterdir():
        status, headers, body = ask(server, f"/{server.token}/{file.name}")
        assert (status, body) == (200, file.read_bytes())
        assert headers["content-type"].startswith(("text/", "image/"))
    for path in ("../serving.py", "%2e%2e/serving.py", "..%2fserving.py", "__init__.py", "page/view.js", "view.js/"):
        assert ask(server, f"/{server.token}/{path}")[0] == 404, path


# --- the page's own files


def test_the_page_loads_nothing_from_elsewhere_and_reads_no_markup() -> None:
    for file in PAGE.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]+\.", text), file
        if file.suffix == ".js":
            assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", text), file
    page = (PAGE / "index.html").read_text()
    modules = {file.name for file in PAGE.glob("*.js")} - {"view.js"}
    assert set(re.findall(r'modulepreload" href="([^"]+)"', page)) == modules


def test_the_colours_are_those_of_the_terminal(server: ViewServer) -> None:
    _, _, body = ask(server, f"/{server.token}/palette.css")
    for name, colour in palette.TIERS.items():
        assert f"--{name}: {colour};" in body.decode()
        assert colour in (PAGE / "icon.svg").read_text()
    for part, paint in palette.WINDOW.items():
        assert f"--part-{part}: {paint.colour};" in body.decode()


# --- answers


def test_every_address_answers(server: ViewServer) -> None:
    key = api(server, "guide/request?at=s2")["pieces"][-1]["key"]
    assert api(server, f"guide/piece?at=s2&key={key}")["text"] == "Where is the tram?"
    queries = {
        "piece": f"?at=s2&key={key}",
        "raw": "?at=s2",
        "page": "?id=f1",
        "trace": "?text=tram",
    }
    for name in ANSWERS:
        assert isinstance(api(server, f"guide/{name}{queries.get(name, '')}"), dict)
    for what in ("now", "request"):
        assert api(server, f"guide/{what}?at=s1")["at"] == "s2"
    assert api(server, "guide/now")["at"] is None


def test_what_is_not_there_says_so(server: ViewServer) -> None:
    for path, told in (
        ("nobody/now", "there is no agent 'nobody'"), ("guide/now?at=s99", "no request was answered after s99"),
        ("guide/nothing", "there is nothing at 'nothing'"), ("guide/page?id=x99", "there is no page"),
        ("guide", "there is nothing for GET at /api/guide"), ("%2e%2e/now", "cannot be an agent's name"),
        ("..%2f/now", "there is nothing for GET"), ("guide/no/such", "there is nothing for GET"),
        ("guide/facts?kind=odd", "no kind of facts"), ("guide/trace?text=", "nothing to look for"),
    ):  # fmt: skip
        status, _, body = ask(server, f"/{server.token}/api/{path}")
        assert status in (400, 404), path
        assert told in json.loads(body)["error"], path


def test_an_address_without_a_command_takes_none(server: ViewServer) -> None:
    for path in ("api/guide/now", "api/agents", "view.js", "elsewhere", "api/guide/edit/x"):
        status, headers, body = ask(server, f"/{server.token}/{path}", method="POST", body=b"{}")
        assert (status in (404, 405), "there is nothing for POST" in json.loads(body)["error"]) == (True, True), path
        assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize("query", ["offset=-1&limit=x", f"offset={10**20}", "limit=1000000", "offset=%F0%9F%98%80"])
def test_odd_numbers_in_the_address_do_no_harm(server: ViewServer, query: str) -> None:
    assert api(server, f"guide/facts?{query}")["total"] == 1


def test_a_revision_changes_when_something_was_committed(server: ViewServer, home: Path) -> None:
    first = api(server, "guide/state")
    assert api(server, "guide/state") == first
    assert first["running"] is None
    with opened(home) as memory:
        held = api(server, "guide/state")["running"]
        assert held
        memory.archive("likes boats")
        second = api(server, "guide/state")["revision"]
    assert second != first["revision"]
    assert api(server, "guide/state")["running"] is None


def test_an_agent_that_was_made_anew_is_read_anew(server: ViewServer, home: Path) -> None:
    before = api(server, "guide/state")["revision"]
    (home / "guide").rename(home / "old")
    assert ask(server, f"/{server.token}/api/guide/now")[0] == 404
    assert api(server, "agents")["agents"] == ["old"]
    with opened(home) as memory:
        memory.archive("is new")
    assert [fact["text"] for fact in api(server, "guide/facts")["rows"]] == ["is new"]
    assert api(server, "guide/state")["revision"] != before


# --- edits


def test_pending_edits_are_applied_when_the_agent_has_ended_unless_the_view_is_read_only(home: Path) -> None:
    """Also those that another view or program sent."""
    with opened(home):
        send_command(home / "guide", "archive", {"text": "likes boats"}, HandClock())
        send_command(home / "guide", "message", {"text": "hello"}, HandClock())
    with serving(home, read_only=True) as server:
        assert len(api(server, "guide/state")["waiting"]) == 2
        assert api(server, "guide/facts")["total"] == 1
    with serving(home) as server:
        assert [command["kind"] for command in api(server, "guide/state")["waiting"]] == ["message"]
        assert api(server, "guide/facts")["rows"][0]["text"] == "likes boats"


def test_a_page_can_be_purged_while_somebody_looks(server: ViewServer, home: Path) -> None:
    api(server, "guide/request")
    with opened(home) as memory:
        memory.purge("f1")
    assert "purged" in api(server, "guide/page?id=f1")["text"]
    assert api(server, "guide/facts")["rows"][0]["purged"] is True
    assert b"likes trams" not in b"".join(file.read_bytes() for file in (home / "guide").iterdir() if file.is_file())


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"kind": "archive"}', b'{"kind": 1, "arguments": 2}', b"[" * 100_000]
)
def test_what_is_no_command_is_refused(server: ViewServer, body: bytes) -> None:
    status, _, error = ask(server, f"/{server.token}/api/guide/edit", method="POST", body=body)
    assert (status, b"cannot be read" in error) == (400, True)


def test_who_only_reads_changes_nothing(home: Path) -> None:
    with serving(home, read_only=True) as server:
        status, answer = edit(server, "core_append", {"block": "human", "text": "x"})
        assert status == 403
        assert "read-only" in answer["error"]
        assert api(server, "agents")["read_only"] is True
    assert not (home / "guide" / "inbox").exists()


# --- what changed in a text

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=14)


@given(LINES, LINES)
def test_each_text_can_be_read_off(before: list[str], after: list[str]) -> None:
    """Without the lines of the other one, and with those that are not shown."""
    told = changed_lines("\n".join(before), "\n".join(after))
    hidden = sum(int(line) for sign, line in told if sign == "~")
    for own, text in (("-", before), ("+", after)):
        lines = "\n".join(text).splitlines()
        shown = [line for sign, line in told if sign in (own, " ")]
        assert len(shown) + hidden == len(lines)
        rest = iter(lines)
        assert all(any(line == other for other in rest) for line in shown), "in order"


def test_what_is_the_same_far_away_is_not_shown() -> None:
    before = [f"line {number}" for number in range(20)]
    lines = changed_lines("\n".join(before), "\n".join([*before[:10], "new", *before[10:]]))
    near = [(" ", "line 8"), (" ", "line 9"), ("+", "new"), (" ", "line 10"), (" ", "line 11")]
    assert lines == [("~", "8"), *near, ("~", "8")]
    assert changed_lines("", "") == []
    assert changed_lines("", "a") == [("+", "a")]
