"""Another user of this machine, and a page elsewhere, get nothing from our local servers."""

import json
import os
import re
import stat
import subprocess
import sys
import urllib.request
import webbrowser
from collections.abc import Generator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from agents.config.tool_sections import ServerConfig
from agents.mcp.client import connected
from agents.tools.functions import ToolConfigError
from agents.view.opening import open_in_browser
from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager import Memory
from pager.home import Home
from tests.support.cli import Running, selfpager

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a second user")
# A browser that reports its command line, then follows the file that it was given, as a real one does.
BROWSER = """#!{python}
import re, sys, urllib.request, urllib.parse
said, page = sys.argv[1:]
path = urllib.parse.unquote(urllib.parse.urlsplit(page).path)
open(said, "w").write(path)
open(said).read()  # until the test has looked around
address = re.search('url=([^"]+)', open(path).read())[1]
open(said, "w").write(urllib.request.urlopen(address).read(15).decode())
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "home" / "anna", embedder=None) as memory:
        memory.save_value("embedder", "null")
        memory.archive("likes trams")
    return tmp_path / "home"


def as_another_user(code: str, *arguments: str) -> str:
    """What a program of another user prints."""
    done = subprocess.run(
        ["/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", env={}, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


# What `ps` shows of all processes, and what is in a file.
LOOK = "import os; os.system('cat /proc/[0-9]*/cmdline 2>/dev/null')"  # some end meanwhile
READ = "import sys; print(open(sys.argv[1]).read())"


@as_root
def test_opening_the_view_shows_its_token_to_nobody_else(home: Path, tmp_path: Path) -> None:
    browser, said = tmp_path / "browser", tmp_path / "said"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    os.mkfifo(said)
    opener = f"{browser} {said} %s"
    with Running("view", "anna", "--json", "--home", home, BROWSER=opener, XDG_RUNTIME_DIR="") as running:
        token = json.loads(running.line())["address"].split("/")[3]
        page = Path(said.read_text())  # the browser has begun
        seen = as_another_user(LOOK)
        assert (str(page) in seen, token in seen) == (True, False)
        assert "PermissionError" in as_another_user(READ, str(page))
        assert (stat.S_IMODE(page.stat().st_mode), stat.S_IMODE(page.parent.stat().st_mode)) == (0o600, 0o700)
        said.write_text("")  # the browser goes on
        assert said.read_text() == "<!doctype html>"
        running.interrupt()
        assert running.end().code == 0
    assert not page.parent.exists()


def test_the_file_that_leads_to_the_page_is_gone_when_the_page_was_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[Path] = []

    def open_as_a_browser(url: str) -> bool:
        files.append(Path(url.removeprefix("file://")))
        address = re.search('url=([^"]+)', files[0].read_text())
        assert address
        with urllib.request.urlopen(address[1], timeout=60) as response:
            return response.status == 200

    monkeypatch.setattr(webbrowser, "open", open_as_a_browser)
    with ViewServer(Readers(Home(home))) as server:
        open_in_browser(server, f"{server.address}#anna")
    assert [file.parent.exists() for file in files] == [False]


@contextmanager
def served(home: Path, fixed: str = "") -> Generator[tuple[int, str]]:
    """`selfpager mcp --http --write`; its port, and the token that it printed."""
    with Running("mcp", "anna", "--write", "--home", home, "--http", "0", SELFPAGER_MCP_TOKEN=fixed) as running:
        port = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", running.tells("is served at"))
        token = re.search(r"Authorization: Bearer (.*)", running.tells("Clients send"))
        assert port
        assert token
        yield int(port[1]), token[1]


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
)  # fmt: skip


def status(port: int, *headers: tuple[str, str], host: str = "") -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.putrequest("POST", "/mcp", skip_host=True)
        accepted = ("Accept", "application/json, text/event-stream")
        common = [("Host", host or f"127.0.0.1:{port}"), ("Content-Type", "application/json"), accepted]
        for name, value in [*common, ("Content-Length", str(len(INITIALIZE))), *headers]:
            connection.putheader(name, value)
        connection.endheaders(INITIALIZE.encode())
        return connection.getresponse().status


def test_a_memory_is_served_over_http_to_nobody_without_the_token(home: Path) -> None:
    with served(home) as (port, token):
        assert len(token) >= 24
        bearer = ("Authorization", f"Bearer {token}")
        own, foreign = (
            f"http://127.0.0.1:{port}",
            ("http://127.0.0.1:1", "http://localhost", "null", "http://evil.example"),
        )
        assert [status(port, bearer), status(port, bearer, ("Origin", own))] == [200, 200]
        wrong = [
            "",
            "Bearer",
            "Bearer ",
            f"Bearer {token[:-1]}",
            f"Bearer {token}x",
            f"Basic {token}",
            token,
            "Bearer \xfc",
        ]
        assert {status(port, ("Authorization", value)) for value in wrong} == {401}
        assert {status(port), status(port, bearer, bearer)} == {401}
        assert {status(port, bearer, ("Origin", origin)) for origin in foreign} == {403}
        assert {status(port, bearer, ("Origin", own), ("Origin", "null"))} == {403}
        hosts = (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.evil.example", f"0.0.0.0:{port}")
        assert {status(port, bearer, host=host) for host in hosts} == {403}
        url = f"http://127.0.0.1:{port}/mcp"
        with connected(ServerConfig(url=url, headers=dict([bearer]))) as server:
            assert "archive" in [tool.name for tool in server.tools()]
        with pytest.raises(ToolConfigError, match="401"), connected(ServerConfig(url=url)):
            raise AssertionError("it let a client in without the token")


def test_the_token_can_be_one_that_a_clients_settings_hold(home: Path) -> None:
    with served(home, "a-token-of-its-client") as (port, token):
        assert token == "the token in SELFPAGER_MCP_TOKEN"
        assert status(port, ("Authorization", "Bearer a-token-of-its-client")) == 200
    for weak in ("short", "with a space in it, though long", "\u00fc" * 20):
        done = selfpager("mcp", "anna", "--home", home, "--http", "0", SELFPAGER_MCP_TOKEN=weak)
        assert (done.code, "give at least 16" in done.err, weak in done.err) == (1, True, False)
