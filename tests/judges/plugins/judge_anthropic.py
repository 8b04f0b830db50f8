"""Puts our memory tool in the place of the SDK's local file tool before the SDK's tests import that.

Those look at files on disk. So our tool gets a folder here: files that a test has put there become facts before a
command, and after it the folder has the facts as files.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import anthropic.lib.tools._beta_builtin_memory_tool as theirs
from anyio import Path as AsyncPath

from pager import Memory
from pager.memory_tool.runner import AsyncTieredMemoryTool, TieredMemoryTool


class Folder:
    """A folder that has the files of a memory."""

    def __init__(self, base_path: str) -> None:
        self.root = Path(base_path) / "memories"
        self.root.mkdir(parents=True)
        self.memory = Memory.open(tempfile.mkdtemp(), embedder=None)

    def read(self) -> None:
        """Store the files that a test has put there."""
        for file in self.root.rglob("*"):
            if file.is_file() and not file.is_symlink():
                self.memory.archive(file.read_bytes().decode(), key=f"/{file.relative_to(self.root)}")

    def write(self) -> None:
        """Write all files."""
        for file in [file for file in self.root.rglob("*") if file.is_file()]:
            file.unlink()
        for row in self.memory.inspect.facts("current").rows:
            file = self.root / str(row.fact.key).lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(row.fact.text.encode())


class Tool(TieredMemoryTool):
    """Our tool, made as BetaLocalFilesystemMemoryTool is."""

    def __init__(self, base_path: str) -> None:
        self._folder = Folder(base_path)
        self.base_path, self.memory_root = Path(base_path), self._folder.root
        super().__init__(self._folder.memory)

    def call(self, input: object) -> str:  # noqa: A002
        """Carry out a command in the folder."""
        self._folder.read()
        try:
            return super().call(input)
        finally:
            self._folder.write()


class AsyncTool(AsyncTieredMemoryTool):
    """Our tool, made as BetaAsyncLocalFilesystemMemoryTool is."""

    def __init__(self, base_path: str) -> None:
        self._folder = Folder(base_path)
        self.base_path, self.memory_root = Path(base_path), AsyncPath(self._folder.root)
        super().__init__(self._folder.memory)

    async def call(self, input: object) -> str:  # noqa: A002
        """Carry out a command in the folder."""
        await asyncio.to_thread(self._folder.read)
        try:
            return await super().call(input)
        finally:
            await asyncio.to_thread(self._folder.write)


names: Any = theirs
names.BetaLocalFilesystemMemoryTool, names.BetaAsyncLocalFilesystemMemoryTool = Tool, AsyncTool
