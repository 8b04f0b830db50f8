"""Whatever happens to the index's files, opening it leaves it complete, and the process alive."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pager.vectors.chroma.client import Collection
from pager.vectors.chroma.files import IndexDirectory
from pager.vectors.chroma.index import ChromaIndex
from pager.vectors.chroma.probe import probe
from pager.vectors.index import IndexUnavailableError, OpenReport
from tests.contract.vector_sources import MemorySource, unit_vectors
from tests.crash.children import Life, run
from tests.crash.index_life import assert_complete, bring_up, live_on, live_until, take_over

FLUSHED, LOGGED = 300, 40


def source() -> MemorySource:
    return MemorySource.of(FLUSHED + LOGGED)


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that was compacted, extended and closed. Not to be touched: use a copy."""
    root = tmp_path_factory.mktemp("well") / "index"
    begun = MemorySource.of(FLUSHED)
    index = ChromaIndex(root, begun)
    index.open()
    begun.vectors = source().vectors
    index.extend()
    index.close()
    return root


@pytest.fixture
def root(well: Path, tmp_path: Path) -> Path:
    return shutil.copytree(well, tmp_path / "index")


def live(root: Path) -> Path:
    return root / json.loads((root / "state.json").read_text())["live"]


def mark_as_open(root: Path) -> None:
    """Leave it as a process that died does."""
    state = json.loads((root / "state.json").read_text())
    (root / "state.json").write_text(json.dumps(state | {"clean": False}))


def taken_over(root: Path, count: int) -> OpenReport:
    """Open it in another process, which must live: this one would fall with it."""
    life = run(take_over, root, count)
    ((report,),) = life.said
    assert life.signal == 0
    return report


# --- what a healthy index does, and what it leaves alone


def test_a_clean_index_is_reused_without_a_probe(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = root.parent / "copy"
    shutil.copytree(root, copy, copy_function=shutil.copyfile)  # without its times
    with monkeypatch.context() as patch:
        patch.setattr("pager.vectors.chroma.probe.probe", lambda *_: pytest.fail("probed"))
        assert bring_up(copy, source()) == OpenReport("reused", "closed cleanly")
    mark_as_open(root)
    assert bring_up(root, source()) == OpenReport("reused", "not closed cleanly, probed")


def test_the_live_generation_is_never_flushed(tmp_path: Path) -> None:
    vectors = MemorySource.of(1_500)
    index = ChromaIndex(tmp_path, vectors)
    index.open()
    flushed = json.loads((tmp_path / "state.json").read_text())["flushed"]
    assert any(name.endswith("index_metadata.pickle") for name in flushed)
    for _ in range(2):  # a threshold is counted per process: once as built, once as opened
        vectors.grow(1_500)
        index.extend()
        index.close()
        index.open()
        state = IndexDirectory(tmp_path).load()
        assert state is not None
        assert IndexDirectory(tmp_path).altered(state) is None
    assert log_entries(tmp_path) >= 3_000
    index.compact()
    assert log_entries(tmp_path) <= 1  # Chroma keeps the last one
    assert index.pending_replay() == 0
    assert_complete(index, vectors)
    index.close()


def log_entries(root: Path) -> int:
    with closing(sqlite3.connect(live(root) / "chroma.sqlite3")) as database:
        return database.execute("SELECT count(*) FROM embeddings_queue").fetchone()[0]


def test_cleared_it_keeps_no_byte_of_what_is_gone(root: Path) -> None:
    vectors = source()
    (root / "quarantine-1").mkdir()
    purged = [vectors.vectors.pop(each).tobytes() for each in (5, FLUSHED + 5)]
    (root / "quarantine-1" / "old").write_bytes(purged[0])
    assert all(any(part in file.read_bytes() for file in _files(root)) for part in purged)
    index = ChromaIndex(root, vectors)
    index.open()
    index.clear()
    assert {entry.name for entry in root.iterdir()} == set()
    index.open()
    index.close()
    assert not any(part in file.read_bytes() for file in _files(root) for part in purged)
    assert {entry.name for entry in root.iterdir()} == {"state.json", live(root).name}
    assert [path.stat().st_mode & 0o777 for path in (root, live(root))] == [0o700, 0o700]


def _files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


# --- torn files


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    """Some bits, and the file's time stays: as a disk does it."""
    times, content = path.stat(), bytearray(path.read_bytes())
    for place in random.Random(1).sample(range(len(content)), min(40, len(content))):
        content[place] ^= 0x55
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def grow(path: Path) -> None:
    os.truncate(path, 10**12)  # sparse: costs nothing


FILES = ["header.bin", "length.bin", "link_lists.bin", "data_level0.bin", "index_metadata.pickle", "chroma.sqlite3"]


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "not-closed"])
@pytest.mark.parametrize("tear", [cut, empty, flip, grow, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_a_torn_file_is_found_and_the_index_rebuilt(
    root: Path, name: str, tear: Callable[[Path], None], clean: bool
) -> None:
    [path] = live(root).rglob(name)
    if not clean:
        mark_as_open(root)
    tear(path)
    report = taken_over(root, FLUSHED + LOGGED)
    assert report.outcome == "rebuilt"
    assert (report.quarantine is None) == (tear is grow)
    assert taken_over(root, FLUSHED + LOGGED) == OpenReport("reused", "closed cleanly")


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "not-closed"])
@pytest.mark.parametrize("tear", [cut, empty, flip, Path.unlink])
def test_an_index_that_never_was_compacted_may_be_torn_too(
    tmp_path: Path, tear: Callable[[Path], None], clean: bool
) -> None:
    vectors = MemorySource()
    index = ChromaIndex(tmp_path, vectors)
    index.open()
    vectors.grow(160, seed=0)
    index.extend()
    index.close()
    if not clean:
        mark_as_open(tmp_path)
    # Chroma made these before anything was flushed, and replays its log whatever is in them.
    for path in [path for path in _files(live(tmp_path)) if path.suffix == ".bin"]:
        tear(path)
    assert taken_over(tmp_path, 160).outcome == ("rebuilt" if clean else "reused")


@pytest.mark.parametrize(
    "change",
    [b"", b"{", b"[]", b"null", b'{"live": "g1"}', b"\xff\x00", {"live": "../g1"}, {"live": "g99"}, {"through": "9"},
     {"format": 2}, {"x": 1}],
)  # fmt: skip
def test_a_state_that_makes_no_sense_is_no_state(root: Path, change: bytes | dict[str, Any]) -> None:
    state = json.loads((root / "state.json").read_text())
    content = change if isinstance(change, bytes) else json.dumps(state | change).encode()
    (root / "state.json").write_bytes(content)
    assert bring_up(root, source()).outcome == "rebuilt"


def test_a_directory_that_is_gone_is_made_again(root: Path) -> None:
    shutil.rmtree(live(root))
    assert bring_up(root, source()) == OpenReport("rebuilt", "the index is missing")
    shutil.rmtree(root)
    assert bring_up(root, source()).outcome == "rebuilt"


def test_one_broken_index_is_kept_and_no_more(root: Path) -> None:
    for _ in range(3):
        [path] = live(root).rglob("header.bin")
        cut(path)
        report = bring_up(root, source())
        assert report.quarantine is not None
        assert [entry.name for entry in root.glob("quarantine-*")] == [report.quarantine]


# --- trouble while it runs


def test_rust_panics_and_disk_errors_are_index_unavailable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: object, **__: object) -> None:
        raise PanicException("explicit panic")

    index = ChromaIndex(root, source())
    index.open()
    with monkeypatch.context() as patch:
        patch.setattr("chromadb.Collection.query", panic)
        with pytest.raises(IndexUnavailableError, match="PanicException: explicit panic"):
            index.query(unit_vectors(1)[0], 3)
        assert index.through() == 0
    with monkeypatch.context() as patch:
        patch.setattr(IndexDirectory, "load", lambda _: (_ for _ in ()).throw(OSError(28, "no space left")))
        with pytest.raises(IndexUnavailableError, match="no space left"):
            index.open()
    index.close()
    assert bring_up(root, source()).outcome == "reused"


def test_after_trouble_the_next_opening_looks_and_it_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, vectors = ChromaIndex(root, source()), source()
    index.open()
    reasons: list[str] = []
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr("chromadb.Collection.query", lambda *_, **__: 1 / 0)
            with pytest.raises(IndexUnavailableError, match="ZeroDivisionError"):
                index.query(unit_vectors(1)[0], 3)
        reasons.append(index.open().reason)
        assert_complete(index, vectors)
    assert reasons == ["not closed cleanly, probed", "it failed again after it was found good"]
    index.close()


def test_an_index_that_cannot_be_opened_is_left_in_peace_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, vectors = [0.0], source()
    above = tmp_path / "above"
    above.write_text("a file where its directory should be")
    index = ChromaIndex(above / "index", vectors, retry_after_s=60, monotonic=lambda: now[0])
    for _ in range(2):
        with pytest.raises(IndexUnavailableError, match="could not open the index"):
            index.open()
        above.unlink(missing_ok=True)
        now[0] += 59
    now[0] += 1
    index.open()
    assert_complete(index, vectors)
    index.close()


def test_a_compaction_that_fails_leaves_everything_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, vectors = ChromaIndex(root, source()), source()
    index.open()
    before = live(root)
    for owner, name in [(Collection, "create"), (Collection, "never_flush"), (IndexDirectory, "sync")]:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *_: (_ for _ in ()).throw(OSError(28, "no space left")))
            with pytest.raises(IndexUnavailableError, match="no space left"):
                index.compact()
        assert_complete(index, vectors)
    assert {entry.name for entry in root.iterdir()} == {"state.json", before.name}
    index.compact()
    assert_complete(index, vectors)
    index.close()


def test_the_probe_says_what_it_found(root: Path) -> None:
    assert probe(live(root), 16) == FLUSHED + LOGGED
    with pytest.raises(IndexUnavailableError, match="took over 0 s"):
        probe(live(root), 16, timeout_s=0)
    with pytest.raises(IndexUnavailableError, match="ended a child process with 1: "):
        probe(root / "nothing", 16)


# --- kill -9


def test_death_between_any_two_steps(tmp_path: Path) -> None:
    outcomes: list[str] = []
    for deadly_step in count(1):
        root = tmp_path / str(deadly_step)
        ended = run(live_until, root, deadly_step).signal
        if ended == 0:
            break
        assert ended == signal.SIGKILL
        report = taken_over(root, 160)
        assert report.quarantine is None, f"step {deadly_step}: {report}"
        assert {entry.name for entry in root.iterdir()} == {"state.json", live(root).name}
        outcomes.append(report.outcome)
    # One build, one late vector and one purge lose the index when they die; the rest must not.
    assert outcomes.count("reused") > len(outcomes) / 3


@pytest.mark.parametrize("acts", [1, 2, 5, 6, 7, 8, 12, 13, 14, 19])
def test_death_at_any_moment(tmp_path: Path, acts: int) -> None:
    child = Life(live_on, tmp_path)
    for _ in range(acts):
        child.next()
    (vectors,) = child.said[-1]
    child.kill()
    assert taken_over(tmp_path, vectors).quarantine is None
