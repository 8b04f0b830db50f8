"""The vector index on Chroma: one directory per agent, in it the live generation and a file that describes it.

    DIRECTORY/state.json    the live generation, how far it goes, and its files' digests; replacing it commits a build
    DIRECTORY/g<n>/         a generation: a directory of Chroma's own, written by one build and then only read

The shape of this room follows from measurements on chromadb 1.5.9:

- Its HNSW flush is not atomic: a process killed in the middle leaves files that raise, grow to terabytes, or end every
  process that reads them. So a generation is written before anybody reads it, and never again. An index that lags
  behind is built anew: 1.3 s for 10,000 vectors of dimension 384, 6 s for 40,000, in a child process.
- Its native code does not validate what it reads: a flipped bit can end the process. So a generation is opened only
  when all its files have the digests of the build. Queries write to Chroma's database, so each opening begins with a
  fresh copy of the one that was built.
- A Rust panic arrives as a BaseException. It becomes IndexUnavailableError.
- Its graph comes apart among duplicates and look-alikes: beside 600 repeats of three texts none of six others was among
  the 64 nearest to itself. So it is asked only for facts that are too many to be compared (`pager.vectors.facts`).
"""

import hashlib
import json
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, cast

from pager.vectors.chroma.build import write
from pager.vectors.chroma.client import DATABASE_FILE, Collection
from pager.vectors.index import BuildCancelledError, IndexUnavailableError, Stop, VectorSource, never

FORMAT = 2
BUILT_DATABASE = "built.sqlite3"


class LiveGeneration(NamedTuple):
    """The live generation, opened. It holds every vector that the source had up to an id, and may be behind."""

    directory: Path
    collection: Collection
    through: int
    built_because: str = ""  # empty if it was there

    def close(self) -> None:
        """Release its files."""
        with suppress(IndexUnavailableError):
            self.collection.close()

    def discard(self) -> None:
        """Close it and remove its files: another one is live."""
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class ChromaIndex:
    """The generations in `directory`, which belongs to it alone. Threads that call it wait for each other."""

    def __init__(self, directory: Path, source: VectorSource) -> None:
        self._directory = directory
        self._source = source
        self._state = directory / "state.json"
        self._lock = Lock()

    def open(self, stop: Stop = never) -> LiveGeneration:
        """Open the live generation, or build one if there is none that is good."""
        with self._alone("open the index", stop):
            state = self._load()
            reason = self._why_useless(state)
            if not reason:
                live = self._directory / state["live"]
                self._remove(self._state, live)
                try:
                    return LiveGeneration(live, _opened(live, state["count"]), state["through"])
                except IndexUnavailableError as error:
                    reason = str(error)
            self._remove()
            return self._build(stop, reason)

    def build(self, stop: Stop = never) -> LiveGeneration:
        """Build a generation of all that the source has now, and make it live. The old one can still be queried."""
        with self._alone("build the index", stop):
            return self._build(stop)

    def clear(self) -> None:
        """Remove every byte of it, when other threads are done; nothing of it may be open."""
        with self._alone("remove the index"):
            self._remove()

    def wait(self) -> None:
        """Wait until no other thread is building."""
        with self._lock:
            pass

    @contextmanager
    def _alone(self, doing: str, stop: Stop = never) -> Generator[None]:
        """Wait for other threads. Raise the disk's errors as IndexUnavailableError; Chroma's are that already."""
        with self._lock:
            if stop():
                raise BuildCancelledError
            try:
                yield
            except OSError as error:
                raise IndexUnavailableError(f"could not {doing}: {error}") from error

    def _load(self) -> dict[str, Any]:
        kinds = {"format": int, "live": str, "fingerprint": str, "through": int, "count": int, "files": dict}
        with suppress(OSError, ValueError, AttributeError):
            state = cast("dict[str, Any]", json.loads(self._state.read_bytes()))
            fits = {name: type(value) for name, value in state.items()} == kinds and state["format"] == FORMAT
            if fits and re.fullmatch(r"g\d+", state["live"]):
                return state
        return {}

    def _why_useless(self, state: dict[str, Any]) -> str:
        if not state:
            return "no index yet, or no readable state"
        fingerprint, _, count = self._source.extent(state["through"])
        if state["fingerprint"] != fingerprint:
            return f"the vectors are now {fingerprint}, the index had {state['fingerprint']}"
        if state["count"] != count:
            return f"it holds {state['count']} vectors, the source has {count}"
        for name, (size, digest) in state["files"].items():
            path = self._directory / state["live"] / name
            # The size first: a torn file may have grown to terabytes.
            if not path.is_file() or path.stat().st_size != size or _digest(path) != digest:
                return f"{name} is not as it was written"
        return ""

    def _build(self, stop: Stop, reason: str = "") -> LiveGeneration:
        taken = [int(path.name[1:]) for path in self._directory.glob("g*") if path.name[1:].isdecimal()]
        directory = self._directory / f"g{max(taken, default=0) + 1}"
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
        collection = None
        try:
            # Read first: if one of them changes during the build, the next opening finds out.
            fingerprint, through, count = self._source.extent()
            write(directory, self._source, through, count, stop)
            (directory / DATABASE_FILE).rename(directory / BUILT_DATABASE)
            files = {
                path.relative_to(directory).as_posix(): (path.stat().st_size, _digest(path))
                for path in sorted(directory.rglob("*"))
                if path.is_file()
            }
            collection = _opened(directory, count)
            state = {"format": FORMAT, "live": directory.name, "fingerprint": fingerprint, "through": through}
            aside = self._state.with_suffix(".new")
            aside.write_text(json.dumps(state | {"count": count, "files": files}))
            # The real commit. A power cut may undo it or tear a file: the next opening builds it again.
            aside.replace(self._state)
        except BaseException:  # the disk may be full, or there is no time
            if collection is not None:
                collection.close()
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return LiveGeneration(directory, collection, through, reason)

    def _remove(self, *besides: Path) -> None:
        if not self._directory.is_dir():
            self._directory.unlink(missing_ok=True)
            return
        for path in set(self._directory.iterdir()).difference(besides):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _opened(directory: Path, count: int) -> Collection:
    shutil.copyfile(directory / BUILT_DATABASE, directory / DATABASE_FILE)
    collection = Collection(directory)
    if collection.count() != count:
        collection.close()
        raise IndexUnavailableError(f"the index does not hold {count} vectors")
    return collection


def _digest(path: Path) -> str:
    with path.open("rb") as file:  # 17 MB take 12 ms
        return hashlib.file_digest(file, "blake2b").hexdigest()
