"""A tool from a function: what the model is told of it, what reaches the function, what comes back."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from agents import assembly
from agents.config.agent_config import load as load_config
from agents.config.errors import ConfigError
from agents.tasks import TaskTools
from agents.tools.functions import Sourced, Tool, ToolCallError, ToolConfigError, as_output, describe_error, find
from agents.tools.memory_tools import MemoryTools
from pager import RejectedError, tokens


class Mood(Enum):
    good = "good"
    bad = "bad"


@dataclass
class Place:
    """Where something is."""

    city: str
    zip: int | None = None


class Order(BaseModel):
    title: str
    places: list[Place] = []


def test_what_a_call_has_started_is_ended_when_it_is_left() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        """Work until it is ended."""
        begun.set()
        ended.wait()

    with pytest.raises(ToolCallError, match="did not finish"):
        Tool.of(work, timeout_seconds=0.05, leave=ended.set).run_limited({})
    assert ended.is_set()
    ended.clear()
    Tool.of(len_of, leave=ended.set).run_limited({"text": "done in time"})
    assert not ended.is_set()


def len_of(text: str) -> int:
    """Count."""
    return len(text)


def test_an_answer_may_have_several_sources() -> None:
    def find_all() -> Sourced:
        """Find."""
        return Sourced(("file:a", "program", "file:b"), "both")

    assert Tool.of(find_all).run_sourced({}) == ("both", {"file:a", "file:b"})


def test_of_calls_that_are_asked_for_some_need_not_be() -> None:
    tool = Tool.of(len_of, approve="always", unasked=lambda raw: raw.get("text") == "x")
    assert [tool.asks(raw) for raw in ({"text": "x"}, {"text": "y"}, {})] == [False, True, True]
    assert not Tool.of(len_of, unasked=lambda _: False).asks({})


def shop(
    order: Order, count: int = 1, note: str | None = None, mood: Mood = Mood.good, when: date | None = None,
    size: Literal["s", "l"] = "s", tags: list[str] | None = None,
    weight: Annotated[float, Field(gt=0, description="kg")] = 1.0,
) -> str:  # fmt: skip
    """Order something.

    It arrives the next day.

    Args:
        order: What is ordered,
            and where to.
        when: The day.
    """
    return repr((order, count, note, mood, when, size, tags, weight))


def test_the_schema_comes_from_hints_and_docstring() -> None:
    tool = Tool.of(shop)
    assert (tool.name, tool.description) == ("shop", "Order something.\nIt arrives the next day.")
    schema = tool.schema
    Draft202012Validator.check_schema(schema)
    assert (schema["required"], schema["additionalProperties"]) == (["order"], False)
    assert '"title": "' not in json.dumps(schema)  # nothing is in it only for show
    assert schema["properties"] == {
        "order": {"$ref": "#/$defs/Order", "description": "What is ordered, and where to."},
        "count": {"type": "integer", "default": 1},
        "note": {"type": "string"},
        "mood": {"$ref": "#/$defs/Mood", "default": "good"},
        "when": {"type": "string", "format": "date", "description": "The day."},
        "size": {"type": "string", "enum": ["s", "l"], "default": "s"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "weight": {"type": "number", "exclusiveMinimum": 0, "default": 1.0, "description": "kg"},
    }
    assert schema["$defs"]["Order"]["properties"]["title"] == {"type": "string"}
    assert schema["$defs"]["Place"]["description"] == "Where something is."


def test_all_definitions_together_are_under_1200_tokens() -> None:
    definitions = [*MemoryTools.definitions(), *TaskTools.definitions()]
    assert [each["name"] for each in definitions] == [*MemoryTools.NAMES, "task_done"]
    assert tokens.total(json.dumps(definitions)) < 1_200
    for each in definitions:
        Draft202012Validator.check_schema(each["input_schema"])


def test_names_of_arguments_may_be_those_of_pydantic(recwarn: pytest.WarningsRecorder) -> None:
    def odd(json: str, schema: str, copy: str, model_config: str, model_id: str, _x: str, self: str) -> str:
        """Odd."""
        return json + schema + copy + model_config + model_id + _x + self

    names = ["json", "schema", "copy", "model_config", "model_id", "_x", "self"]
    assert list(Tool.of(odd).schema["properties"]) == names
    assert Tool.of(odd).run({name: str(number) for number, name in enumerate(names)}) == "0123456"
    assert list(recwarn) == []


def test_arguments_arrive_as_what_the_hints_say() -> None:
    order = {"title": "hats", "places": [{"city": "Porto"}]}
    expected = (Order(title="hats", places=[Place("Porto")]), 2, None, Mood.bad, date(2026, 5, 3), "s", None, 1.0)
    assert Tool.of(shop).run({"order": order, "mood": "bad", "when": "2026-05-03", "count": "2"}) == repr(expected)


INPUTS = st.none() | st.integers() | st.text() | st.lists(st.text())


@given(st.dictionaries(st.sampled_from(["text", "number", "more", "x"]), INPUTS))
def test_any_input_is_run_or_refused_with_what_is_wrong(raw: dict[str, Any]) -> None:
    def add(text: str, number: int, more: list[str] | None = None) -> str:
        """Add."""
        assert (type(text), type(number), type(more)) in [(str, int, list), (str, int, type(None))]
        return "ok"

    try:
        assert Tool.of(add).run(raw) == "ok"
    except RejectedError as refused:
        wrong = str(refused)
        assert wrong.startswith("add was not run, its arguments are wrong: ")
        assert any(f"{name}: " in wrong for name in ("text", "number", "more", "x"))
    else:
        assert {"text", "number"} <= raw.keys()


def test_wrong_arguments_are_told_so_that_the_model_can_mend_them() -> None:
    with pytest.raises(RejectedError) as refused:
        Tool.of(shop).run({"order": {"titel": "hats"}, "count": "many", "colour": "red"})
    assert str(refused.value) == (
        "shop was not run, its arguments are wrong: order.title: Field required; count: Input should be a valid "
        "integer, unable to parse string as an integer; colour: there is no such argument, there are order, count, "
        "note, mood, when, size, tags, weight. Call it again with them right."
    )


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("as it is", "as it is"),
        (None, "done"),
        ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
        ([], "[]"),
        (0, "0"),
        (date(2026, 5, 3), '"2026-05-03"'),
        (Order(title="hats"), '{"title":"hats","places":[]}'),
        ([{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi"}]),
        ([{"type": "weather"}], '[{"type": "weather"}]'),
    ],
)
def test_an_answer_is_text_blocks_or_json(value: Any, output: Any) -> None:
    assert as_output(value) == output


async def slowly(text: str) -> str:
    """Say it after a while."""
    await asyncio.sleep(0)
    return f"{text}, at last"


def test_a_function_may_be_async() -> None:
    async def in_a_loop() -> Any:
        return tool.run_limited({"text": "hello"})[0]

    tool = Tool.of(slowly)
    assert tool.run({"text": "hello"}) == tool.run_limited({"text": "hello"})[0] == "hello, at last"
    assert asyncio.run(in_a_loop()) == "hello, at last"


def test_what_takes_too_long_is_left_behind() -> None:
    gate, over = threading.Event(), threading.Event()

    def wait() -> str:
        """Wait."""
        gate.wait()
        over.set()
        return "too late"

    async def hang() -> str:
        """Hang."""
        await asyncio.to_thread(gate.wait)
        return "too late"

    for function in (wait, hang):
        with pytest.raises(ToolCallError, match=rf"{function.__name__} did not finish within 0\.05 s; it may still be"):
            Tool.of(function, timeout_seconds=0.05).run_limited({})
    gate.set()
    assert over.wait(60)


@pytest.mark.parametrize("error", [ValueError("no such order"), RejectedError("the shop is closed.")])
def test_what_it_raises_is_raised(error: Exception) -> None:
    def fail() -> str:
        """Fail."""
        raise error

    async def fail_slowly() -> str:
        """Fail."""
        raise error

    for function in (fail, fail_slowly):
        with pytest.raises(type(error)):
            Tool.of(function).run_limited({})


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_a_tool_that_ends_the_program_ends_only_itself(ending: type[BaseException]) -> None:
    def leave() -> str:
        """Leave."""
        raise ending("for good")

    with pytest.raises(ToolCallError, match=f"leave failed: {ending.__name__}: for good"):
        Tool.of(leave).run_limited({})


def test_an_error_that_cannot_be_worded_has_a_name() -> None:
    class Wordless(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert describe_error(Wordless()) == "Wordless"
    assert describe_error(KeyError("x")) == "KeyError: 'x'"


class Called:
    """Called."""

    def __call__(self) -> str:
        return ""


def defined(arguments: str, doc: str = "Doc.") -> Any:
    """A function with these arguments, which does nothing."""
    names: dict[str, Any] = {"Lock": threading.Lock}
    exec(f"from __future__ import annotations\ndef tool({arguments}) -> str: {doc!r}", names)
    return names["tool"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Called(), "is no function"),
        (Order, "is no function"),
        (defined("a: int", ""), "the tool 'tool' has no docstring"),
        (defined("a"), "the argument 'a' of the tool 'tool' has no type hint"),
        (defined("*a: int"), r"the tool 'tool' takes \*a: .*; a model needs named arguments"),
        (defined("a: Nowhere"), "cannot be described to a model: name 'Nowhere' is not defined"),
        (defined("a: Lock"), "cannot be described to a model"),
    ],
)
def test_what_cannot_be_a_tool_says_why(function: Any, message: str) -> None:
    with pytest.raises(ToolConfigError, match=message):
        Tool.of(function)


@pytest.mark.parametrize("name", ["añade", "two words", " ", "x" * 65])
def test_a_name_that_the_api_refuses_is_refused_here(name: str) -> None:
    with pytest.raises(ToolConfigError, match="cannot be called"):
        Tool.of(slowly, name=name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_tools.py").write_text(
        'NUMBER = 5\ndef look(city: str) -> str:\n    """Look."""\n    return city\n'
        'def archive(text: str) -> str:\n    """Mine."""\n    return text\n',
        encoding="utf-8",
    )
    (tmp_path / "my_broken.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "my_mistyped.py").write_text("def look(:\n", encoding="utf-8")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("my_")]:
        sys.modules.pop(name)


def test_a_function_beside_the_yaml_file_is_found(folder: Path) -> None:
    tool = Tool.of(find("my_tools:look", folder, "tool"), idempotent=True, approve="always", timeout_seconds=5.0)
    assert (tool.name, tool.idempotent, tool.approve, tool.timeout_seconds) == ("look", True, "always", 5.0)
    assert tool.run({"city": "Porto"}) == "Porto"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("my_tools", "names no tool; write package.module:function"),
        ("my_tolls:look", "'my_tolls:look' cannot be imported: No module named 'my_tolls'. Is its package installed?"),
        ("my_broken:look", "'my_broken:look' cannot be imported: ZeroDivisionError"),
        ("my_mistyped:look", "'my_mistyped:look' cannot be imported: SyntaxError"),
        ("my_tools:leap", "my_tools has no function 'leap'"),
        ("my_tools:NUMBER", "my_tools has no function 'NUMBER'"),
    ],
)
def test_what_cannot_be_loaded_says_why(folder: Path, reference: str, message: str) -> None:
    with pytest.raises(ToolConfigError, match=message):
        find(reference, folder, "tool")


@pytest.mark.parametrize(
    ("uses", "problems"),
    [
        (["my_tools:archive"], ["3:10: there is a tool 'archive' already"]),
        (["my_tools:look", "my_tools:look"], ["4:10: there is a tool 'look' already"]),
        (["my_tolls:look", "my_tools:leap"], ["x.yaml:3:10: ", "x.yaml:4:10: "]),
    ],
)
def test_every_tool_that_cannot_be_used_is_told_with_its_place(
    folder: Path, uses: list[str], problems: list[str]
) -> None:
    file = folder / "x.yaml"
    file.write_text("name: x\ntools:\n" + "".join(f"  - use: {use}\n" for use in uses), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        assembly.own_tools(load_config(file, {}))
    lines = str(error.value).splitlines()
    assert len(lines) == len(problems)
    assert all(problem in line for line, problem in zip(lines, problems, strict=True))


def test_a_tool_is_looked_for_beside_the_file_that_names_it(folder: Path) -> None:
    (folder / "base.yaml").write_text('tools: [{use: "my_tools:look"}]\n', encoding="utf-8")
    (folder / "down").mkdir()
    (folder / "down" / "x.yaml").write_text("name: x\nextends: ../base.yaml\n", encoding="utf-8")
    assert [tool.name for tool in assembly.own_tools(load_config(folder / "down" / "x.yaml", {}))] == ["look"]


def test_of_two_modules_of_one_name_the_second_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same_name.py").write_text(
            f"def f() -> str:\n    'Says where it is from.'\n    return 'from {name}'\n"
        )
    assert find("same_name:f", tmp_path / "a", "tool")() == "from a"
    with pytest.raises(ToolConfigError, match="has that name already"):
        find("same_name:f", tmp_path / "b", "tool")


@pytest.mark.parametrize("rival", ["/__init__.py", ".pyc", EXTENSION_SUFFIXES[0]])
def test_of_two_that_python_would_import_by_one_name_neither_is(tmp_path: Path, rival: str) -> None:
    """A command of the agent's may have made one of them, which Python would prefer."""
    name = f"one_name_{len(rival)}"  # Python imports a name once
    (tmp_path / f"{name}.py").write_text("def f() -> str:\n    'Say nothing.'\n    return ''\n", encoding="utf-8")
    (tmp_path / name).mkdir()  # a folder with other files is no package
    (tmp_path / f"{name}{rival}").write_text("", encoding="utf-8")
    with pytest.raises(ToolConfigError, match=r"have one name\. Remove or rename one of them"):
        find(f"{name}:f", tmp_path, "tool")
    (tmp_path / f"{name}{rival}").unlink()
    assert find(f"{name}:f", tmp_path, "tool")() == ""
