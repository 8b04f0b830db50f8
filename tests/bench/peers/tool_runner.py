"""The SDK's tool runner with its own memory tool on the file system. Facts are files; the conversation is a list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anthropic
from anthropic import beta_tool
from anthropic.tools import BetaLocalFilesystemMemoryTool

from tests.bench.peers.giant_tool import read_everything
from tests.bench.peers.lines import INSTRUCTIONS, KEPT_TURNS, MARK, MAX_TOKENS, MODEL, serve


class Runner:
    def __init__(self, base_url: str, directory: Path, more: str = "") -> None:
        self._client = anthropic.Anthropic(base_url=base_url, api_key="none", max_retries=0)
        self._tools: list[Any] = []
        if more == "survives":
            self._tools.append(beta_tool(read_everything))
        self._files = BetaLocalFilesystemMemoryTool(str(directory))
        self._directory = directory
        self._messages: list[Any] = []

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        for asked, answer in turns:
            self._messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
            if asked.startswith(MARK):
                name = f"grown_{len(self._messages)}.md"
                (self._directory / "memories" / name).write_text(asked, encoding="utf-8")

    def turn(self, text: str) -> str:
        asked: Any = {"role": "user", "content": text}
        runner = self._client.beta.messages.tool_runner(
            model=MODEL, max_tokens=MAX_TOKENS, system=INSTRUCTIONS, tools=[self._files, *self._tools], thread=False,
            messages=[*self._messages[-2 * KEPT_TURNS + 2 :], asked],
        )  # fmt: skip
        message: Any = runner.until_done()
        self._messages += [asked, {"role": "assistant", "content": message.content}]  # not what was refused
        return message.content[0].text

    def said(self) -> list[str]:
        """Facts are in files, in no order; turns that had no fact are in this process alone."""
        kept = [path.read_text(encoding="utf-8") for path in self._directory.rglob("*.md")]
        return kept + [message["content"] for message in self._messages if message["role"] == "user"]

    def close(self) -> None:
        self._client.close()


if __name__ == "__main__":
    serve(Runner)
