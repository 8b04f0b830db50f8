"""Schemas of MCP tools for the Messages API: nothing is combined at the root, and what was allowed stays allowed."""

import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents.mcp.client import WRAPPED, api_schema

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
@example({"$ref": "#/$defs/closed", "properties": {"b": {}}, "$defs": {"closed": CLOSED}}, {"a": 1})
@example({"type": "object", "anyOf": [{"properties": {"a": {"$ref": "#"}}}]}, {"a": {"a": 1}})
@example({"properties": {"$top": {"type": "integer"}}, "required": ["$top"]}, {"$top": 1})
def test_the_same_is_allowed_one_level_down_and_nothing_is_combined_at_the_root(
    schema: dict[str, Any], instance: dict[str, Any]
) -> None:
    sent, is_wrapped = api_schema(schema)
    assert sent["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "$ref"} & sent.keys()
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in sent.get("properties", ()))
    given = {WRAPPED: instance} if is_wrapped else instance
    assert Draft202012Validator(sent).is_valid(given) == Draft202012Validator(schema).is_valid(instance)


def test_a_plain_schema_stays_as_it_is() -> None:
    schema = {"$schema": "x", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    plain = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    assert api_schema(schema) == (plain, False)
