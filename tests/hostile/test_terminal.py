"""What others write reaches a terminal harmless and as it reads, however it comes."""

# ruff: noqa: RUF001 -- letters that look like others are what is tested

import ast
import json
import logging
import tracemalloc
import unicodedata
from io import StringIO
from itertools import pairwise
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown

from agents.cli import answer_screen
from agents.cli.answer_screen import AnswerScreen
from agents.cli.common import DEBUG_LOG
from agents.cli.terminal import Printer
from agents.cli.visible import Harmless, visible
from agents.events import Stopped, Text, ToolFinished, ToolStarted
from agents.logs import log
from pager.types import Call
from tests.support.cli import command_line

HOSTILE = "\x1b]0;owned\x07\x9b2J\u202etxt\u2066\u200b\u200d\u200e\ufeff\U000e0041\u2028\u3164\x85\r\x08\u00ad"
READABLE = [
    "👨‍👩‍👧 ❤️ 👍🏽 🏴󠁧󠁢󠁷󠁬󠁳󠁿 🏳️‍🌈",
    "مرحبا بالعالم، می‌خواهم",
    "שלום שָׁלוֹם",
    "cafe\u0301 e\u0302\u0323",
    "नमस्ते क्‍ष",
    "日本語 葛\U000e0100",
    "два\n\tстроки",
]


def _unsafe(text: str) -> list[str]:
    return [
        ascii(each) for each in text if each not in "\n\t" and unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")
    ]


@given(text=st.text(st.sampled_from([*HOSTILE, *"".join(READABLE), "a", "\ufe0f"])), cuts=st.lists(st.integers(0, 30)))
def test_a_streamed_text_reads_the_same_wherever_it_is_cut(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    stream = Harmless()
    pieces = "".join(stream.feed(text[a:b]) for a, b in pairwise(places))
    assert pieces == Harmless().feed(text)
    assert _unsafe(visible(text, strict=True)) == []
    assert len(visible(text, strict=True).splitlines()) <= 1


@pytest.mark.parametrize("text", READABLE)
def test_writing_of_all_languages_stays(text: str) -> None:
    assert Harmless().feed(text) == text


def test_a_joiner_is_judged_without_a_list_of_all_pictures() -> None:
    stream = Harmless()
    stream.feed("a\u200d")
    tracemalloc.start()
    try:
        stream.feed("a\u200d" * 9)
        assert tracemalloc.get_traced_memory()[1] < 20_000, "bytes"
    finally:
        tracemalloc.stop()


def test_everything_of_a_turn_is_harmless(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    printer = Printer(json_lines=False)
    started, done = ToolStarted("1", HOSTILE, {HOSTILE: HOSTILE}), ToolFinished("1", HOSTILE, HOSTILE, is_error=True)
    printer.show([*map(Text, HOSTILE), started, done, Text(HOSTILE), Stopped("refused", HOSTILE)])
    printer.error(HOSTILE)
    log.addHandler(DEBUG_LOG)
    try:
        logging.getLogger("selfpager").error("%s", HOSTILE, exc_info=ValueError(HOSTILE))
    finally:
        log.removeHandler(DEBUG_LOG)
    shown = capsys.readouterr()
    assert _unsafe(shown.out) == []
    assert _unsafe(shown.err) == []
    assert "owned" in shown.out
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "confirm", lambda text, **_: asked.append(text))
    printer.ask(Call("1", "send", {"to": f"{HOSTILE}👨‍👩‍👧{' ' * 4000}Allow look(me)?"}, "s1"))
    [line] = capsys.readouterr().out.splitlines()
    assert _unsafe(line) == []
    assert line.isprintable()
    assert asked == ["Allow send?"], "arguments could end like another question, so the question has a line of its own"


def test_a_long_block_is_not_drawn_again_with_each_of_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take quadratic time: minutes for a program of 300 lines."""
    drawn: list[str] = []
    monkeypatch.setattr(answer_screen, "Markdown", lambda text, **_: drawn.append(text) or Markdown(text))
    screen = AnswerScreen(Console(file=StringIO(), force_terminal=True, width=80, height=24))
    screen.feed("```python\n")
    for number in range(2_000):
        screen.feed(f"x{number} = 1\n")
    screen.finish()
    assert drawn[-1].endswith("x1999 = 1\n")
    assert len(drawn) < 1_000


def test_an_error_and_its_trace_are_harmless(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(json.dumps({"name": HOSTILE.replace("\0", ""), HOSTILE: 1}), encoding="utf-8")
    for more in ([], ["--debug"]):
        done = command_line("validate", str(file), *more)
        assert _unsafe(done.out + done.err) == []


def test_nothing_is_printed_past_the_one_function() -> None:
    for path in sorted(Path("agents/cli").glob("*.py")):
        if path.name == "visible.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"click.echo", "click.secho", "click.confirm", "traceback.print_exception"}, path
                is_json = bool(node.args) and ast.unparse(node.args[0]).startswith("as_json(")
                assert called != "print" or is_json, path
