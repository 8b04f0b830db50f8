from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from agents.config import yaml_file
from agents.config.agent_config import AgentConfig, load
from agents.config.errors import ConfigError
from agents.config.schema import json_schema, rendered
from tests.support.places import paths, put

CONFIGS = Path(__file__).parents[2] / "configs"
SCHEMA = json_schema()
ALLOWED = Draft7Validator(SCHEMA)
EVERYTHING: dict[str, Any] = {
    "version": 1,
    "name": "x",
    "model": {"provider": "vertex", "id": "m", "base_url": "http://x", "max_output_tokens": 100, "thinking": "off"},
    "window": {"limit_tokens": 6000, "notify_at": 0.5, "evict_at": 0.8, "evict_to": 0.4, "max_part_tokens": 500},
    "core": {"limit_tokens": 500, "blocks": {"human": {"value": "v", "limit_tokens": 5, "read_only": True}}},
    "recall": {"digest": {"summarize": {"model": "m"}}},
    "archival": {"embedder": "none", "prefetch": {"k": 0, "budget_tokens": 5}},
    "memory": {"tools": "none"},
    "tools": [
        {"use": "a.b:c", "idempotent": True, "approve": "always", "timeout_seconds": 5},
        {"mcp": {"command": ["a"], "env": {"A": "b"}}, "only": ["c"]},
        {"mcp": {"url": "http://x"}, "approve": "never"},
    ],
    "limits": {"max_steps": 5, "max_usd": 1.0, "max_minutes": 0.5},
    "prices": {"input": 1.0, "output": 2, "cache_read": 0, "cache_write": 0.5},
}


class Unexpanded(dict[str, str]):
    """An environment that leaves every variable in the text, which is what an editor sees."""

    def get(self, name: str, default: Any = None) -> str:
        return f"${{{name}}}"


def as_written(path: Path) -> dict[str, Any]:
    return yaml_file.read(path, Unexpanded()).data


def sections() -> dict[str, dict[str, Any]]:
    return {"": SCHEMA, **{name: each for name, each in SCHEMA["$defs"].items() if "properties" in each}}


def test_the_file_for_editors_is_current() -> None:
    written = (CONFIGS / "agent.schema.json").read_text(encoding="utf-8")
    assert written == rendered(), "run: selfpager schema > configs/agent.schema.json"


def test_it_is_a_schema_with_a_title_and_without_an_id() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["title"] == "An agent of selfpager"
    assert "$id" not in SCHEMA


def test_every_key_says_what_it_means() -> None:
    found = {
        f"{name}.{key}": each for name, section in sections().items() for key, each in section["properties"].items()
    }
    assert len(found) > 40
    assert not [key for key, each in found.items() if len(each.get("description", "")) < 5]


def test_every_key_of_the_models_is_there_and_no_other() -> None:
    assert set(SCHEMA["properties"]) == set(AgentConfig.model_fields)
    assert all(section["additionalProperties"] is False for section in sections().values())


def test_the_only_key_that_is_needed_is_a_name_unless_a_base_may_have_it() -> None:
    assert ALLOWED.is_valid({"name": "x"})
    assert ALLOWED.is_valid({"extends": "base.yaml"})
    assert not ALLOWED.is_valid({"version": 1})


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_the_agents_that_come_along_keep_to_it(path: Path) -> None:
    assert not list(ALLOWED.iter_errors(as_written(path)))


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
@pytest.mark.parametrize("section", [(), ("model",), ("window",), ("core",), ("archival", "prefetch")], ids=str)
def test_a_key_that_nobody_knows_is_seen_in_them(path: Path, section: tuple[str, ...]) -> None:
    data = put(as_written(path), section, {"name": "x", "zzz": 1} if not section else {"zzz": 1})
    assert [list(error.absolute_path) for error in ALLOWED.iter_errors(data)] == [list(section[:1])]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../x"},
        {"name": "x", "modle": {}},
        {"name": "x", "model": {"provider": "anthropc"}},
        {"name": "x", "window": {"limit_tokens": "many"}},
        {"name": "x", "window": {"limit_tokens": 0}},
        {"name": "x", "window": {"evict_at": 1.5}},
        {"name": "x", "core": {"blocks": {"9x": {}}}},
        {"name": "x", "tools": [{"use": "nothing"}]},
        {"name": "x", "tools": [{"use": "a:b", "mcp": {}}]},
        {"name": "x", "recall": {"digest": "never"}},
        {"name": "x", "prices": {"input": 1}},
    ],
)
def test_it_sees_what_load_would_refuse(wrong: dict[str, Any]) -> None:
    assert not ALLOWED.is_valid(wrong)


odd = st.sampled_from([None, "x", "${A}", "${A:-x}", 0, 1, -1, 5, 0.5, 1e9, True, [], {}, "build", "9x", "a:b", "../x"])


@pytest.mark.slow
@given(st.sampled_from(paths(EVERYTHING)[1:]), odd)
@example(("window", "limit_tokens"), "${A}")
@example(("tools", 0, "idempotent"), "${A}")
@example(("tools",), None)
@example(("version",), True)
def test_it_never_complains_about_what_load_accepts(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[str | int, ...], new: Any
) -> None:
    data = put(EVERYTHING, path, new)
    file = tmp_path_factory.mktemp("any") / "a.yaml"
    file.write_text(yaml_file.dump(data), encoding="utf-8")
    accepted = set[str]()
    for environ in ({"A": "1"}, {"A": "true"}, {"A": "off"}, {"A": "http://x"}, {"A": "a:b"}):
        try:
            load(file, environ)
        except ConfigError:
            continue
        accepted.add(environ["A"])
    assert not accepted or ALLOWED.is_valid(data)
