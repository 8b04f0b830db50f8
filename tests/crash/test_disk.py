"""A disk that is full, takes no writes, or has lost bytes: a clear error, and nothing acknowledged is lost."""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from pager import MemoryReader, PagerError, StorageError
from tests.crash.children import Life, run, say
from tests.crash.full_disk import fill_up
from tests.crash.load import open_memory, scripted, write_pairs
from tests.crash.witness import Witness, goes_on
from tests.support.embedders import Words

WAY_BACK = r"damaged.*[Rr]estore a backup"
NOBODY = 65_534
EVERY_CALL = {
    "open", "record", "record_many", "archive", "forget", "pin", "core", "move_to_archive", "search", "user", "request",
    "reply", "begin", "result", "tool", "interrupt", "leave", "inbox", "unpin", "export", "purge",
}  # fmt: skip


# --- full


@pytest.mark.parametrize("reopening", [False, True], ids=["the same process", "reopened"])
@pytest.mark.parametrize("kind", ["file limit", "tmpfs"])
def test_every_call_on_a_disk_with_any_free_space(
    tmp_path: Path, kind: str, reopening: bool
) -> None:  # fmt: skip
    """Where a tmpfs may not be mounted, the second kind is the first once more."""
    life = run(fill_up, tmp_path / "disk", kind, reopening)
    (failures,) = life.said[-1]
    assert failures.keys() == EVERY_CALL, "each has failed at least once"


# --- read-only


@pytest.fixture
def written() -> Iterator[Path]:
    """A directory of an agent that anybody may reach: what root may do proves nothing, so somebody else tries."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "agent"
        with open_memory(directory) as memory:
            memory.archive("prefers window seats", key="seat")
            memory.append_user("hello")
        Path(place).chmod(0o755)
        yield directory
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o700)


def visit(directory: Path) -> None:
    """As somebody who is not root: try to own it, then read it."""
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        open_memory(directory).close()
        say("open", "opened", "")
    except StorageError as error:
        say("open", type(error).__name__, str(error))
    try:
        reader = MemoryReader.open(directory, embedder=Words())
        fact, message = reader.inspect.newest_facts(1)[0].text, reader.search_recall("", limit=1)[0].text
        found = reader.search_archive(fact)[0].text
        assert found == fact
        say("read", fact, message)
    except StorageError as error:
        say("read", type(error).__name__, str(error))


def take_rights(directory: Path, *, folder: int, file: int) -> None:
    for path in directory.rglob("*"):
        path.chmod(folder if path.is_dir() else file)
    directory.chmod(folder)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("folder", "file", "database"),
    [(0o555, 0o444, 0o444), (0o777, 0o666, 0o444), (0o755, 0o000, 0o000)],
    ids=["a directory that may not be written", "a database that may not be written", "files that may not be read"],
)
def test_rights_that_are_missing(written: Path, folder: int, file: int, database: int) -> None:
    before = contents(written)
    take_rights(written, folder=folder, file=file)
    (written / "pager.db").chmod(database)
    opening, reading = run(visit, written).said
    assert opening[:2] == ["open", "StorageError"]
    assert "rights" in opening[2]
    if database:
        assert reading == ["read", "prefers window seats", "hello"]
    else:
        assert reading[:2] == ["read", "StorageError"]
        assert "rights" in reading[2]
    after = contents(written)
    assert after == before if folder == 0o555 else after["pager.db"] == before["pager.db"]
    take_rights(written, folder=0o777, file=0o666)
    assert run(visit, written).said[0] == ["open", "opened", ""]


def test_what_a_killed_owner_left_in_a_directory_that_became_read_only() -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "agent"
        life = Life(write_pairs, directory, 3)
        life.until("page")
        life.kill()
        Path(place).chmod(0o755)
        assert (directory / "pager.db-wal").stat().st_size > 0
        take_rights(directory, folder=0o555, file=0o444)
        life = run(visit, directory)
        assert life.said[0][1] == "StorageError"
        assert life.said[1] == ["read", "right 2", "are you there?"]
        take_rights(directory, folder=0o700, file=0o600)
        with open_memory(directory, embedder=None) as memory:
            assert len(memory.inspect.newest_facts()) == 6
            goes_on(memory)


# --- damaged


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Witness]:
    """A memory after a full life, and what it must know. Not to be touched: use a copy."""
    directory = tmp_path_factory.mktemp("well") / "agent"
    life = run(scripted, directory, 0, "before")
    witness = Witness()
    witness.hear(life.said)
    return directory, witness


def use(directory: Path, witness: Witness) -> str:
    """Open it, hold it against what it must know, go on: what became of that."""
    try:
        memory = open_memory(directory, life=3)
    except PagerError as error:
        return f"{type(error).__name__}: {error}"
    with memory:
        problems = memory.check()
        if problems:
            return f"check: {problems[0].text}"
        witness.judge(memory)
    return "as it was"


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.001, 0.02, 0.1, 0.5, 0.9, 0.999, 1.0])
def test_a_database_that_was_cut_is_never_taken_for_a_new_one(
    well: tuple[Path, Witness], tmp_path: Path, share: float
) -> None:
    directory = shutil.copytree(well[0], tmp_path / "agent")
    file = directory / "pager.db"
    cut = file.read_bytes()[: int(file.stat().st_size * share)]
    file.write_bytes(cut)
    outcome = use(directory, well[1])
    # "as it was": the log still had what was cut off, and `use` has held everything against the witness.
    assert outcome.startswith(("StorageError", "check", "as it was") if share < 1 else "as it was")  # 1: a backup
    if outcome.startswith("StorageError"):
        assert re.search(WAY_BACK, outcome), outcome
        assert file.read_bytes() == cut, "it is left as it is"
        assert not list(directory.glob("pager.db-*"))


def test_a_database_with_other_bytes_is_told_from_a_good_one(well: tuple[Path, Witness], tmp_path: Path) -> None:
    whole = (well[0] / "pager.db").read_bytes()
    random, pages = Random(5), len((well[0] / "pager.db").read_bytes()) // 4_096
    outcomes = set()
    for number in [0, *random.sample(range(1, pages), 40)]:
        directory = shutil.copytree(well[0], tmp_path / str(number))
        noise = random.randbytes(4_096)
        harmed = whole[: number * 4_096] + noise + whole[(number + 1) * 4_096 :]
        (directory / "pager.db").write_bytes(harmed)
        outcome = use(directory, well[1])
        if outcome.startswith("StorageError"):
            assert re.search(WAY_BACK, outcome), outcome
            assert (directory / "pager.db").read_bytes() == harmed
        assert not outcome.startswith("as it was"), f"page {number}"
        outcomes.add(outcome.partition(":")[0])
    assert outcomes == {"StorageError", "check"}


def test_a_reader_says_the_same_of_a_damaged_database(well: tuple[Path, Witness], tmp_path: Path) -> None:
    directory = shutil.copytree(well[0], tmp_path / "agent")
    for content in (b"", b"SQLite format 3\0" + bytes(84), b"nothing of the kind" * 1_000):
        (directory / "pager.db").write_bytes(content)
        with pytest.raises(StorageError, match=WAY_BACK):
            MemoryReader.open(directory, embedder=Words())
        assert (directory / "pager.db").read_bytes() == content


def test_the_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "home" / "agent"
    with open_memory(directory):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / "lock").stat().st_mode) == 0o600
        with MemoryReader.open(directory, embedder=Words()) as reading:
            reading.export(tmp_path / "copy")
        assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
