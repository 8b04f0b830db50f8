"""`model.tools_in_text`: a reply that is nothing but a call, as text, is that call; everything else stays as it is."""

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pytest

from agents.agent import Agent
from agents.events import Text, Thinking, ToolFinished
from agents.models.calls_in_text import CallsInText
from agents.models.model import FinishedReply, Model
from agents.models.replies import Reply, call
from agents.tools.memory_tools import ANSWER_NOW
from pager.types import Json
from tests.standin import Standin
from tests.standin.chat import ChatStandin
from tests.standin.chat_server import ChatServer
from tests.standin.server import StandinServer

TOOLS: list[Json] = [{"name": "look", "input_schema": {}}, {"name": "keep", "input_schema": {}}]
LOOK = '{"name": "look", "arguments": {"query": "seat"}}'


class Says(Model):
    """A model whose replies are given, streamed in pieces of some characters."""

    name = "says"

    def __init__(self, *replies: Reply, size: int = 3) -> None:
        self.replies = list(replies)
        self.size = size
        self.closed = False

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        reply = self.replies.pop(0)
        try:
            for block in reply.blocks:
                if block["type"] == "text":
                    text = block["text"]
                    yield from (Text(text[at : at + self.size]) for at in range(0, len(text), self.size))
            return FinishedReply({"content": list(reply.blocks), "stop_reason": reply.stop_reason})
        finally:
            self.closed = True


def ask(model: CallsInText, **params: object) -> tuple[str, FinishedReply]:
    pieces, said = model.stream({"tools": TOOLS, **params}), ""
    while True:
        try:
            piece = next(pieces)
        except StopIteration as end:
            return said, end.value
        assert isinstance(piece, Text)
        said += piece.text


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        LOOK, f"\n {LOOK}\n", f"```json\n{LOOK}\n```", f"```\n{LOOK}\n```\n", f"``` {LOOK}```", f"```json\n{LOOK}",
        '{"parameters": {"query": "seat"}, "name": "look", "type": "function", "id": "c1"}',
        f"{LOOK}\n{LOOK}", f"```json\n{LOOK}\n{LOOK}\n```", f"```\n{LOOK}\n```\n\n```\n{{}}\n```", f"{LOOK}{{cut",
        f"{{{LOOK}}}", f"```json\n{{{LOOK}}}\n```", f"{{{LOOK}}}\n{{{LOOK}}}",
    ],
)  # fmt: skip
def test_a_call_in_text_is_that_call_and_is_not_shown(text: str, size: int) -> None:
    said, reply = ask(CallsInText(Says(Reply(text), size=size), "auto"))
    assert said == ""
    assert reply.message["stop_reason"] == "tool_use"
    assert reply.message["content"] == [{"type": "tool_use", "id": None, "name": "look", "input": {"query": "seat"}}]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "It is an aisle seat.", "", " " * 300, "`look` finds it.", "```python\nlook()\n```", '{"seat": "aisle"}',
        f"Let me look: {LOOK}", f"{LOOK} Done.", f"[{LOOK}]", LOOK[:-1], f"{{}}\n{LOOK}",
        LOOK.replace("look", "other"), LOOK.replace("{\"query\": \"seat\"}", "\"seat\""), LOOK.replace("seat", "s\ne"),
        '{"name": "look"}', '{"name": "look", "arguments": {}, "age": 4}', '{"name": ["look"], "arguments": {}}',
        '{"name": "look", "arguments": {}, "input": {}}', '{"name": "look", "arguments": {"x": NaN}}',
    ],
)  # fmt: skip
def test_everything_else_stays_text_to_the_letter(text: str, size: int) -> None:
    said, reply = ask(CallsInText(Says(Reply({"type": "text", "text": text}), size=size), "auto"))
    assert said == text
    assert reply.message == {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}


def test_auto_ends_with_the_first_real_call_and_on_does_not() -> None:
    modes: list[tuple[Literal["auto", "on"], bool]] = [("auto", False), ("on", True)]
    for mode, taken in modes:
        model = CallsInText(Says(Reply(calls=[call("keep", text="x")]), Reply(LOOK)), mode)
        ask(model)
        said, reply = ask(model)
        assert (reply.message["stop_reason"] == "tool_use", said == "") == (taken, taken)


@pytest.mark.parametrize("params", [{"tools": []}, {"tool_choice": {"type": "none"}}])
def test_nothing_is_called_where_nothing_may_be(params: Json) -> None:
    assert ask(CallsInText(Says(Reply(LOOK)), "on"), **params)[0] == LOOK


def test_a_call_that_was_cut_is_none_and_one_before_the_cut_is_one() -> None:
    said, reply = ask(CallsInText(Says(Reply(f"{LOOK}\n{LOOK[:9]}", stop_reason="max_tokens")), "on"))
    assert (said, reply.message["stop_reason"]) == ("", "tool_use")
    assert ask(CallsInText(Says(Reply(LOOK[:-1], stop_reason="max_tokens")), "on"))[0] == LOOK[:-1]


def test_a_closed_stream_closes_the_model() -> None:
    says = Says(Reply("a long story"))
    pieces = CallsInText(says, "on").stream({"tools": TOOLS})
    next(pieces)
    pieces.close()
    assert says.closed


YAML = """\
name: x
model: {{provider: {provider}, id: m, base_url: "{url}", api_key: k}}
memory: {{tools: few}}
window: {{limit_tokens: 8000}}
archival: {{embedder: none}}
"""
KEEP = '{"name": "remember", "arguments": {"text": "Dana is a baker."}}'


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_on_both_wires_the_call_is_run_and_answered_as_any_other(provider: str, tmp_path: Path) -> None:
    with ExitStack() as opened:
        if provider == "openai":
            server = opened.enter_context(ChatServer(ChatStandin(limit_tokens=8_000)))
            url = server.url
        else:
            server = opened.enter_context(StandinServer(Standin(limit_tokens=8_000)))
            url = server.base_url
        server.script(KEEP, "I will.")
        file = tmp_path / "x.yaml"
        file.write_text(YAML.format(provider=provider, url=url), encoding="utf-8")
        with Agent.load(file, home=tmp_path, environ={}) as agent:
            events = [*agent.stream("I am Dana, a baker.")]
            assert agent.memory.fact("f1").text == "Dana is a baker."
        assert [event.text for event in events if isinstance(event, Text | ToolFinished)] == [
            f"Remembered: Dana is a baker.\n{ANSWER_NOW}", "I will.",
        ]  # fmt: skip
        assert server.rejected == []
