"""No text makes a regular expression, or a function that reads texts of others, take more than linear time.

Steps are counted, not seconds: those of patterns by tests.support.regex_steps, those of functions as lines of Python.
"""

import ast
import importlib
import pkgutil
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import agents
import pager
from agents.importing.formats import conversations_in
from agents.importing.notes import sections
from agents.models.calls_in_text import CallsInText
from agents.models.replies import Reply
from pager import BlockSpec, Memory, arguments, markup
from pager.clock import SystemClock
from pager.memory_tool.text import replaced
from pager.search import dates, words
from tests.models.test_calls_in_text import Says
from tests.support.regex_steps import literals, steps

SOURCES = {
    path: path.read_text(encoding="utf-8") for top in ("pager", "agents") for path in sorted(Path(top).rglob("*.py"))
}
UNITS = (" ", "a", "0", "_", "-", "\n", "<", ":", "\u0301", "!")
SIZE = 30
GROWTH = 2.5  # of the steps, when the text is twice as long
FUNCTIONS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
MADE_WHEN_RUN = {  # patterns that are put together then: which, and why they take linear time
    "agents/assembly.py": "a constant whose name ends in PATTERN, which is tested below",
    "agents/builtin/protected.py": "a constant whose name ends in PATTERN, which is tested below",
    "agents/cli/init.py": "names of our own files and variables, on our own files",
    "agents/config/field_types.py": "the constants whose names end in PATTERN, which are tested below",
    "agents/config/script.py": "the person's own `when`",
    "agents/models/openai.py": "two names of a field, in a refusal",
    "pager/search/dates.py": "a tuple of constants, which are tested below",
    "pager/store/maintenance.py": "ids of pages; and our own core, whose texts are disarmed, so that no block repeats",
    "pager/search/words.py": "classes of letters, and the words of our own data as alternatives, of which none repeats",
    "pager/upkeep/eraser.py": "literal texts of less than eight characters",
}


def _patterns() -> Iterator[Any]:
    """Yield every pattern of every module, and True if it is only ever matched at a text's beginning."""
    for top in (pager, agents):
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            # The adapters need frameworks that are not here. Their one pattern is a bounded repeat.
            if module.name.endswith("__main__") or module.name.startswith("pager.adapters."):
                continue
            for name, value in vars(importlib.import_module(module.name)).items():
                found = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
                for number, each in enumerate(found):
                    if isinstance(each, re.Pattern):
                        yield pytest.param(each, _is_anchored(name), id=f"{module.name}.{name}.{number}")
                    elif isinstance(each, str) and name.endswith("_PATTERN"):
                        yield pytest.param(re.compile(each), True, id=f"{module.name}.{name}")
    for path, call in _calls():
        if isinstance(call.args[0], ast.Constant) and not ast.unparse(call.func).endswith("compile"):
            is_anchored = ast.unparse(call.func).endswith("match")
            place = f"{path}:{call.lineno}:{call.col_offset}"
            yield pytest.param(re.compile(str(call.args[0].value)), is_anchored, id=place)


def _is_anchored(name: str) -> bool:
    uses = {use for text in SOURCES.values() for use in re.findall(rf"\b{name}(?:\[\w+\])?\.(\w+)", text)} - {"items"}
    return bool(uses) and uses <= {"match", "fullmatch"}


def _calls() -> Iterator[tuple[Path, ast.Call]]:
    for path, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{name}" for name in FUNCTIONS}:
                yield path, node


@pytest.mark.parametrize(("pattern", "anchored"), [*_patterns()])
def test_a_pattern_takes_twice_the_steps_for_twice_the_text(pattern: re.Pattern[Any], anchored: bool) -> None:
    own = literals(pattern)[:7]
    for prefix in ("", *own):
        for unit in (*UNITS, *own):
            for repeated in {unit, prefix + unit}:
                texts = [f"{prefix}{repeated * (SIZE * times // len(repeated) + 1)}\0" for times in (1, 2)]
                short, long = (
                    steps(pattern, text.encode() if isinstance(pattern.pattern, bytes) else text, anchored=anchored)
                    for text in texts
                )
                assert long <= GROWTH * short + 60, (prefix, repeated, short, long)


def test_no_pattern_is_put_together_from_texts_of_others() -> None:
    """Those that stand at the top of a module, also with placeholders, were tested above as they were compiled."""
    made = {
        path.as_posix()
        for path, call in _calls()
        if not isinstance(call.args[0], ast.Constant) and SOURCES[path].splitlines()[call.lineno - 1][0].isspace()
    }
    assert made <= MADE_WHEN_RUN.keys()


def _chat(text: str) -> object:
    """Read an export of ChatGPT with a message for each character."""
    nodes = {str(each): {"parent": str(each - 1), "message": {}} for each in range(len(text))}
    whole = {"mapping": nodes, "current_node": str(len(text) - 1)}
    return [list(found.records) for found in conversations_in(whole, "x")]


def _call_in_text(text: str) -> object:
    """Read a reply that comes letter by letter, and may be a call."""
    model = CallsInText(Says(Reply({"type": "text", "text": text}), size=1), "on")
    return [*model.stream({"tools": [{"name": "look", "input_schema": {}}]})]


READERS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "notes": (
        lambda text: sections("a.md", text),
        (
            "# A\nx\n",
            "# a   ",
            "[",
            "]",
            "`",
            "*a **a ",
            "> a\nb\n",
            "[a]: b\n",
            "<!--\n",
            "- ",
            "#",
            "```\n",
            "a\n===\n",
        ),
    ),
    "markup": (
        markup.disarm,
        ("<", "< ", "<c", "<\u200b", "\uff1c", "\U000e003c", "<\U000e003c", "<co\u0301", "<core>"),
    ),
    "one line": (markup.one_line, ("\n", "\u2028a")),
    "words": (words.words, ("\u0315\u0300", "京", "👍", "a\u0301")),
    "dates": (
        lambda text: dates.spans(text, date(2026, 1, 1), range(2020, 2027)),
        ("in May 2024 ", "since ", "2024-01-01T0 "),
    ),
    "chats": (_chat, ("x",)),
    "call in text": (_call_in_text, ("{", "a", " ", "`", "```\n{", '{"name": ')),
    "event": (dates.event, ("before the ", "before the a ")),
}


@pytest.mark.parametrize("name", READERS)
def test_a_function_takes_twice_the_lines_for_twice_the_text(name: str) -> None:
    read, units = READERS[name]
    for unit in units:
        for prefix in ("", "<", "# "):
            short, long = (_lines_run(read, prefix + unit * (600 * times // len(unit))) for times in (1, 2))
            assert long <= GROWTH * short + 200, (unit, prefix, short, long)


def _lines_run(read: Callable[[str], object], text: str) -> int:
    count = 0

    def trace(_: FrameType, __: str, ___: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read(text)
    finally:
        sys.settrace(before)
    return count


def test_marks_are_sorted_before_they_are_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    for run in ("\u0315\u0300" * 200, "e\u0301" + "\u0327\u0f73\uff9e" * 99, "か" + "\u3099\u0300" * 40 + "é"):
        for form in ("NFC", "NFKC", "NFKD"):
            assert arguments.normalize(form, run) == unicodedata.normalize(form, run)
    unsorted: list[str] = []
    whole = unicodedata.normalize

    def watched(form: Any, text: str) -> str:
        marks = [unicodedata.combining(sign) for sign in whole("NFKD", text[1:])] if len(text) > 40 else []
        unsorted.extend([text] if marks != sorted(marks) else [])
        return whole(form, text)

    monkeypatch.setattr(arguments.unicodedata, "normalize", watched)
    arguments.normalize("NFC", "a" + "\u0315\u0300" * 200)
    words.folded("a" + "\u0315\u0300\uff9e" * 200)
    assert unsorted == []


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["<" + " " * 32_000, "<\u0315\u0300", "<core>\n"], ids=["blanks", "marks", "ours"])
def test_a_megabyte_comes_in_as_a_result_and_is_found(unit: str, tmp_path: Path) -> None:
    """It would take hours if any of it took quadratic time: the suite's own limit ends such a test."""
    with Memory.open(tmp_path, embedder=None, clock=SystemClock(), core={"a": BlockSpec()}) as memory:
        memory.append_user("look")
        memory.request()
        use = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
        memory.append_assistant({"content": [use], "stop_reason": "tool_use"}, {"input_tokens": 9, "output_tokens": 5})
        memory.append_result("c1", unit * (1_000_000 // len(unit)) + " tram")
        memory.request()
        assert memory.search_recall("tram")


def test_an_edit_that_fits_in_many_places_names_the_first() -> None:
    with pytest.raises(pager.RejectedError, match=r"in lines: 1, 1, 1.*…"):
        replaced("a" * 100_000, "a" * 50_000, "b", "/memories/x")
