"""Disks that are full, in a child process: each call of the memory is tried with more and more free space.

`fill_up` is the scenario. Whatever fails says what to do and changes nothing; with enough space the same call
succeeds. The disk is a limit on the size of files (which any process may set itself), or a small tmpfs in a mount
namespace of the child's own, where that is allowed.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pager import Memory, NotFoundError, StorageError, send_command
from tests.crash.children import say
from tests.crash.load import SECRET, open_memory, standin
from tests.crash.witness import Witness, goes_on
from tests.standin import Reply, call
from tests.support.clock import HandClock
from tests.support.talk import database_of

PAGE_BYTES = 4_096
TMPFS_BYTES = 16_000_000
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE = 16384, 1 << 18
WHAT_TO_DO = re.compile("Free some space|its free space|rights and space|another place")


class Disk:
    """Nothing can be written behind a certain place of any file. (Before each try SQLite's log is cut to nothing.)"""

    def leave(self, spare_bytes: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (spare_bytes, resource.RLIM_INFINITY))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class SmallDisk(Disk):
    """A tmpfs and a file that takes what is to be taken."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"

    def leave(self, spare_bytes: int) -> None:
        self.free()
        found = os.statvfs(self._ballast.parent)
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - spare_bytes))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


def mounted(folder: Path) -> bool:
    """A tmpfs at `folder` that only this process sees and that goes with it; False where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS) != 0:
        if libc.unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0:
            return False
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    return (
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
        and libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={TMPFS_BYTES}".encode()) == 0
    )


# --- the calls


Call = tuple[str, Callable[[], Any]]
STEPWISE = {"request", "purge", "inbox", "open"}  # more than one commit: a part may be done when it fails


def calls(memory: Callable[[], Memory], directory: Path, witness: Witness) -> Generator[Call, Any, None]:
    """Every kind of call, one at a time; what it answered is sent back. `memory()`: it may have been reopened."""
    clock = HandClock()

    def reply(*said: Any) -> Generator[Call, Any, None]:
        request = yield "request", lambda: memory().request()
        message = standin().create({"model": "m", **request.params}, Reply(*said))
        page = yield "reply", lambda: memory().append_assistant(message)
        witness.hear([["reply", page, [block["id"] for block in message["content"] if block["type"] == "tool_use"]]])

    def user(text: str) -> Generator[Call, Any, None]:
        page = yield "user", lambda: memory().append_user(text)
        witness.hear([["page", page, text]])

    def remember(text: str, **more: Any) -> Generator[Call, Any, str]:
        fact = yield "archive", lambda: memory().archive(text, **more)
        witness.hear([["fact", fact.id, text]])
        return fact.id

    def as_tool(call_id: str, text: str) -> None:
        with memory().transaction():
            memory().archive(text, key="seat", actor="agent")
            memory().append_result(call_id, "stored", memory_tool=True)

    def purge(fact: str) -> None:
        with suppress(NotFoundError):  # what a failed one had begun, the next opening has finished
            memory().purge(fact)

    page = yield "record", lambda: memory().record("user", "it was said elsewhere")
    witness.hear([["page", page, "it was said elsewhere"]])
    yield "record_many", lambda: memory().record_many({"role": "user", "text": f"turn {n}"} for n in range(50))
    gone = yield from remember("it will be forgotten")
    kept = yield from remember("it stays in view", tags=["travel"])
    secret = yield from remember(SECRET)
    yield "forget", lambda: memory().forget(gone, "over")
    yield "pin", lambda: memory().page_in(kept, pin=True)
    yield "core", lambda: memory().core_append("human", "a line to keep")
    yield "core", lambda: memory().core_append("human", "a line to move")
    yield "move_to_archive", lambda: memory().move_to_archive("human", "a line to move")
    witness.hear([["core", "a line to keep"], ["core", "a line to move"], ["moving", "a line to move"]])
    yield "search", lambda: memory().search_archive("view")
    yield from user("please look")
    yield from reply(call("fetch", {"order": "1"}), call("archive", {"text": "by a tool"}), call("fetch", {}))
    first, second, third = [each.id for each in memory().open_calls]
    yield "begin", lambda: memory().begin_call(first)
    yield "result", lambda: memory().append_result(first, "found it " * 500)
    yield "tool", lambda: as_tool(second, "by a tool")
    yield "interrupt", lambda: memory().begin_call(third)
    yield "interrupt", lambda: memory().answer_interrupted()
    witness.hear([["result", first, "found it"], ["result", second, "stored"]])
    yield from reply("done")
    left = yield "leave", lambda: send_command(directory, "archive", {"text": "from elsewhere"}, clock)
    witness.hear([["left", left, "archive", "from elsewhere"]])
    yield "inbox", lambda: memory().process_inbox()
    for number in range(6):
        yield from user(f"number {number} " + "and so on " * 60)
        yield from reply(f"answer {number} " + "as I said " * 60)
    yield "unpin", lambda: memory().page_out(kept)
    yield "export", lambda: memory().export(directory.parent / "copy.db")
    witness.facts.pop(secret)
    yield "purge", lambda: purge(secret)


# --- the scenario


def fill_up(root: Path, kind: str, reopening: bool) -> None:
    """All calls, each from no free space at all to enough for it; how often that failed, by kind of call."""
    root.mkdir(exist_ok=True)
    disk: Disk = SmallDisk(root) if kind == "tmpfs" and mounted(root) else Disk()
    scene = Scene(root / "agent", disk, reopening=reopening)
    scene.play()
    say(scene.failures)


class Scene:
    def __init__(self, directory: Path, disk: Disk, *, reopening: bool) -> None:
        self.failures: dict[str, int] = {}
        self._directory = directory
        self._disk = disk
        self._reopening = reopening
        self._witness = Witness()
        self._life = 1
        self._memory: Memory = self._insist("open", self._open)

    def play(self) -> None:
        script = calls(lambda: self._memory, self._directory, self._witness)
        answer = None
        with suppress(StopIteration):  # the script has come to its end
            while True:
                name, act = script.send(answer)
                answer = self._insist(name, act)
        self._judge()
        self._memory.close()
        self._memory = self._open()
        self._judge()
        self._memory.close()
        files = [path for path in self._directory.rglob("*") if path.is_file()]
        assert [path for path in files if SECRET.encode() in path.read_bytes()] == []

    def _judge(self) -> None:
        self._witness.judge(self._memory)
        goes_on(self._memory)

    def _open(self) -> Memory:
        return open_memory(self._directory, life=self._life, embedder=None)

    def _insist(self, name: str, act: Callable[[], Any]) -> Any:
        """With as much free space as it takes: what it answers then."""
        spare_bytes = 0
        while True:
            before = self._rows() if name not in STEPWISE else None
            self._disk.leave(spare_bytes)
            try:
                answer = act()
            except StorageError as error:
                assert WHAT_TO_DO.search(str(error)), str(error)
                self.failures[name] = self.failures.get(name, 0) + 1
                if name != "open":
                    self._memory.inspect.newest_facts()  # what is there can be read
                    if self._reopening:
                        self._reopen()
                self._disk.free()
                assert before is None or self._rows() == before, f"{name} failed and changed something"
                spare_bytes += PAGE_BYTES
            else:
                self._disk.free()
                return answer

    def _reopen(self) -> None:
        """Closed on the full disk, opened on it, if that goes, and when there is space again."""
        self._memory.close()
        self._life += 1
        try:
            self._memory = self._open()
            self._memory.close()
        except StorageError as error:
            assert WHAT_TO_DO.search(str(error)), str(error)
        self._disk.free()
        self._memory = self._open()

    def _rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """What the memory's own connection sees. The log is cut, so that the next try needs space again."""
        db = database_of(self._memory)
        db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        names = [row[0] for row in db.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [tuple(row) for row in db.rows(f"SELECT * FROM {name}")] for name in names}
