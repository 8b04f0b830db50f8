"""The SDK alone: a list of messages in a program. Nothing is kept; that is the floor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anthropic

from tests.bench.peers.lines import INSTRUCTIONS, KEPT_TURNS, MAX_TOKENS, MODEL, serve


class Bare:
    def __init__(self, base_url: str, directory: Path) -> None:
        self._client = anthropic.Anthropic(base_url=base_url, api_key="none", max_retries=0)
        self._messages: list[Any] = []

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        for asked, answer in turns:
            self._messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]

    def turn(self, text: str) -> str:
        asked = {"role": "user", "content": text}
        sent = [*self._messages[-2 * KEPT_TURNS + 2 :], asked]
        with self._client.messages.stream(
            model=MODEL, max_tokens=MAX_TOKENS, system=INSTRUCTIONS, messages=sent
        ) as stream:
            for _ in stream:
                pass
            message: Any = stream.get_final_message()
        self._messages += [asked, {"role": "assistant", "content": message.content}]  # not what was refused
        return message.content[0].text

    def said(self) -> list[str]:
        return [message["content"] for message in self._messages if message["role"] == "user"]

    def close(self) -> None:
        self._client.close()


if __name__ == "__main__":
    serve(Bare)
