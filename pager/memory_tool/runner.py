"""The provider's memory tool over the tiers, for the anthropic SDK's own tool runner. Only this module loads that SDK.

>>> from pager.memory_tool.runner import TieredMemoryTool
>>> with Memory.open(directory, embedder=None) as memory:
...     tool = TieredMemoryTool(memory)        # in the place of BetaLocalFilesystemMemoryTool("state/notes")
...     tool.to_dict()["type"]                 # client.beta.messages.tool_runner(..., tools=[tool])
'memory_20250818'
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from anthropic import BaseModel
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import BetaCacheControlEphemeralParam

from pager.errors import RejectedError, brief
from pager.memory import Memory
from pager.memory_tool.files import ACTOR, MemoryFiles
from pager.reader import MemoryReader
from pager.safety.sources import read_source

CacheControl = BetaCacheControlEphemeralParam | None


class TieredMemoryTool(BetaAbstractMemoryTool):
    """A tool for `client.beta.messages.tool_runner` of an `Anthropic` client. The caller closes the memory.

    `source`, such as `web`, is what the runner's other tools bring in. What an untrusted file says counts by itself.
    """

    def __init__(
        self, memory: Memory | MemoryReader, *, cache_control: CacheControl = None, source: str | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = _files(memory, source)

    def call(self, input: object) -> str:  # noqa: A002 - the SDK's name for it
        """Carry out a command of the model, and return the answer."""
        return _answer(self._files, input)

    def _carry_out(self, command: BaseModel) -> str:
        return self.call(command.model_dump(warnings=False))

    execute = view = create = str_replace = insert = delete = rename = _carry_out


class AsyncTieredMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for an `AsyncAnthropic` client: each command runs in a thread."""

    def __init__(
        self, memory: Memory | MemoryReader, *, cache_control: CacheControl = None, source: str | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = _files(memory, source)

    async def call(self, input: object) -> str:  # noqa: A002
        """Carry out a command of the model in a thread, and return the answer."""
        return await asyncio.to_thread(_answer, self._files, input)

    async def _carry_out(self, command: BaseModel) -> str:
        return await self.call(command.model_dump(warnings=False))

    execute = view = create = str_replace = insert = delete = rename = _carry_out


def _files(memory: Memory | MemoryReader, source: str | None) -> MemoryFiles:
    if source is not None and isinstance(memory, Memory):
        memory.show_sources(read_source(source).untrusted, actor=ACTOR)
    return MemoryFiles(memory)


def _answer(files: MemoryFiles, command: object) -> str:
    if not isinstance(command, Mapping):
        raise ToolError(f"the input is {brief(command)}; it has to be an object with a command.")
    try:
        return files.run(cast("Mapping[str, Any]", command))
    except RejectedError as error:
        raise ToolError(str(error)) from error
