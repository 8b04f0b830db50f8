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
from tests.config.conftest import EVERYTHING
from tests.support.places import paths, put

CONFIGS = Path(__file__).parents[2] / "configs"
SCHEMA = json_schema()
ALLOWED = Draft7Validator(SCHEMA)


def test_the_file_for_editors_is_current() -> None:
    written = (CONFIGS / "agent.schema.json").read_text(encoding="utf-8")
    assert written == rendered(), "run: selfpager schema > configs/agent.schema.json"


def test_it_is_a_schema_of_every_key_with_its_meaning_and_of_no_other() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["title"] == "An agent of selfpager"
    assert "$id" not in SCHEMA
    assert set(SCHEMA["properties"]) == set(AgentConfig.model_fields)
    sections = [SCHEMA, *(section for section in SCHEMA["$defs"].values() if "properties" in section)]
    assert all(section["additionalProperties"] is False for section in sections)
    keys = [(key, about) for section in sections for key, about in section["properties"].items()]
    assert len(keys) > 40
    assert not [key for key, about in keys if len(about.get("description", "")) < 5]


@pytest.mark.parametrize(
    ("data", "valid"),
    [
        ({"name": "x"}, True),
        ({"extends": "base.yaml"}, True),  # which may have the name
        ({"version": 1}, False),
        ({"name": "../x"}, False),
        ({"name": "x", "modle": {}}, False),
        ({"name": "x", "model": {"provider": "anthropc"}}, False),
        ({"name": "x", "window": {"limit_tokens": "many"}}, False),
        ({"name": "x", "window": {"limit_tokens": 0}}, False),
        ({"name": "x", "window": {"evict_at": 1.5}}, False),
        ({"name": "x", "core": {"blocks": {"9x": {}}}}, False),
        ({"name": "x", "tools": [{"use": "nothing"}]}, False),
        ({"name": "x", "tools": [{"use": "a:b", "mcp": {}}]}, False),
        ({"name": "x", "recall": {"digest": "never"}}, False),
        ({"name": "x", "prices": {"input": 1}}, False),
    ],
)
def test_it_sees_what_load_would_refuse(data: dict[str, Any], valid: bool) -> None:
    assert ALLOWED.is_valid(data) == valid


odd = st.sampled_from([None, "x", "${A}", "${A:-x}", 0, 1, -1, 5, 0.5, 1e9, True, [], {}, "build", "9x", "a:b", "../x"])


def is_loaded(file: Path, value: str) -> bool:
    try:
        load(file, {"A": value})
    except ConfigError:
        return False
    return True


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
    if any(is_loaded(file, value) for value in ("1", "true", "off", "http://x", "a:b")):
        assert ALLOWED.is_valid(data)
