"""The folder of a mirror on disk. It may come from anybody, through git or mail.

So no link in it is followed, in reading or in writing, nothing but regular files is read, and sizes and counts have
limits.
"""

import fcntl
import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pager.errors import RejectedError, StorageError
from pager.safety import foreign_files

ABOUT, CORE, FACTS, RECALL = "mirror.md", "core", "facts", "recall"
PER_FOLDER = 1000  # facts; git and people read folders of a hundred thousand files badly
MOST_FILES = 2_000_000
LARGEST_FOLDER_BYTES = 4 << 30  # of all files that are read
OWN_FILE = re.compile(r"(f[0-9]{1,18})\.md")  # a fact that the memory wrote
OWN_FOLDER = re.compile(r"f[0-9]{1,18}")
DAY_FILE = re.compile(r"([0-9]{4,5}-[0-9]{2}-[0-9]{2})\.md")


@contextmanager
def locked(base: Path) -> Generator[None]:
    """Keep other exports and imports out of a folder. Raises RejectedError if there is one.

    An export that has read the memory earlier would remove the files of newer facts, and their removal is an edit.
    """
    try:
        descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RejectedError(f"{base} is not a folder that can be read: {error.strerror}.") from None
    try:
        _lock(descriptor, base)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile has it open, too
        os.close(descriptor)


def _lock(descriptor: int, base: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RejectedError(f"another export or import of {base} is under way. Try again when it is done.") from None


def make(base: Path) -> None:
    """Make the folder of a mirror, if it is not there."""
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"the mirror {base} cannot be written: {error.strerror}.") from None


def fact_path(number: int) -> str:
    """Return where a fact stands in the folder."""
    return f"{FACTS}/f{number // PER_FOLDER * PER_FOLDER}/f{number}.md"


def read_all(base: Path) -> dict[str, str]:
    """Return the Markdown files of a mirror by their paths below the folder. Raises RejectedError."""
    texts: dict[str, str] = {}
    left = LARGEST_FOLDER_BYTES
    for path in _files(base):
        text = texts[path.relative_to(base).as_posix()] = read_file(path, left)
        left -= len(text)
        if len(texts) > MOST_FILES:
            raise RejectedError(f"{base} holds more than {MOST_FILES:,} files. Nothing was imported.")
    return texts


def read_file(path: Path, limit_bytes: int = LARGEST_FOLDER_BYTES) -> str:
    """Return the text of a file, line breaks as `\\n`. Raises RejectedError."""
    try:
        raw = foreign_files.read_bytes(path, min(foreign_files.LARGEST_TEXT_BYTES, limit_bytes), follow_link=False)
        return raw.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is no text in UTF-8 ({error})"
        raise RejectedError(f"{path}:1: {reason}. Nothing was imported.") from None


def _files(base: Path) -> Iterator[Path]:
    yield base / ABOUT
    for room, depth in ((CORE, 1), (FACTS, 2), (RECALL, 1)):
        yield from _markdown_in(base / room, depth)


def _markdown_in(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RejectedError(f"{folder} cannot be read: {error.strerror}.") from None
    if folder.is_symlink():
        raise RejectedError(f"{folder} is a link, and a mirror has none. Nothing was imported.")
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            raise RejectedError(f"{entry.path} is a link, and a mirror has none. Nothing was imported.")
        if entry.is_dir():
            if depth > 1:
                yield from _markdown_in(Path(entry.path), depth - 1)
            else:
                _refuse_files_in(entry.path)
        elif entry.name.lower().endswith(".md"):
            yield Path(entry.path)


def _refuse_files_in(path: str) -> None:
    if any(file.name.lower().endswith(".md") for file in list(os.scandir(path))):
        raise RejectedError(f"{path} is too deep for files of a mirror: facts are in {FACTS}/ or one folder below it.")


def write_all(base: Path, files: Mapping[str, str]) -> None:
    """Make the folder hold these files and no others of a mirror. What is the same already is not touched.

    Killed meanwhile it leaves a mirror that is older than the memory, or none: `ABOUT`, which names the newest fact, is
    the last file that is written.
    """
    try:
        for folder in sorted({str(Path(name).parent) for name in files} - {"."}):
            _make_folder(base, folder)
        for name in sorted(files, key=lambda name: name == ABOUT):
            _write(base / name, files[name].encode())
        for path in _files(base):
            if path.relative_to(base).as_posix() not in files:
                path.unlink()
        for folder in sorted((base / FACTS).glob("f*")):
            with suppress(OSError):  # not empty
                folder.rmdir()
    except OSError as error:
        raise StorageError(f"the mirror {base} cannot be written: {error.strerror} ({error.filename}).") from None


def _make_folder(base: Path, name: str) -> None:
    path = base
    for part in Path(name).parts:
        path /= part
        if path.is_symlink():
            raise RejectedError(f"{path} is a link, and a mirror has none. Remove it, or export to another folder.")
        path.mkdir(mode=0o700, exist_ok=True)


def _write(path: Path, content: bytes) -> None:
    with suppress(FileNotFoundError, OSError):
        if foreign_files.read_bytes(path, len(content), follow_link=False) == content:
            return
    aside = path.with_name(f".{path.name}.tmp")
    aside.unlink(missing_ok=True)
    with open(aside, "xb", opener=foreign_files.private) as file:
        file.write(content)
    aside.replace(path)  # a link in its place is replaced, not followed
