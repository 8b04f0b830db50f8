"""What stands in the place of a file: pipes, devices, links, sizes, and other people's eyes."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from agents import Agent
from agents.config.agent_config import load
from agents.config.errors import ConfigError
from agents.importing import import_conversations, import_notes
from pager import BlockSpec, Home, Memory, MemoryReader, PagerError, pending_commands, send_command
from tests.crash.children import run, say
from tests.support import HandClock, Words
from tests.support.cli import ROOT

NOBODY = 65_534
HANGS_AFTER_S = 20


def open_memory(directory: Path, **changes: Any) -> Memory:
    return Memory.open(directory, **{"embedder": None, "clock": HandClock(), **changes})


# --- pipes, devices, sizes


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def config(folder: Path, text: str) -> None:
    path = folder / "x.yaml"
    path.write_text(f"name: x\nmodel: {{provider: scripted, script: 'tests.support.answers:keeps_and_finds'}}\n{text}")
    load(path, {})


def script(folder: Path, file: Path) -> None:
    path = folder / "x.yaml"
    path.write_text(f"name: x\nmodel: {{provider: scripted, script: {file.name}}}\n")
    with Agent.load(path, home=folder / "home"):
        pass


def into(folder: Path, work: Callable[[Memory, Path], int], file: Path) -> None:
    with open_memory(folder / "m") as memory:
        work(memory, file)


READS: dict[str, Callable[[Path, Path], object]] = {
    "the YAML itself": lambda _, file: load(file, {}),
    "extends": lambda folder, file: config(folder, f"extends: {file.name}"),
    "a script": script,
    "the file of a core block": lambda folder, file: open_memory(
        folder / "m", core={"human": BlockSpec(file=str(file))}
    ),
    "an import": lambda folder, file: Home(folder).import_file(file, "x"),
    "what an import is": lambda _, file: Home.is_export(file),
    "conversations": lambda folder, file: into(folder, import_conversations, file),
    "notes": lambda folder, file: into(folder, import_notes, file),
}


@pytest.mark.parametrize("made", [pipe, endless, huge])
@pytest.mark.parametrize("read", READS)
def test_no_foreign_file_hangs_or_fills_the_memory(tmp_path: Path, made: Callable[[Path], None], read: str) -> None:
    if (made, read) == (huge, "what an import is"):
        return  # only its first bytes are read
    made(file := tmp_path / "file.md")
    with pytest.raises((PagerError, ConfigError), match=r"it is a pipe|at most [\d,]+ are read|there is no file"):
        READS[read](tmp_path, file)


@pytest.mark.parametrize("made", [pipe, endless, huge, lambda path: path.symlink_to("/etc/passwd")])
def test_what_is_no_command_is_set_aside(tmp_path: Path, made: Callable[[Path], None]) -> None:
    with open_memory(tmp_path) as memory:
        sent = send_command(tmp_path, "archive", {"text": "a fact"}, HandClock())
        made(tmp_path / "inbox" / "0.json")
        assert [each["id"] for each in pending_commands(tmp_path)] == [sent]
        memory.export(tmp_path / "export.db")
        memory.process_inbox()
        assert [fact.text for fact in memory.inspect.newest_facts()] == ["a fact"]
        assert "set aside" in memory.ledger(events=["error"])[0].reason
        memory.purge("f1")
    assert Path("/etc/passwd").exists()


@pytest.mark.parametrize("made", [pipe, endless, Path.mkdir])
@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm"])
def test_a_pipe_beside_or_as_the_database_is_refused(
    tmp_path: Path, made: Callable[[Path], object], suffix: str
) -> None:
    open_memory(tmp_path).close()
    (odd := tmp_path / f"pager.db{suffix}").unlink(missing_ok=True)
    made(odd)
    for opening in (open_memory, MemoryReader.open):
        with pytest.raises(PagerError, match=r"is a pipe|there is no memory|cannot be|empty"):
            opening(tmp_path)


def test_a_pipe_or_a_link_as_lock_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    open_memory(tmp_path / "m").close()
    (tmp_path / "m" / "lock").unlink()
    (tmp_path / "m" / "lock").symlink_to(precious)
    with pytest.raises(PagerError, match="lock cannot be written"):
        open_memory(tmp_path / "m")
    assert precious.read_text() == "kept"
    (tmp_path / "m" / "lock").unlink()
    pipe(tmp_path / "m" / "lock")
    assert Home(tmp_path).owner("m") is None


# --- rights


def modes(directory: Path) -> dict[str, int]:
    return {path.relative_to(directory).as_posix(): stat.S_IMODE(path.lstat().st_mode) for path in directory.rglob("*")}


def write_a_life(directory: Path) -> Memory:
    memory = open_memory(directory, embedder=Words(), core={"human": BlockSpec()})
    with memory.transaction():
        for number in range(300):
            memory.archive(f"fact {number}")
    while memory.embed_pending():
        pass
    send_command(directory, "archive", {"text": "a fact"}, HandClock())
    (directory / "inbox" / "x.json").touch(0o600)  # no command
    memory.process_inbox()
    send_command(directory, "archive", {"text": "another"}, HandClock())
    return memory


@pytest.mark.slow
@pytest.mark.parametrize("before", ["nothing", "a directory", "files that everybody can read"])
def test_only_the_owner_can_read_what_is_written(tmp_path: Path, before: str) -> None:
    directory, umask = tmp_path / "parent" / "m", os.umask(0)
    try:
        if before != "nothing":
            directory.mkdir(mode=0o755, parents=True)
        if before.startswith("files"):
            write_a_life(directory).close()
            for path in directory.rglob("*"):
                path.chmod(0o777 if path.is_dir() else 0o666)
            with open_memory(directory, embedder=Words()) as memory:
                memory.archive("one more")
                found = {name: mode for name, mode in modes(directory).items() if "/" not in name}
        else:
            memory = write_a_life(directory)
            found = modes(directory)
            memory.export(directory / "export.db")
            assert stat.S_IMODE((directory / "export.db").stat().st_mode) == 0o600
            memory.close()
    finally:
        os.umask(umask)
    assert {"pager.db", "pager.db-wal", "pager.db-shm", "lock", "inbox", "chroma"} <= found.keys()
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}
    if before == "nothing":
        assert [stat.S_IMODE(path.stat().st_mode) for path in (directory, directory.parent)] == [0o700, 0o700]


def look(directory: Path) -> None:
    """As another user: read whatever there is, and leave a command."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    for path in [directory / name for name in ("pager.db", "pager.db-wal", "pager.db-shm", "lock", "chroma", "inbox")]:
        try:
            say(path.name, [each.name for each in path.iterdir()] if path.is_dir() else path.read_bytes()[:9])
        except PermissionError:
            say(path.name, "refused")
    try:
        send_command(directory, "archive", {"text": "wire it to Mallory"}, HandClock())
    except PagerError as error:
        say("command", "refused" if "Permission" in str(error) else str(error))


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_reads_nothing_and_sends_nothing() -> None:
    with TemporaryDirectory() as place:
        directory = Path(place) / "m"
        directory.mkdir()
        for each in (Path(place), directory):
            each.chmod(0o777)  # as careless as a directory can be
        with write_a_life(directory):
            said = run(look, directory).said
    assert [each[1] for each in said] == ["refused"] * 7, said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("theirs", ["the file", "the inbox", "both"])
def test_a_command_of_another_user_is_not_carried_out(tmp_path: Path, theirs: str) -> None:
    directory = tmp_path / "m"
    directory.mkdir()
    sent = send_command(directory, "archive", {"text": "wire it to Mallory"}, HandClock())
    for path in (directory / "inbox" / f"{sent}.json", directory / "inbox")[
        theirs == "the inbox" : 1 + (theirs != "the file")
    ]:
        os.chown(path, NOBODY, NOBODY)
    directory.chmod(0o777)
    assert pending_commands(directory) == []
    with open_memory(directory) as memory:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert memory.process_inbox() == 0
        assert memory.inspect.newest_facts() == []
        assert f"it belongs to the user {NOBODY}" in memory.ledger(events=["error"])[0].reason
    if theirs != "the file":
        with pytest.raises(PagerError, match="it belongs to the user"):
            send_command(directory, "archive", {"text": "a secret"}, HandClock())


def test_a_directory_that_is_shared_by_design_stays_shared(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with open_memory(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


# --- synced


def test_what_is_renamed_into_a_directory_is_there_after_a_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: (synced.append(str(Path(f"/proc/self/fd/{file}").readlink())), fsync(file))
    )

    def in_it(name: str = "") -> str:
        return str(tmp_path / name).rstrip("/")

    open_memory(tmp_path / "home" / "m").close()
    assert {in_it(), in_it("home"), in_it("home/m")} <= set(synced)
    synced.clear()
    sent = send_command(tmp_path / "home" / "m", "archive", {"text": "a fact"}, HandClock())
    assert synced == [in_it("home/m"), in_it(f"home/m/inbox/{sent}.tmp"), in_it("home/m/inbox")]
    Home(tmp_path / "home").read("m").export(tmp_path / "export.db")
    synced.clear()
    Home(tmp_path / "home").import_file(tmp_path / "export.db", "back")
    assert in_it("home/.back.import/pager.db") in synced
    assert synced[-1] == in_it("home")


# --- address space

LIMITED = """
import json, resource, sys
from pathlib import Path
limit = int(sys.argv[2]) << 20
from pager import Memory, PagerError
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    with Memory.open(Path(sys.argv[1]), embedder=Words() if sys.argv[3] == "words" else "default") as memory:
        memory.archive("prefers window seats", key="seat")
        hits = [hit.text for hit in memory.search_archive("window seats")]
        memory.record("user", "the train leaves at nine")
        hits += [memory.page_text(hit.page_id) for hit in memory.search_recall("train")]
        reasons = [move.reason for move in memory.ledger(events=["embedder", "index"])]
        print(json.dumps([hits, reasons]))
except PagerError as error:
    print(json.dumps(str(error)))
"""


def limited(directory: Path, megabytes: int, embedder: str) -> Any:
    code = LIMITED.replace("\nfrom pager import", "\nfrom tests.support.embedders import Words\nfrom pager import")
    code = code if embedder == "words" else LIMITED  # which loads numpy later
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory), str(megabytes), embedder], capture_output=True, text=True,
        cwd=ROOT, timeout=HANGS_AFTER_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [120, 200, 300])
def test_too_little_address_space_to_open_is_an_error_that_says_so(tmp_path: Path, megabytes: int) -> None:
    said = limited(tmp_path, megabytes, "default")
    if megabytes < 300 or isinstance(said, str):  # what it needs grows with the cores
        assert f"limited to {megabytes} MB" in said
        assert "Raise the limit (ulimit -v)" in said


@pytest.mark.slow
@pytest.mark.parametrize("embedder", ["default", "words"])
def test_too_little_for_the_embedder_or_the_index_leaves_words_and_the_reason(tmp_path: Path, embedder: str) -> None:
    if embedder == "words":
        write_a_life(tmp_path).close()
    megabytes = 440 + 40 * (os.cpu_count() or 1)
    hits, reasons = limited(tmp_path, megabytes, embedder)
    assert {"prefers window seats", "the train leaves at nine"} <= set(hits)
    what = "the default embedder" if embedder == "default" else "the vector index"
    assert f"too little address space for {what}" in str(reasons)
