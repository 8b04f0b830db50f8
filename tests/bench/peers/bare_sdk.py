"""The SDK alone: a list of messages in a program. Nothing is stored; that is the floor, and what other peers add to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anthropic

from tests.bench.peers.lines import INSTRUCTIONS, KEPT_TURNS, MAX_TOKENS, MODEL, serve


def client_for(base_url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=base_url, api_key="none", max_retries=0)


def streamed(client: anthropic.Anthropic, messages: Any, system: str = INSTRUCTIONS, **more: Any) -> Any:
    """Send a request, read its stream to the end and return the message."""
    with client.messages.stream(model=MODEL, max_tokens=MAX_TOKENS, system=system, messages=messages, **more) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


class Bare:
    def __init__(self, base_url: str, directory: Path, way: str = "") -> None:
        self.client = client_for(base_url)
        self._messages: list[Any] = []

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        for text, answer in turns:
            self.store(text, answer)

    def store(self, text: str, answer: Any) -> None:
        self._messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]

    def turn(self, text: str) -> str:
        message = self.answer([*self._messages[-2 * KEPT_TURNS + 2 :], {"role": "user", "content": text}])
        self.store(text, message.content)  # not what was refused
        return message.content[0].text

    def answer(self, messages: list[Any]) -> Any:
        return streamed(self.client, messages)

    def said(self) -> list[str]:
        return [message["content"] for message in self._messages if message["role"] == "user"]

    def close(self) -> None:
        self.client.close()


if __name__ == "__main__":
    serve(Bare)
