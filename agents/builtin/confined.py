"""A directory that cannot be left. Every path is opened step by step from the root, and no link is followed.

Each step is one `open` in the directory before it (`dir_fd`) with O_NOFOLLOW, so what is checked is what is opened: a
link or a directory that is swapped meanwhile makes an error, never a way out. Pipes, devices and the kernel's own files
(/proc, /sys) are not opened. A hard link is the file itself: whoever could make one could have copied the file.

    >>> tree = Tree(Path("notes"), protected)
    >>> tree.read(split("plans/may.md"), limit_bytes=1_000_000)
    b'...'
"""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal

from agents.builtin.protected import Protected
from agents.tools.functions import ToolCallError
from pager import one_line
from pager.errors import brief

MAX_DEPTH = 64
MAX_ENTRIES = 20_000  # read of one directory
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe is not waited for
_CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KERNEL = frozenset({
    "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "bpf", "devpts", "pstore",
    "efivarfs", "mqueue", "binfmt_misc", "fusectl", "nsfs", "selinuxfs", "rpc_pipefs",
})  # fmt: skip
Parts = tuple[str, ...]
Kind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is in a directory. `name` is as the system has it, `shown` as a model reads and writes it."""

    name: str
    kind: Kind
    size: int
    modified: float

    @property
    def shown(self) -> str:
        """Return the name on one line, bytes that are not UTF-8 escaped."""
        return show(self.name)


def show(name: str) -> str:
    """Return a name on one line, bytes that are not UTF-8 escaped."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def split(path: str) -> Parts:
    """Return the steps of a path below the root. Raise ToolCallError if it would leave it."""
    if path.startswith("/"):
        raise ToolCallError(
            f"{brief(path, 200)} is an absolute path; write it relative to the root, such as notes/plan.md."
        )
    found: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not found:
                raise ToolCallError(f"{brief(path, 200)} leads out of the root; nothing outside of it can be reached.")
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    if len(found) > MAX_DEPTH:
        raise ToolCallError(f"{brief(path, 200)} has {len(found)} steps; at most {MAX_DEPTH} are possible.")
    if "\0" in path or any("\ud800" <= character <= "\udfff" for character in path):
        raise ToolCallError(f"{brief(path, 200)} has a character that no file name has.")
    return tuple(found)


class Tree:
    """The files below one directory."""

    def __init__(self, root: Path, protected: Protected) -> None:
        self._root = root.resolve(strict=True)
        self._protected = protected

    @contextmanager
    def directory(self, parts: Sequence[str]) -> Generator[int]:
        """Open a directory. What the system refuses, also meanwhile, is a ToolCallError."""
        try:
            descriptor = os.open(self._root, _DIRECTORY)
            try:
                refuse_kernel(descriptor)
                for part in parts:
                    descriptor = _step(descriptor, part)
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ToolCallError(_explained("/".join(parts), error)) from error

    def read(self, parts: Parts, limit_bytes: int) -> bytes:
        """Return what is in a regular file of limited size."""
        path = "/".join(parts)
        with self.directory(parts[:-1]) as descriptor:
            return read_in(descriptor, parts[-1] if parts else ".", path or ".", limit_bytes)

    def kind(self, parts: Parts) -> Kind:
        """Return what a path leads to."""
        with self.directory(parts[:-1]) as descriptor:
            return _kind(_status(descriptor, parts[-1])[1].st_mode) if parts else "directory"

    def write(self, parts: Parts, content: bytes) -> int | None:
        """Replace or create a file, at once or not at all, with its directories. Return the size of the one before."""
        path = "/".join(parts)
        if not parts:
            raise ToolCallError("path is empty; name a file.")
        if why := self._protected.reason(self._root.joinpath(*parts)):
            raise ToolCallError(f"{path} is not written: {why}.")
        with self._made(parts[:-1]) as descriptor:
            return _replace(descriptor, parts[-1], path, content)

    @contextmanager
    def _made(self, parts: Parts) -> Generator[int]:
        """Open a directory to write in it, and make what is missing of it."""
        for end in range(len(parts) + 1):
            with self.directory(parts[:end]) as descriptor:
                if _exists(descriptor, "pager.db"):
                    raise ToolCallError(f"{'/'.join(parts)} is not written: the memory of an agent is in there.")
                if end == len(parts):
                    yield descriptor
                elif not _exists(descriptor, parts[end]):
                    with suppress(FileExistsError):
                        os.mkdir(parts[end], dir_fd=descriptor)


def _exists(descriptor: int, name: str) -> bool:
    try:
        _status(descriptor, name)
    except FileNotFoundError:
        return False
    return True


def read_in(descriptor: int, name: str, path: str, limit_bytes: int) -> bytes:
    """Return what is in a regular file of an open directory."""
    name, status = _status(descriptor, name)
    _refuse_other(status, path)
    with os.fdopen(os.open(name, _READING, dir_fd=descriptor), "rb") as file:
        status = os.fstat(file.fileno())  # it may be another one by now
        _refuse_other(status, path)
        refuse_kernel(file.fileno())
        if status.st_size > limit_bytes:
            raise ToolCallError(f"{path} has {status.st_size:,} bytes; at most {limit_bytes:,} are read.")
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise ToolCallError(f"{path} grows; at most {limit_bytes:,} bytes are read.")
    return content


def entries(descriptor: int) -> tuple[list[Entry], bool]:
    """Return what is in an open directory by name, and if that is all."""
    found: list[Entry] = []
    with os.scandir(descriptor) as listed:
        for each in islice(listed, MAX_ENTRIES):
            with suppress(FileNotFoundError):  # it went meanwhile
                status = each.stat(follow_symlinks=False)
                found.append(Entry(each.name, _kind(status.st_mode), status.st_size, status.st_mtime))
        is_all = next(listed, None) is None
    return sorted(found, key=lambda entry: entry.name), is_all


def step_into(descriptor: int, name: str) -> int:
    """Return a directory in an open directory, opened. Raises OSError and ToolCallError."""
    opened = os.open(name, _DIRECTORY, dir_fd=descriptor)
    try:
        refuse_kernel(opened)
    except BaseException:
        os.close(opened)
        raise
    return opened


def refuse_kernel(descriptor: int) -> None:
    """Raise ToolCallError for what the kernel makes up, such as /proc: it has secrets, and reading may do things."""
    if kind := _kernel_filesystem(os.fstat(descriptor).st_dev):
        raise ToolCallError(f"this is in {kind}, a file system of the kernel; only files on a disk are reachable.")


def _step(descriptor: int, part: str) -> int:
    """Go on to a directory in this one, which is closed."""
    name, status = _status(descriptor, part)
    if stat.S_ISLNK(status.st_mode):
        raise ToolCallError(_about_link(descriptor, name))
    opened = step_into(descriptor, name)
    os.close(descriptor)
    return opened


def _status(descriptor: int, part: str) -> tuple[str, os.stat_result]:
    """Return the name and the status of what a model calls `part`: a name may have been shown escaped."""
    try:
        return part, os.stat(part, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        if "\\" not in part:
            raise
        with os.scandir(descriptor) as listed:
            for each in islice(listed, MAX_ENTRIES):
                if show(each.name) == part:
                    return each.name, each.stat(follow_symlinks=False)
        raise


def _about_link(descriptor: int, name: str) -> str:
    target = ""
    with suppress(OSError):
        target = f" to {brief(show(os.readlink(name, dir_fd=descriptor)), 200)}"
    return f"{show(name)} is a link{target}, and links are not followed. Name the file itself, if it is below the root."


def _refuse_other(status: os.stat_result, path: str) -> None:
    match _kind(status.st_mode):
        case "file":
            pass
        case "directory":
            raise ToolCallError(f"{path} is a directory; list_files shows what is in it.")
        case "link":
            raise ToolCallError(f"{path} is a link, and links are not followed. Name the file itself.")
        case _:
            raise ToolCallError(f"{path} is a pipe, a socket or a device, not a file.")


def _replace(descriptor: int, name: str, path: str, content: bytes) -> int | None:
    mode, size = 0o666, None
    with suppress(FileNotFoundError):
        name, status = _status(descriptor, name)
        _refuse_other(status, path)
        mode, size = status.st_mode & 0o777, status.st_size
    aside = f".{sha256(os.fsencode(name)).hexdigest()[:16]}.new"
    with suppress(FileNotFoundError):  # of a write that a crash cut off
        os.unlink(aside, dir_fd=descriptor)
    try:
        with os.fdopen(os.open(aside, _CREATING, mode, dir_fd=descriptor), "wb") as file:
            if size is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside, dir_fd=descriptor)
        raise
    os.fsync(descriptor)
    return size


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


@cache
def _kernel_filesystem(device: int) -> str:
    """Return the type of the file system of a device if the kernel makes it up, else an empty text."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):  # another system
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            place, _, kind = line.partition(" - ")
            if place.split()[2] == wanted and kind.split()[0] in _KERNEL:
                return kind.split()[0]
    return ""


def _explained(path: str, error: OSError) -> str:
    path = path or "the root"
    match error.errno:
        case errno.ENOENT:
            return f"there is no {path}; list_files shows what there is."
        case errno.ENOTDIR | errno.ELOOP:
            return f"a step of {path} is a file or a link, not a directory."
        case _:
            return f"{path} is refused by the system: {error.strerror}."
