"""Whatever happens to the index or its process, opening it leaves it complete. (Torn files: test_memory_index.)"""

import json
import shutil
import signal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pager.vectors.chroma import index as chroma_index
from pager.vectors.chroma.client import Collection
from pager.vectors.chroma.index import ChromaIndex
from pager.vectors.index import IndexUnavailableError
from tests.contract.vector_sources import MemorySource, unit_vectors
from tests.crash.children import run
from tests.crash.index_life import assert_complete, bring_up, live_until, take_over

COUNT = 300


def source() -> MemorySource:
    return MemorySource.of(COUNT)


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that was built and closed. Not to be touched: use a copy."""
    root = tmp_path_factory.mktemp("well") / "index"
    ChromaIndex(root, source()).open().close()
    return root


@pytest.fixture
def root(well: Path, tmp_path: Path) -> Path:
    return shutil.copytree(well, tmp_path / "index", copy_function=shutil.copyfile)  # without its times


def live(root: Path) -> Path:
    return root / json.loads((root / "state.json").read_text())["live"]


def taken_over(root: Path, count: int) -> str:
    """Open it in another process, which must live: this one would fall with it."""
    life = run(take_over, root, count)
    ((reason,),) = life.said
    assert life.signal == 0
    return reason


def test_cleared_it_keeps_no_byte_of_what_is_gone(root: Path) -> None:
    vectors = source()
    purged = vectors.vectors.pop(5).tobytes()
    assert any(purged in file.read_bytes() for file in _files(root))
    index = ChromaIndex(root, vectors)
    index.clear()
    assert _files(root) == []
    index.open().close()
    assert not any(purged in file.read_bytes() for file in _files(root))
    assert {entry.name for entry in root.iterdir()} == {"state.json", live(root).name}
    assert live(root).stat().st_mode & 0o777 == 0o700


def _files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "change",
    [b"", b"[]", b"null", b'{"live": "g1"}', b"\xff\x00", {"live": "../g1"}, {"live": "g99"}, {"through": "9"},
     {"format": 1}, {"x": 1}],
)  # fmt: skip
def test_a_state_that_makes_no_sense_is_no_state(root: Path, change: bytes | dict[str, Any]) -> None:
    state = json.loads((root / "state.json").read_text())
    (root / "state.json").write_bytes(change if isinstance(change, bytes) else json.dumps(state | change).encode())
    assert bring_up(root, source()) != ""


def test_what_stands_where_its_files_should_be_is_removed(root: Path) -> None:
    (root / "state.json").unlink()
    (root / "state.json").mkdir()
    assert bring_up(root, source()) != ""
    shutil.rmtree(root)
    root.write_text("not a directory")
    assert bring_up(root, source()) != ""


# trouble while it runs


def test_rust_panics_and_disk_errors_are_index_unavailable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: object, **__: object) -> None:
        raise PanicException("explicit panic")

    index = ChromaIndex(root, source())
    opened = index.open()
    with monkeypatch.context() as patch:
        patch.setattr("chromadb.Collection.query", panic)
        with pytest.raises(IndexUnavailableError, match="PanicException: explicit panic"):
            opened.collection.query(unit_vectors(1)[0], 3)
    opened.close()
    with monkeypatch.context() as patch:
        patch.setattr(chroma_index, "_digest", lambda _: (_ for _ in ()).throw(OSError(28, "no space left")))
        with pytest.raises(IndexUnavailableError, match="no space left"):
            index.open()
    assert bring_up(root, source()) == ""


@pytest.mark.parametrize("place", ["client.Collection.__init__", "client.Collection.upsert", "index._digest"])
def test_a_build_that_fails_leaves_everything_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    index = ChromaIndex(root, source())
    opened = index.open()
    with monkeypatch.context() as patch:
        patch.setattr(f"pager.vectors.chroma.{place}", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "no space")))
        with pytest.raises(IndexUnavailableError, match="no space"):
            index.build()
    assert_complete(opened, source())
    assert {entry.name for entry in root.iterdir()} == {"state.json", live(root).name}
    opened.close()


def test_a_generation_that_lost_vectors_is_built_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([COUNT - 1])
    monkeypatch.setattr(Collection, "count", lambda _: next(counts, COUNT))
    assert bring_up(root, source()) == f"the index does not hold {COUNT} vectors"


# kill -9


def test_death_between_any_two_steps(well: Path, tmp_path: Path) -> None:
    reasons: list[str] = []
    for deadly_step in count(1):
        root = shutil.copytree(well, tmp_path / str(deadly_step))
        ended = run(live_until, root, COUNT, deadly_step).signal
        if ended == 0:
            break
        assert ended == signal.SIGKILL
        reasons.append(taken_over(root, COUNT))
        assert {entry.name for entry in root.iterdir()} == {"state.json", live(root).name}
    # Only clearing loses the index. (Here also a commit: with the new vector it is gone from the source.)
    assert reasons.count("") > len(reasons) / 2
