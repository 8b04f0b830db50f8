"""Whatever happens to the index, or to those who build it: every fact is found, and the next build mends it."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from pager import Memory, StorageError
from pager.vectors.chroma import build as build_module
from pager.vectors.index import Generation
from tests.crash.children import Life, run
from tests.crash.index_life import build_on_a_full_disk, build_with_a_frozen_child, live_until, take_over
from tests.support import Words
from tests.support.indexed import (
    FACTS,
    archive,
    build,
    indexing_of,
    is_asked,
    lost,
    names_in,
    open_memory,
    open_reader,
    told,
)


def assert_mended(directory: Path, memory: Memory, generation: str = "g2") -> None:
    memory.check()
    build(memory)
    assert is_asked(memory)
    assert lost(memory) == []
    assert (memory.check(), names_in(directory / "chroma")) == ([], {"state.json", generation})


# kill -9


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_death_between_steps_of_building_and_publishing(well: Path, tmp_path: Path, every: bool) -> None:
    found: list[str] = []
    for deadly_step in count(1, 1 if every else 7):
        directory = shutil.copytree(well, tmp_path / str(deadly_step))
        ended = run(live_until, directory, deadly_step).signal
        if ended == 0:
            break
        assert ended == signal.SIGKILL
        life = run(take_over, directory)
        ((generation, names),) = life.said
        found.append(generation)
        assert life.signal == 0
        assert names == {"state.json", "g3" if generation == "g2" else "g2"}
    assert found == ["g1"] * found.count("g1") + ["g2"] * found.count("g2"), "replacing state.json is what publishes"
    assert set(found) == {"g1", "g2"}


def test_a_child_that_ends_too_early_leaves_nothing_and_is_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pager.vectors.indexing.RETRY_S", 0)
    program = build_module._RUN
    with open_memory(directory) as memory:
        archive(memory, FACTS + 1, FACTS + 1)
        for last_words, reason in (
            ("import os; os.kill(os.getpid(), 9)", "building the index ended with -9: no message"),
            ("import sys; sys.exit('no such luck')", "building the index ended with 1: no such luck"),
            (f"from tests.crash.index_life import die_at; die_at(6); {program}", "building the index ended with -9"),
        ):
            monkeypatch.setattr(build_module, "_RUN", f"import sys; sys.path.append(sys.argv[1]); {last_words}")
            indexing_of(memory)._embedding.log_again()
            memory.compact()
            assert reason in told(memory)[-1]
            assert names_in(directory / "chroma") == {"state.json", "g1"}
            assert lost(memory, range(1, FACTS + 2, 7)) == []
            assert is_asked(memory)
        monkeypatch.setattr(build_module, "_RUN", program)
        with monkeypatch.context() as patch:
            patch.setenv("ALLOW_RESET", "perhaps")  # chromadb cannot even be imported
            indexing_of(memory)._embedding.log_again()
            memory.compact()
            assert "building the index ended with 1: ValidationError: " in told(memory)[-1]
        memory.compact()
        assert names_in(directory / "chroma") == {"state.json", "g2"}
        assert lost(memory, range(1, FACTS + 2, 7)) == []


def test_a_child_ends_with_its_parent(directory: Path) -> None:
    life = Life(build_with_a_frozen_child, directory)
    said = life.next()
    assert said is not None
    child = os.pidfd_open(said[0])
    life.kill()
    os.kill(said[0], signal.SIGCONT)
    assert select.select([child], [], [], 60)[0], "it lives on"
    os.close(child)
    with open_memory(directory) as memory:
        assert lost(memory, range(1, FACTS + 2, 7)) == []
        memory.compact()
        assert_mended(directory, memory)
    # From another directory, without an environment: it runs wherever this package was imported from.
    command = [sys.executable, "-P", "-c", build_module._RUN, str(Path(build_module.__file__).parents[3])]
    plan = Generation("words-1 32", FACTS, 0, 0, "g7").to_json()
    order = {"plan": plan, "database": str(directory / "pager.db"), "directory": str(directory / "g7")}
    for given, said in ((b"", b"its parent is gone"), (json.dumps(order).encode() + b"\n", b"")):
        done = subprocess.run(command, input=given, capture_output=True, check=False, cwd="/", env={})
        assert (done.returncode, done.stderr.strip(), done.stdout) == (1, said, b"")


# files


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    """Some bits, and the file's time stays: as a disk does it."""
    times, content = path.stat(), bytearray(path.read_bytes())
    for place in Random(1).sample(range(len(content)), min(40, len(content))):
        content[place] ^= 0x55
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def grow(path: Path) -> None:
    os.truncate(path, 10**12)  # sparse: costs nothing


@pytest.mark.parametrize("tear", [cut, flip, grow, Path.unlink])
def test_a_torn_file_is_told_and_costs_no_fact(well: Path, tmp_path: Path, tear: Callable[[Path], None]) -> None:
    names = [str(path.relative_to(well)) for path in (well / "chroma/g1").rglob("*") if path.is_file()]
    assert len(names) > 4
    for number, name in enumerate(names):
        directory = shutil.copytree(well, tmp_path / str(number))
        tear(directory / name)
        with open_reader(directory) as reader:
            assert lost(reader) == []
            assert not is_asked(reader)
        with open_memory(directory) as memory:
            assert lost(memory) == []
            [reason] = told(memory)[1:]
            assert name.rpartition("/")[2] in reason
            assert memory.has_background_work
            if name == names[0]:
                build(memory)
                assert_mended(directory, memory)


@pytest.mark.parametrize(
    "change",
    [b"", b"[]", b"null", b'{"name": "g1"}', b"\xff\x00", {"name": "../g1"}, {"name": "g1/../g1"}, {"name": "g99"},
     {"through": "9"}, {"format": 1}, {"x": 1}, {"files": []}, {"files": {"x": 5}}, {"through": 2**70},
     {"moment": 2**64}, b"[" * 100_000, {"name": "g" + "9" * 5000}],
)  # fmt: skip
def test_a_state_that_makes_no_sense_is_none(directory: Path, change: bytes | dict[str, Any]) -> None:
    state = directory / "chroma/state.json"
    whole = json.loads(state.read_text())
    state.write_bytes(change if isinstance(change, bytes) else json.dumps(whole | change).encode())
    with open_memory(directory) as memory:
        assert lost(memory, range(1, FACTS, 9)) == []
        assert not is_asked(memory)
        assert memory.has_background_work
        if change in (b"", {"name": "g99"}):
            assert_mended(directory, memory, "g1" if change == b"" else "g100")


@pytest.mark.parametrize("what", ["missing", "a file", "state is a directory", "state is gone"])
def test_what_stands_where_its_files_should_be_is_removed(directory: Path, what: str) -> None:
    root = directory / "chroma"
    if what in ("missing", "a file"):
        shutil.rmtree(root)
        if what == "a file":
            root.write_text("not a directory")
    else:
        (root / "state.json").unlink()
        if what == "state is a directory":
            (root / "state.json" / "more").mkdir(parents=True)
    with open_memory(directory) as memory:
        assert lost(memory) == []
        if what in ("a file", "state is a directory"):
            assert_mended(directory, memory, "g1")


def test_another_embedder_finds_every_fact_and_the_first_one_does_again(directory: Path) -> None:
    for number, (name, dimension) in enumerate((("words-2", 24), ("words-1", 32), ("words-2", 24)), start=1):
        with open_memory(directory, embedder=Words(name, dimension)) as memory:
            archive(memory, FACTS + number, FACTS + number)
            while memory._backlog._sources[0].count_pending():
                memory.embed_pending(100)
            assert lost(memory, range(1, FACTS + number + 1, 7)) == []
            if number > 1:  # the first one's generation is there when it comes back
                assert_mended(directory, memory, f"g{number}")
            assert lost(memory, range(1, FACTS + number + 1, 7)) == []


def test_a_full_disk_costs_no_fact(well: Path, tmp_path: Path) -> None:
    directory = shutil.copytree(well, tmp_path / "agent", ignore=lambda *_: ["chroma"])
    life = run(build_on_a_full_disk, directory)
    assert life.said == [[2, {"state.json", "g1"}]]


def test_an_older_database_never_asks_the_index_of_a_newer_one(directory: Path, tmp_path: Path) -> None:
    shutil.copy(directory / "pager.db", tmp_path / "older.db")
    with open_memory(directory) as memory:
        archive(memory, FACTS + 1, 2 * FACTS)
        secret = memory.archive("the wholly secret sentence")
        memory.archive("note: the wholly secret sentence, and more")
        memory.purge(secret.id)  # the last vector is of a rewritten fact
        build(memory)
        assert is_asked(memory)
    for file in directory.glob("pager.db*"):
        file.unlink()
    shutil.copy(tmp_path / "older.db", directory / "pager.db")
    with open_memory(directory) as memory:
        assert not is_asked(memory)


# trouble while it runs


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a transaction"])
def test_an_index_that_fails_in_use_is_told_once_and_built_anew(
    directory: Path, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: object, **__: object) -> None:
        raise PanicException("explicit panic")

    with open_memory(directory) as memory:
        opened = indexing_of(memory).open()
        assert opened is not None
        with monkeypatch.context() as patch:
            patch.setattr(opened[1], "_native", SimpleNamespace(query=panic))
            if within:
                with memory.transaction():
                    assert lost(memory) == []
            assert lost(memory) == []
        assert [line for line in told(memory) if "PanicException: explicit panic" in line] == told(memory)[1:]
        assert_mended(directory, memory)


def test_a_purge_leaves_nothing_behind_a_link(directory: Path, tmp_path: Path) -> None:
    (directory / "chroma").rename(tmp_path / "elsewhere")
    (directory / "chroma").symlink_to(tmp_path / "elsewhere")
    with open_memory(directory) as memory:
        assert is_asked(memory)
        memory.purge("f5")
        assert names_in(tmp_path / "elsewhere") == set()


def test_a_purge_is_not_over_before_the_index_is_gone(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with open_memory(directory) as memory:
        with monkeypatch.context() as patch:
            patch.setattr("pager.vectors.chroma.places._remove", refused)
            with pytest.raises(StorageError, match=r"has begun.*Permission denied.*finishes it"):
                memory.purge("f5")
        assert memory.purge("f5") == 0
        assert names_in(directory / "chroma") == set()


def test_a_build_that_failed_is_tried_again_without_another_fact(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(directory) as memory:
        archive(memory, FACTS + 1, 2 * FACTS)
        with monkeypatch.context() as patch:
            patch.setattr(build_module, "_RUN", "import sys; sys.exit('no such luck')")
            memory.embed_pending()
        assert not memory.has_background_work
        indexing_of(memory)._retry_at = 0.0  # a minute later
        assert memory.has_background_work
        build(memory)
        assert names_in(directory / "chroma") == {"state.json", "g2"}
