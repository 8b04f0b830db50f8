"""The index on a Chroma server: a real process, which is killed, restarted, emptied, and asks for a token."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pager import ChromaServer, Memory, StorageError
from pager.vectors.chroma.collection import Connection
from tests.support.indexed import (
    FACTS,
    archive,
    build,
    count_queries,
    files_in,
    is_asked,
    lost,
    names_in,
    open_memory,
    open_reader,
    told,
)
from tests.support.ports import hold_port

TOKEN = "xyzzyplugh"


class Running:
    """A `chroma run` in a directory, always at the same port."""

    def __init__(self, directory: Path) -> None:
        self._held = hold_port()
        self.port = self._held.getsockname()[1]
        self.place = ChromaServer("127.0.0.1", self.port)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process:
            return
        command = [Path(sys.executable).with_name("chroma"), "run", "--path", self._directory, "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*command, "--host", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not self._answers():
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"chroma run ended with {self._process.wait(0.05)}")

    def _answers(self) -> bool:
        with suppress(OSError), closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
            connection.request("GET", "/api/v2/heartbeat")
            return connection.getresponse().status == 200
        return False

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
        self._process = None

    def close(self) -> None:
        self.kill()
        self._held.close()

    def names(self) -> set[str]:
        with closing(Connection(self.place)) as connection:
            return {each.name for each in connection._api.list_collections()}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("server"))
    yield running
    running.close()


@pytest.fixture
def server(process: Running) -> Running:
    process.start()
    return process


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory, process: Running) -> Path:
    """An agent with facts, closed. Not to be touched: use a copy, whose index is on the server."""
    directory = tmp_path_factory.mktemp("well") / "agent"
    with open_memory(directory) as memory:
        archive(memory, 1, FACTS)
    return directory


@pytest.fixture
def memory(directory: Path, server: Running) -> Iterator[Memory]:
    with open_memory(directory, index=server.place) as memory:
        build(memory)
        assert is_asked(memory)
        yield memory
        server.start()
        memory.purge("f1")  # deletes its collections


def attempts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    made, begin = list[object](), Connection.__init__

    def connect(self: Connection, place: Any) -> None:
        made.append(place)
        begin(self, place)

    monkeypatch.setattr(Connection, "__init__", connect)
    return made


def collections_of(memory: Memory, server: Running) -> list[str]:
    owner = memory._store.settings.get("index_owner")
    return sorted(name.rpartition("-")[2] for name in server.names() if name.startswith(str(owner)))


def test_a_memory_and_its_copy_never_ask_each_others_generation(
    directory: Path, server: Running, tmp_path: Path
) -> None:
    with open_memory(directory, index=server.place) as each:
        build(each)
    shutil.copytree(directory, tmp_path / "copy")
    for place, words in ((directory, "lilac"), (tmp_path / "copy", "maroon")):
        with open_memory(place, index=server.place) as each:
            archive(each, FACTS + 1, FACTS + 1, tags=[words])
            each.archive(f"{words} is not what the other one says")
            each.compact()
            assert is_asked(each)
    with open_memory(directory, index=server.place) as each:
        assert not is_asked(each)
        each.compact()
        assert is_asked(each)
        assert each.search_archive("lilac")[0].text.startswith("lilac")
        each.purge("f1")


def test_a_search_asks_the_server_and_an_old_generation_is_deleted(
    memory: Memory, server: Running, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_queries(monkeypatch)
    assert lost(memory, range(1, FACTS + 1)) == []
    assert len(asked) == FACTS
    with open_reader(directory, index=server.place) as reader:
        assert lost(reader, [1, FACTS]) == []
        archive(memory, FACTS + 1, 2 * FACTS)
        assert lost(memory, range(1, 2 * FACTS + 1, 7)) == []
        build(memory)
        assert collections_of(memory, server) == ["g2"]
        assert lost(memory, range(1, 2 * FACTS + 1, 7)) == []
        assert lost(reader, range(1, 2 * FACTS + 1, 7)) == []
        assert len(asked) == FACTS + 2 + 3 * len(range(1, 2 * FACTS + 1, 7))
    assert names_in(directory / "chroma") == set()
    assert (memory.check(), memory.index_is_behind) == ([], False)


def test_two_memories_on_a_server_do_not_see_each_other(
    memory: Memory, server: Running, well: Path, tmp_path: Path
) -> None:
    with open_memory(shutil.copytree(well, tmp_path / "other"), index=server.place) as other:
        other.archive("only here")
        build(other)
        other.forget("f7", "wrong")
        other.compact()
        assert collections_of(memory, server) == ["g1"]
        assert collections_of(other, server) == ["g2"]
        assert lost(memory) == []
        other.purge("f8")
        assert collections_of(other, server) == []
        assert (lost(memory), is_asked(memory)) == ([], True)


def test_a_server_that_is_down_costs_one_attempt_a_minute(
    memory: Memory, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.kill()
    made, asked = attempts(monkeypatch), count_queries(monkeypatch)
    for number in range(3):
        assert lost(memory, range(1, FACTS, 9)) == []
        archive(memory, FACTS + 1 + number * FACTS, FACTS + (number + 1) * FACTS)
        build(memory)
    assert (len(asked), made) == (1, [])
    [reason] = told(memory)[1:]
    assert f"127.0.0.1:{server.port}" in reason
    for retry_s in (60, 0):
        monkeypatch.setattr("pager.vectors.indexing.RETRY_S", retry_s)
        [problem] = memory.check()  # asks at once
        assert (problem.where, f"127.0.0.1:{server.port}" in problem.text) == ("chroma", True)
    assert lost(memory, range(1, FACTS, 9)) == []
    server.start()
    assert lost(memory, range(1, FACTS, 9)) == []
    assert is_asked(memory)
    build(memory)
    assert collections_of(memory, server) == ["g2"]
    assert lost(memory, range(1, 4 * FACTS, 9)) == []
    assert memory.check() == []


def test_a_generation_that_is_gone_from_the_server_is_built_anew(
    memory: Memory, server: Running, directory: Path
) -> None:
    owner = memory._store.settings.get("index_owner")
    with closing(Connection(server.place)) as connection:
        connection.delete_all(str(owner))
    assert lost(memory) == []
    assert memory.has_background_work
    build(memory)
    assert (collections_of(memory, server), is_asked(memory), lost(memory)) == (["g2"], True, [])
    with closing(Connection(server.place)) as connection:
        connection.get(next(name for name in server.names() if name.startswith(str(owner)))).delete(ids=["f5"])
    memory._tiers.close()
    with open_reader(directory, index=server.place) as reader:
        assert (lost(reader), is_asked(reader)) == ([], False)


def test_a_purge_is_over_when_the_server_has_deleted_the_collections(memory: Memory, server: Running) -> None:
    server.kill()
    with pytest.raises(StorageError, match=r"127.0.0.1.*Start the server: the next purge.*finishes it"):
        memory.purge("f5")
    assert memory.fact("f5").purged
    server.start()
    assert collections_of(memory, server) == ["g1"]
    assert memory.purge("f5") == 0
    assert collections_of(memory, server) == []
    assert memory._store.settings.get("purging") is None
    memory._backlog._indexing.check()  # type: ignore[union-attr]  # asks at once
    build(memory)
    assert is_asked(memory)
    assert lost(memory, [1, 4, 6, FACTS]) == []


def test_without_its_server_all_is_compared_and_a_purge_says_what_to_do(directory: Path, server: Running) -> None:
    with open_memory(directory, index=server.place) as memory:
        build(memory)
    with open_memory(directory) as memory:
        assert (lost(memory, [5, 6]), is_asked(memory)) == ([], False)
        with pytest.raises(StorageError, match=r"on a Chroma server.*Open it with that server"):
            memory.purge("f5")
        assert collections_of(memory, server) == ["g1"]
    with open_memory(directory, index=server.place, embedder=None) as memory:  # which finishes it
        assert (collections_of(memory, server), memory.fact("f5").purged) == ([], True)
    with open_memory(directory) as memory:  # the server has nothing of it any more
        memory.purge("f6")


class Doorkeeper(BaseHTTPRequestHandler):
    """Lets through to a server who knows the token."""

    behind = 0

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, kind, answer = 403, "application/json", b'{"error":"AuthError","message":"Forbidden"}'
        if self.headers.get("x-chroma-token") == TOKEN:
            connection = http.client.HTTPConnection("127.0.0.1", self.behind)
            headers = {name: self.headers[name] for name in ("content-type", "accept") if name in self.headers}
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            status, kind, answer = response.status, response.headers["content-type"] or "", response.read()
            connection.close()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def test_a_wrong_token_is_told_without_it_and_the_right_one_opens(
    directory: Path, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Doorkeeper, "behind", server.port)
    with ThreadingHTTPServer(("127.0.0.1", 0), Doorkeeper) as door:
        Thread(target=door.serve_forever, daemon=True).start()

        def at(token: str) -> ChromaServer:
            return ChromaServer("127.0.0.1", door.server_port, headers={"x-chroma-token": token})

        assert TOKEN not in repr(at(TOKEN))
        with open_memory(directory, index=at("wrongword")) as memory:
            build(memory)
            assert (lost(memory), is_asked(memory)) == ([], False)
            [reason] = told(memory)
            assert "wrongword" not in reason
            assert "token" in reason
        with open_memory(directory, index=at(TOKEN)) as memory:
            build(memory)
            assert (lost(memory), is_asked(memory)) == ([], True)
        with open_memory(directory, index=at("wrongword")) as memory:
            assert (lost(memory), is_asked(memory)) == ([], False)
            assert "token" in told(memory)[-1]
            assert "wrongword" not in told(memory)[-1]
        with open_memory(directory, index=at(TOKEN)) as memory:
            memory.purge("f5")
        written = b"".join(files_in(directory).values())
        assert (b"wrongword" in written, TOKEN.encode() in written) == (False, False)
        door.shutdown()


def test_a_server_that_is_gone_for_ever_locks_no_memory(directory: Path) -> None:
    with open_memory(directory, index=ChromaServer("127.0.0.1", 9)) as memory:  # nobody listens there
        archive(memory, FACTS + 1, FACTS + 9)
        build(memory)
        assert (is_asked(memory), lost(memory, [1, FACTS + 9])) == (False, [])
    with open_memory(directory) as memory:  # nothing has ever been there
        memory.purge("f5")
        assert memory.check() == []


def test_a_purge_that_waits_for_a_server_lets_the_memory_open(directory: Path, server: Running) -> None:
    with open_memory(directory, index=server.place) as memory:
        build(memory)
    server.kill()
    with open_memory(directory, index=server.place) as memory, pytest.raises(StorageError, match="Start the server"):
        memory.purge("f5")
    with open_memory(directory, index=server.place) as memory:
        assert lost(memory, [4, 6]) == []
        assert [problem.where for problem in memory.check()][:1] == ["purge"]
        server.start()
        assert memory.purge("f5") == 0
        assert (collections_of(memory, server), memory.check()) == ([], [])
