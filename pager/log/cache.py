"""The directories in which this process works with agents whose truth is elsewhere. Each is deleted when it is closed.

They are in one directory of this process, below one of this user, which nobody else can enter. What a killed process
left is deleted by the next one: the directory of a process is in use for as long as the kernel holds the lock on it.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from pager.errors import StorageError
from pager.safety import foreign_files

USED = "used"  # the file that is locked


def root() -> Path:
    """Return the directory of all of them. It may not exist yet."""
    return Path(tempfile.gettempdir()) / f"selfpager-{os.geteuid()}"


class _OwnDirectory:
    """The directory of this process, for as long as it has a cache: one lock, and one descriptor, for all of them."""

    def __init__(self) -> None:
        above = root()
        above.mkdir(mode=0o700, exist_ok=True)
        if above.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, "it is a link")
        foreign_files.refuse_others(above, above.stat())
        above.chmod(0o700)
        with _alone(above):  # or another process deletes the directory before it is locked
            _remove_unused(above)
            self.path = Path(tempfile.mkdtemp(prefix="", dir=above))
            self._lock = _locked(self.path)
        self.process = os.getpid()
        self.caches = 0

    @property
    def is_usable(self) -> bool:
        """Return False in a forked child, and when somebody has cleaned up what is temporary."""
        return self.process == os.getpid() and self.path.is_dir()

    def close(self) -> None:
        """Delete it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


class Cache:
    """An empty directory, from construction to `close`."""

    _own: _OwnDirectory | None = None  # of the class: a process has one
    _using = Lock()

    def __init__(self) -> None:
        try:
            with Cache._using:
                own = Cache._own
                if own is None or not own.is_usable:
                    own = Cache._own = _OwnDirectory()
                self.path = Path(tempfile.mkdtemp(prefix="", dir=own.path))
                own.caches += 1
                self._of = own
        except OSError as error:
            way = "Choose another one with TMPDIR"
            raise StorageError(f"no directory can be made in {root()} ({error.strerror}). {way}.") from None
        self._is_closed = False

    def close(self) -> None:
        """Delete the directory."""
        if self._is_closed or self._of.process != os.getpid():
            return
        self._is_closed = True
        shutil.rmtree(self.path, ignore_errors=True)
        with Cache._using:
            self._of.caches -= 1
            if not self._of.caches:
                self._of.close()
                Cache._own = None if Cache._own is self._of else Cache._own


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """Let no other process into this block meanwhile."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(opened, fcntl.LOCK_UN)  # a child that was forked just now has it open, too
        os.close(opened)


def _locked(directory: Path) -> int:
    file = os.open(directory / USED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(file)
        raise
    return file


def _remove_unused(above: Path) -> None:
    for each in above.iterdir():
        with suppress(OSError):  # in use, or its owner has just deleted it
            lock = _locked(each)
            shutil.rmtree(each, ignore_errors=True)
            os.close(lock)
