"""The provider's memory tool over the tiers beside the SDK's own local file tool: the same commands in any order have
the same results and the same errors.

Where the tiers say otherwise, the local tool is brought there first, and nothing else is forgiven:

- directories without a file are gone, the directories of the tiers are there, and the sizes of directories are not
  compared (a file system's are of its own making);
- core blocks are files that are always there: one that was deleted or moved away is an empty file, and an empty one can
  be created, or be the destination of a rename, again;
- in core there is nothing else: what would make another file, move an empty block or make one a directory is an error
  here. (Limits, read-only blocks and blank files of the archive are in test_files.py.)

A bare error of the operating system has to be an error here, too, in whatever words.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import BlockSpec, Limits, Memory, RejectedError
from pager.memory_tool import MemoryFiles
from pager.memory_tool.tree import AREAS
from tests.support import HandClock

FIRST = {  # every life begins with these, so that commands meet something
    "/memories/archive/a": "one\ntwo\nthree a\n\nfour",
    "/memories/archive/b/c.md": "aab\nab\r\nb\n",
    "/memories/archive/b/d/e/f": "deep",
    "/memories/n": "ü",
    "/memories/core/human.md": "Alice\na baker\n",
}
BLOCKS = ("/memories/core/human.md", "/memories/core/notes.md")
NO_BLOCKS = ("/memories/core/x.md", "/memories/core/human", "/memories/core/human.md/x", "/memories/core")
ROOMY = {name: BlockSpec(limit_tokens=20_000) for name in ("human", "notes")}
_OTHERS = [
    "/memories/archive/b", "/memories/archive/b/d", "/memories/archive/a/x", "/memories/archive/.h/y", "/memories/m/n",
    "/memories", "/memories/", "/memory", "a", "", "/memories/../a", "/memories/archive/../n", "/memories/archive//a/",
    "/memories/./archive/a/../b", "/memoriesn", "/memories/../memories/n",
]  # fmt: skip
PATHS = st.sampled_from([*FIRST, *FIRST, *FIRST, *BLOCKS, *BLOCKS, *NO_BLOCKS, *_OTHERS])
TEXTS = st.text(alphabet="ab\n \ré<", min_size=1, max_size=12).filter(str.strip)
PIECES = st.sampled_from(["a", "b", "one", "three a", "\n", "", "aa", "\nab", "e\ntw", "zz"])
RANGES = st.none() | st.tuples(st.integers(-2, 5), st.integers(-2, 6)).map(list)
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS, "view_range": RANGES}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PATHS, "old_str": PIECES, "new_str": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": st.integers(-1, 4), "insert_text": PIECES}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


class Both:
    """The two tools, side by side."""

    def __init__(self, folder: Path, memory: Memory) -> None:
        self._root = folder / "memories"
        self._local = BetaLocalFilesystemMemoryTool(str(folder))
        self._files = MemoryFiles(memory)
        self._prune()

    def run(self, command: dict[str, Any]) -> None:
        if "view_range" in command and self._names_directory(command["path"]):
            command = {**command, "view_range": None}  # which the local tool leaves aside there
        if self._core_refuses(command):
            assert self._ours(command).startswith("ERROR"), command
            return
        self._make_way(command)
        ours = self._ours(command)
        theirs = self._theirs(command)
        self._prune()
        if theirs is not None:
            assert _without_directory_sizes(ours) == _without_directory_sizes(theirs), command
        else:
            assert ours.startswith("ERROR"), command

    def _ours(self, command: dict[str, Any]) -> str:
        try:
            return self._files.run(command)
        except RejectedError as error:
            return f"ERROR {error}"

    def _theirs(self, command: dict[str, Any]) -> str | None:
        try:
            return str(self._local.call(command))
        except ToolError as error:
            return f"ERROR {error}"
        except OSError:
            return None

    def _core_refuses(self, command: dict[str, Any]) -> bool:
        new = command["path"] if command["command"] == "create" else command.get("new_path")
        if new in NO_BLOCKS:
            return True
        if command["command"] != "rename":
            return False
        old = command["old_path"]
        blank = old in BLOCKS and not self._file(old).read_text(encoding="utf-8").strip()
        return blank or (new in BLOCKS and self._names_directory(old))

    def _make_way(self, command: dict[str, Any]) -> None:
        """An empty block is no file that stands in the way."""
        new = command["path"] if command["command"] == "create" else command.get("new_path")
        if new in BLOCKS and not self._file(new).read_bytes() and command.get("old_path") != new:
            self._file(new).unlink()

    def _file(self, path: str) -> Path:
        return self._root / path.removeprefix("/memories/")

    def _names_directory(self, path: str) -> bool:
        return (self._root / path.removeprefix("/memories").lstrip("/")).resolve().is_dir()

    def _prune(self) -> None:
        """Directories without a file go; those of the tiers stay, and so do the core blocks."""
        for folder in sorted((each for each in self._root.rglob("*") if each.is_dir()), reverse=True):
            if not any(folder.iterdir()):
                folder.rmdir()
        for area in AREAS:
            (self._root / area).mkdir(exist_ok=True)
        for block in BLOCKS:
            self._file(block).touch()

    def compare_all(self) -> None:
        """Every file holds the same, and there are no others."""
        for file in self._root.rglob("*"):
            self.run({"command": "view", "path": f"/memories/{file.relative_to(self._root).as_posix()}"})
        for area in ("", *AREAS):
            self.run({"command": "view", "path": f"/memories/{area}".rstrip("/")})


def _without_directory_sizes(told: str) -> str:
    head, *lines = told.split("\n")
    if not head.startswith("Here're"):
        return told
    return "\n".join((head, re.sub(r"^\S+", "", lines[0]), *(re.sub(r"^\S+(.*/)$", r"\1", each) for each in lines[1:])))


def _keeps_the_tiers(command: dict[str, Any]) -> bool:
    """The directories of the tiers cannot be moved or deleted: another test says so."""
    gone = command.get("path") if command["command"] == "delete" else command.get("old_path")
    return gone not in ("/memories/archive", "/memories/archive/", "/memories/archive//", "/memories/core")


@pytest.mark.slow
@settings(max_examples=60)  # each syncs some fifty files
@given(st.lists(COMMANDS.filter(_keeps_the_tiers), max_size=25))
def test_any_commands_have_the_results_and_errors_of_the_local_tool(commands: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        limits = Limits.for_window(400_000, core_tokens=50_000, max_part_tokens=150_000)
        with Memory.open(place / "memory", embedder=None, clock=HandClock(), core=ROOMY, limits=limits) as memory:
            both = Both(place / "local", memory)
            for path, text in FIRST.items():
                both.run({"command": "create", "path": path, "file_text": text})
            for command in commands:
                both.run(command)
            both.compare_all()
