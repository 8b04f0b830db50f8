import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from pydantic import ValidationError

from agents.config import yaml_file
from agents.config.agent_config import AgentConfig, load
from agents.config.schema import json_schema
from pager import tokens
from pager.errors import RejectedError
from pager.home import Home
from pager.limits import Limits
from tests.config.conftest import read, write

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


def formed(data: dict[str, Any]) -> AgentConfig:
    return AgentConfig.model_validate({"name": "x", **data})


def test_a_name_is_enough(folder: Path) -> None:
    config = read("name: x\n")
    assert config.model_dump() == AgentConfig(name="x").model_dump()
    assert config.place("tools", 0).file.parent.absolute() == folder  # the schema's test pins the defaults


def test_nothing_means_the_default() -> None:
    empty = """\
        name: x
        model: {base_url: "", api_key: ~, id: null, max_output_tokens: "${NONE:-}"}
        instructions:
        window:
        core: {blocks: }
        tools:
        limits: {max_usd: ""}
        prices:
        """
    assert read(empty).model_dump() == read("name: x\n").model_dump()


def test_texts_of_the_environment_are_numbers_where_numbers_are_wanted() -> None:
    config = read(
        """\
        version: ${ONE}
        name: ${WHO}
        model: {id: "${ONE}"}
        window: {limit_tokens: "${WINDOW}", evict_to: "${NONE:-0.25}"}
        core: {blocks: {b: {read_only: "${YES}", value: "${ONE}"}}}
        """,
        ONE="1",
        WHO="me",
        WINDOW="30000",
        YES="yes",
    )
    assert (config.version, config.name, config.model.id) == (1, "me", "1")
    assert (config.window.limit_tokens, config.window.evict_to) == (30000, 0.25)
    assert (config.core.blocks["b"].read_only, config.core.blocks["b"].value) == (True, "1")


@pytest.mark.parametrize(
    ("ttl", "more", "cache_write"), [("5m", "", 12.5), ("1h", "", 20.0), ("1h", ", cache_write: 7", 7.0)]
)
def test_prices_of_the_cache_follow_from_that_of_the_input(ttl: str, more: str, cache_write: float) -> None:
    config = read(f"name: x\nmodel: {{cache_ttl: {ttl}}}\nprices: {{input: 10, output: 20{more}}}\n")
    assert config.prices
    assert config.prices.model_dump() == {
        "input": 10,
        "output": 20,
        "cache_read": 1,
        "cache_write": cache_write,
        "web_search": 10,
    }


def test_files_are_relative_to_the_file_that_names_them(folder: Path) -> None:
    for name in ("base/notes.md", "top/notes.md"):
        write("notes", name)
    write("core: {blocks: {below: {file: notes.md}, both: {file: notes.md}}}\n", "base/base.yaml")
    text = "name: x\nextends: ../base/base.yaml\ncore: {blocks: {both: {file: notes.md}}}\n"
    blocks = load(write(text, "top/top.yaml"), {}).core.blocks
    assert all(Path(block.file or "").is_absolute() for block in blocks.values())
    files = {name: Path(block.file or "").resolve() for name, block in blocks.items()}
    assert files == {"below": folder / "base" / "notes.md", "both": folder / "top" / "notes.md"}


def test_rules_hold_without_a_file_too() -> None:
    with pytest.raises(ValidationError, match=r"limits\.max_usd needs prices"):
        formed({"limits": {"max_usd": 5.0}})


numbers = st.sampled_from([None, 1, 64, 100, 600, 5000, 200_000, 300_000])
shares = st.sampled_from([0.01, 0.3, 0.5, 0.7, 0.85, 1.0])
odd_names = st.sampled_from(["", ".", "..", "...", ".x", "a/b", "a\\b", "-a", "a b", "a\n", "é", "a..b", "A_9.b-c"])


def is_accepted(function: Callable[[], object]) -> bool:
    try:
        function()
    except (RejectedError, ValidationError):
        return False
    return True


@given(odd_names | st.text(max_size=70) | st.text("aZ9._-", max_size=66))
def test_names_are_those_of_directories_in_the_home(name: str) -> None:
    accepted = is_accepted(lambda: AgentConfig(name=name))
    assert accepted == is_accepted(lambda: Home("home").place(name))
    assert not accepted or (Path("home") / name).resolve().parent == Path("home").resolve()


@given(numbers, numbers, numbers, shares, shares, shares)
def test_a_window_is_accepted_exactly_when_the_memory_accepts_it(
    limit: int | None, output: int | None, part: int | None, notify: float, at: float, to: float
) -> None:
    share: dict[str, Any] = {"notify_at": notify, "evict_at": at, "evict_to": to}
    window = {"limit_tokens": limit, "max_part_tokens": part, **share}
    assert is_accepted(lambda: formed({"model": {"max_output_tokens": output}, "window": window})) == is_accepted(
        lambda: Limits.for_window(limit or 200_000, max_output_tokens=output, max_part_tokens=part, **share)
    )


class Unexpanded(dict[str, str]):
    """An environment that leaves every variable in the text, which is what an editor sees."""

    def get(self, name: str, default: Any = None) -> str:
        return f"${{{name}}}"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_the_agents_that_come_along_are_fine(path: Path) -> None:
    config = load(path, {})
    assert Draft7Validator(json_schema()).is_valid(yaml_file.read(path, Unexpanded()).data)
    assert config.name == path.stem
    assert path.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=agent.schema.json\n")
    used = sum(tokens.total(block.value) for block in config.core.blocks.values())
    assert used < Limits.for_window(config.window.limit_tokens or 100_000).core_tokens
    fixed = config.instructions + json.dumps({name: block.description for name, block in config.core.blocks.items()})
    assert tokens.total(fixed) < 300


def test_local_takes_its_server_from_the_environment() -> None:
    path = next(path for path in CONFIGS if path.stem == "local")
    assert load(path, {}).model.base_url == "http://127.0.0.1:8080"
    config = load(path, {"LOCAL_BASE_URL": "http://10.0.0.5:80", "LOCAL_WINDOW": "8192", "LOCAL_API_KEY": "k"})
    found = (config.model.base_url, config.window.limit_tokens, config.model.api_key)
    assert found == ("http://10.0.0.5:80", 8192, "k")
