"""Disks that are full, in a child process: each call of the memory is tried with more and more free space.

`fill_up` is the scenario. Whatever fails says what to do and changes nothing; with enough space the same call
succeeds. The disk is a limit on the size of files (which any process may set itself), or a small tmpfs in a mount
namespace of the child's own, where that is allowed.
"""

import ctypes
import os
import re
import resource
from collections import Counter
from collections.abc import Callable
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


STEPWISE = {"request", "purge", "inbox", "open"}  # more than one commit: a part may be done when it fails


def fill_up(root: Path, kind: str, reopening: bool) -> None:
    """All calls, each from no free space at all to enough for it; how often that failed, by kind of call."""
    root.mkdir(exist_ok=True)
    disk: Disk = SmallDisk(root) if kind == "tmpfs" and mounted(root) else Disk()
    scene = Scene(root / "agent", disk, reopening=reopening)
    scene.play()
    say(scene.failures)


class Scene:
    def __init__(self, directory: Path, disk: Disk, *, reopening: bool) -> None:
        self.failures: Counter[str] = Counter()
        self._directory = directory
        self._disk = disk
        self._reopening = reopening
        self._witness = Witness()
        self._life = 1
        self.memory: Memory = self._insist("open", self._open)

    def play(self) -> None:
        secret = self._call_everything()
        self._witness.facts.pop(secret)
        self._insist("purge", lambda: self._purge(secret))
        self._judge()
        self.memory.close()
        self.memory = self._open()
        self._judge()
        self.memory.close()
        files = [path for path in self._directory.rglob("*") if path.is_file()]
        assert [path for path in files if SECRET.encode() in path.read_bytes()] == []

    def _call_everything(self) -> str:
        """Make every kind of call but a purge. The memory may be another one at each, so it is read when it is used."""
        do, hear = self._insist, self._hear
        page = do("record", lambda: self.memory.record("user", "it was said elsewhere"))
        hear("page", page, "it was said elsewhere")
        do("record_many", lambda: self.memory.record_many({"role": "user", "text": f"message {n}"} for n in range(50)))
        gone, kept, secret = (self._archive(text) for text in ("it will be forgotten", "it stays in view", SECRET))
        do("forget", lambda: self.memory.forget(gone, "over"))
        do("pin", lambda: self.memory.page_in(kept, pin=True))
        for line in ("a line to keep", "a line to move"):
            do("core", lambda line=line: self.memory.core_append("human", line))
            hear("core", line)
        do("move_to_archive", lambda: self.memory.move_to_archive("human", "a line to move"))
        hear("moving", "a line to move")
        do("search", lambda: self.memory.search_archive("view"))
        self._user("please look")
        self._reply(call("fetch", {"order": "1"}), call("archive", {"text": "by a tool"}), call("fetch", {}))
        first, second, third = [each.id for each in self.memory.open_calls]
        do("begin", lambda: self.memory.begin_call(first))
        do("result", lambda: self.memory.append_result(first, "found it " * 500))
        do("tool", lambda: self._archive_as_tool(second, "by a tool"))
        do("interrupt", lambda: self.memory.begin_call(third))
        do("interrupt", lambda: self.memory.answer_interrupted())  # noqa: PLW0108  it may be another one
        hear("result", first, "found it")
        hear("result", second, "stored")
        self._reply("done")
        command = {"text": "from elsewhere"}
        left = do("leave", lambda: send_command(self._directory, "archive", command, HandClock()))
        hear("left", left, "archive", "from elsewhere")
        do("inbox", lambda: self.memory.process_inbox())  # noqa: PLW0108  it may be another one
        for number in range(6):
            self._user(f"number {number} " + "and so on " * 60)
            self._reply(f"answer {number} " + "as I said " * 60)
        do("unpin", lambda: self.memory.page_out(kept))
        do("export", lambda: self.memory.export(self._directory.parent / "copy.db"))
        return secret

    def _hear(self, *line: Any) -> None:
        self._witness.hear([list(line)])

    def _reply(self, *said: Any) -> None:
        request = self._insist("request", lambda: self.memory.request())  # noqa: PLW0108  it may be another one
        message = standin().create({"model": "m", **request.params}, Reply(*said))
        page = self._insist("reply", lambda: self.memory.append_assistant(message))
        self._hear("reply", page, [block["id"] for block in message["content"] if block["type"] == "tool_use"])

    def _user(self, text: str) -> None:
        self._hear("page", self._insist("user", lambda: self.memory.append_user(text)), text)

    def _archive(self, text: str) -> str:
        fact = self._insist("archive", lambda: self.memory.archive(text, tags=["travel"]))
        self._hear("fact", fact.id, text)
        return fact.id

    def _archive_as_tool(self, call_id: str, text: str) -> None:
        with self.memory.transaction():
            self.memory.archive(text, key="seat", actor="agent")
            self.memory.append_result(call_id, "stored", memory_tool=True)

    def _purge(self, fact: str) -> None:
        with suppress(NotFoundError):  # what a failed one had begun, the next opening has finished
            self.memory.purge(fact)

    def _judge(self) -> None:
        self._witness.judge(self.memory)
        goes_on(self.memory)

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
                begun = name == "purge" and database_of(self.memory).value("SELECT 1 FROM meta WHERE key = 'purging'")
                assert not (begun and "nothing of this change" in str(error)), str(error)
                assert ("has begun" in str(error)) == bool(begun), str(error)
                self.failures[name] += 1
                if name != "open":
                    self.memory.inspect.newest_facts()  # what is there can be read
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
        self.memory.close()
        self._life += 1
        try:
            self.memory = self._open()
            self.memory.close()
        except StorageError as error:
            assert WHAT_TO_DO.search(str(error)), str(error)
        self._disk.free()
        self.memory = self._open()

    def _rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all rows. The log is cut, so that the next try needs space again."""
        db = database_of(self.memory)
        db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        names = [row[0] for row in db.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [tuple(row) for row in db.rows(f"SELECT * FROM {name}")] for name in names}
