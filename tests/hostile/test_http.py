"""What a broken or hostile client sends to our HTTP servers is refused in order: never a 500, never a second request
out of the body of the first. And what a broken server sends to us prints nothing."""

import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.models.anthropic import AnthropicModel
from agents.models.model import ModelError, UnreadableReplyError
from agents.models.openai import OpenAIModel
from agents.testing import ScriptedServer
from agents.testing.loopback import LoopbackHandler, LoopbackServer
from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager import Memory
from pager.home import Home
from tests.models.test_odd_streams import ENDS, STOP, reply_of, sending, start
from tests.support.cli import Running

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-of-its-client"
BODY = b'{"kind": "archive", "arguments": {"text": "x"}}'
SECOND = b"GET /second HTTP/1.1\r\nHost: x\r\n\r\n"

Served = tuple[int, str, str]  # port, a path that takes a body, more headers


@contextmanager
def view(home: Path) -> Generator[Served]:
    with ViewServer(Readers(Home(home))) as server:
        yield server.port, f"/{server.token}/api/anna/edit", ""


@contextmanager
def scripted(home: Path) -> Generator[Served]:
    with ScriptedServer() as server:
        yield server.port, "/v1/messages", ""


@contextmanager
def mcp(home: Path) -> Generator[Served]:
    with Running("mcp", "anna", "--home", home, "--http", "0", SELFPAGER_MCP_TOKEN=TOKEN) as running:
        port = running.tells("is served at").split("127.0.0.1:")[1].split("/")[0]
        yield int(port), "/mcp", f"Authorization: Bearer {TOKEN}\r\n"


@pytest.fixture(scope="module", params=[view, scripted, mcp])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    serve: Callable[[Path], Any] = request.param
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home / "anna", embedder=None) as memory:
        memory.archive("likes trams")
    with serve(home) as served:
        yield served


def answers(served: Served, lengths: bytes, body: bytes) -> bytes:
    """Send one request; return everything that is answered until the server ends the connection."""
    port, path, more = served
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n{more}"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as caller:
        caller.sendall(head.encode() + lengths + b"\r\n\r\n" + body)
        caller.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: caller.recv(65_536), b""))


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: \xb2",
        "Content-Length: ٣".encode(),
        b"Content-Length: +5",
        b"Content-Length: -5",
        b"Content-Length: 5_0",
        b"Content-Length: 0x10",
        b"Content-Length: 1e3",
        b"Content-Length: 99999999999999999999999999",
        b"Content-Length: 99999999999999",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5, 6",
        b"Content-Length: 0\r\nTransfer-Encoding: xchunked",
    ],
    ids=ascii,
)
def test_a_body_without_a_clear_end_is_refused_and_ends_the_connection(served: Served, lengths: bytes) -> None:
    told = answers(served, lengths, SECOND)
    assert told.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ", b"HTTP/1.1 501 ")), told
    assert told.count(b"HTTP/1.1 ") == 1, "the body was read as a second request"


def test_a_body_is_not_answered_as_a_request(tmp_path: Path) -> None:
    with view(tmp_path) as served:
        port, path, _ = served
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        whole = f"{head}Content-Length: {len(SECOND)}\r\n\r\n".encode() + SECOND
        with socket.create_connection(("127.0.0.1", port), timeout=60) as caller:
            caller.sendall(whole + f"{head}Connection: close\r\n\r\n".encode())
            told = b"".join(iter(lambda: caller.recv(65_536), b""))
    assert told.count(b"HTTP/1.1 ") <= 2
    assert b"there is no agent" in told


@pytest.mark.parametrize("address", ["http://[", "*", "http://127.0.0.1/"])
def test_an_address_of_another_form_has_no_token(tmp_path: Path, address: str) -> None:
    with view(tmp_path) as (port, _, _), socket.create_connection(("127.0.0.1", port), timeout=60) as caller:
        caller.sendall(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        told = b"".join(iter(lambda: caller.recv(65_536), b""))
    assert told.split()[1] == b"403"


def block(**fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": fields}


CLOSED = {"type": "content_block_stop", "index": 0}
MALFORMED: dict[str, list[Any]] = {
    "text": [start(), block(type="text", text=5), CLOSED, ENDS, STOP],
    "call": [start(), block(type="tool_use", id=5, name=7, input="x"), CLOSED, ENDS, STOP],
    "usage": [start(usage={"input_tokens": "many", "output_tokens": None}), ENDS, STOP],
    "content": [start(content="hello"), ENDS, STOP],
    "blocks": [start(content=[5, None]), ENDS, STOP],
    "role": [start(role="user", id=4, model=None), block(type="text", text=""), CLOSED, ENDS, STOP],
    "citations": [start(), block(type="text", text="x", citations=7), CLOSED, ENDS, STOP],
}


def main() -> None:
    for events in MALFORMED.values():
        with sending(*events) as (model, _):
            try:
                reply_of(model)
            except ModelError:
                continue


def test_malformed_replies_print_nothing() -> None:
    code = "from tests.hostile.test_http import main; main()"
    done = subprocess.run(
        [sys.executable, "-W", "always::UserWarning", "-c", code],
        capture_output=True, cwd=ROOT, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")


class Deep(LoopbackHandler):
    """Answers with JSON that is nested too deeply to be read."""

    def answer(self, method: str) -> None:
        self.read_body(1 << 20)
        self.send_whole(200, "text/event-stream", b"event: message_start\ndata: " + b"[" * 100_000 + b"\n\n", {})


@pytest.mark.parametrize("model", [AnthropicModel, OpenAIModel])
def test_a_reply_that_is_nested_too_deeply_is_an_error_of_the_model(model: Any) -> None:
    with (
        LoopbackServer(Deep) as server,
        closing(model("m", base_url=server.base_url, api_key="k")) as asked,
        pytest.raises(UnreadableReplyError),
    ):
        list(asked.stream({"max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}))
