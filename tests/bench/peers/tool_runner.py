"""The SDK's tool runner with its own memory tool on the file system. Facts are files; the conversation is a list."""

from pathlib import Path
from typing import Any

from anthropic import beta_tool
from anthropic.tools import BetaLocalFilesystemMemoryTool

from tests.bench.peers.bare_sdk import Bare
from tests.bench.peers.giant_tool import read_everything
from tests.bench.peers.lines import INSTRUCTIONS, MARK, MAX_TOKENS, MODEL, serve


class Runner(Bare):
    def __init__(self, base_url: str, directory: Path, way: str = "") -> None:
        super().__init__(base_url, directory)
        self._directory = directory
        self._tools: list[Any] = [BetaLocalFilesystemMemoryTool(str(directory))]
        if way == "survives":
            self._tools.append(beta_tool(read_everything))

    def grow(self, turns: Any) -> None:
        for number, (text, _) in enumerate(turns, start=len(self._messages)):
            if text.startswith(MARK):
                (self._directory / "memories" / f"grown_{number}.md").write_text(text, encoding="utf-8")
        super().grow(turns)

    def answer(self, messages: list[Any]) -> Any:
        runner = self.client.beta.messages.tool_runner(
            model=MODEL, max_tokens=MAX_TOKENS, system=INSTRUCTIONS, tools=self._tools, thread=False, messages=messages
        )
        return runner.until_done()

    def said(self) -> list[str]:
        """Facts are in files, in no order; turns that had no fact are in this process alone."""
        return [path.read_text(encoding="utf-8") for path in self._directory.rglob("*.md")] + super().said()


if __name__ == "__main__":
    serve(Runner)
