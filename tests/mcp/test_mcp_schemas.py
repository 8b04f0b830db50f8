"""Schemas of MCP tools for the Messages API: nothing is combined at the root, and what was allowed stays allowed."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents.mcp.schemas import for_api, with_plain_names

NAMES = st.sampled_from(["a", "b", "c"])
READINGS = st.sampled_from([{"type": "integer"}, {"type": "string"}, {"enum": [1, "x"]}, {}])
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(NAMES, READINGS, max_size=3),
        "required": st.lists(NAMES, unique=True, max_size=2),
        "additionalProperties": st.booleans() | READINGS,
        "unevaluatedProperties": st.just(False),
        "patternProperties": st.sampled_from([{"[ad]": {}}, {"b": {"type": "string"}}]),
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/closed"]),
    },
)


def combined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    branches = st.lists(inner, min_size=1, max_size=3)
    return st.tuples(PLAIN, st.dictionaries(st.sampled_from(["oneOf", "anyOf", "allOf"]), branches, max_size=2)).map(
        lambda both: {**both[0], **both[1]}
    )


ONE = {"properties": {"c": {"type": "integer"}}, "required": ["c"]}
CLOSED = {"properties": {"a": {"type": "integer"}}, "additionalProperties": False}
SCHEMAS = st.recursive(PLAIN, combined, max_leaves=6).map(
    lambda schema: {"type": "object", **schema, "$defs": {"one": ONE, "closed": CLOSED}}
)
INSTANCES = st.dictionaries(NAMES | st.just("d"), st.sampled_from([1, "x", None]), max_size=4)


@given(SCHEMAS, INSTANCES)
@example({"oneOf": [{}, {"properties": {"a": {"type": "integer"}}}]}, {"a": "x"})
@example({"$ref": "#/$defs/closed", "properties": {"b": {}}, "$defs": {"closed": CLOSED}}, {"a": 1})
@example({"unevaluatedProperties": False, "anyOf": [{"additionalProperties": True}]}, {"a": 1})
@example({"anyOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": True}}}]}, {"a": True})
def test_all_that_was_allowed_is_allowed_and_nothing_is_combined_at_the_root(
    schema: dict[str, Any], instance: dict[str, Any]
) -> None:
    flat, _ = for_api(schema)
    assert flat["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "$ref"} & flat.keys()
    if Draft202012Validator(schema).is_valid(instance):
        assert Draft202012Validator(flat).is_valid(instance), flat


@pytest.mark.parametrize("kind", ["oneOf", "anyOf"])
def test_the_alternatives_are_described(kind: str) -> None:
    flat, alternatives = for_api(
        {
            "type": "object", "properties": {"in": {"type": "string"}}, "required": ["in"],
            kind: [
                {"properties": {"x": {"type": "integer"}}, "required": ["x"]},
                {"properties": {"x": {"type": "string"}, "y": {}}, "required": ["x", "y"]},
            ],
        }
    )  # fmt: skip
    assert flat["properties"]["x"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert flat["properties"]["y"] == {}
    assert flat["required"] == ["in", "x"]
    assert alternatives == "Give one of: x; x, y."


def test_a_plain_schema_stays_as_it_is() -> None:
    schema = {"$schema": "x", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    plain = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    assert for_api(schema) == (plain, "")


@given(st.lists(st.text(max_size=70) | st.sampled_from(["$a", "_a", "_a_2", "@a", "a" * 64 + "b"]), unique=True))
def test_every_property_has_a_name_of_its_own_that_leads_back(names: list[str]) -> None:
    schema, own = with_plain_names({"properties": {name: {"title": name} for name in names}, "required": names})
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in schema["properties"])
    assert [own.get(name, name) for name in schema["properties"]] == names
    assert schema["required"] == list(schema["properties"]) if names else schema["required"] == []
    assert all(each["title"] == own.get(name, name) for name, each in schema["properties"].items())
