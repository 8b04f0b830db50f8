"""The schema of a task's result: from a file or a class, what does not fit it, and its place in a tool's definition."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, field_validator

from agents.tools.functions import ToolConfigError
from agents.tools.results import ResultSchema

TREE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.org/tree",
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"$ref": "#/$defs/name"}, "below": {"type": "array", "items": {"$ref": "#"}}},
    "$defs": {"name": {"type": "string", "minLength": 1}},
}


class Hat(BaseModel):
    colour: str
    price: int

    @field_validator("price")
    @classmethod
    def _even(cls, price: int) -> int:
        if price % 2:
            raise ValueError("an odd price")
        return price


class Hats(BaseModel):
    hats: list[Hat]


def written(tmp_path: Path, schema: Any) -> ResultSchema:
    file = tmp_path / "schema.json"
    file.write_text(schema if isinstance(schema, str) else json.dumps(schema), encoding="utf-8")
    return ResultSchema.read_file(file)


def test_a_class_says_more_than_its_schema() -> None:
    hats = ResultSchema.of(Hats)
    assert hats.read({"hats": [{"colour": "red", "price": 2}]}) == Hats(hats=[Hat(colour="red", price=2)])
    assert hats.fault_of({"hats": [{"colour": "red", "price": 2}]}) == ""
    assert hats.fault_of({"hats": [{"price": 3}]}) == (
        "hats.0.colour: Field required; hats.0.price: Value error, an odd price"
    )
    assert hats.fault_of(None).startswith("the result: Input should be an object")


def test_a_dataclass_is_fine() -> None:
    @dataclass
    class Point:
        x: int

    assert ResultSchema.of(Point).read({"x": 1}) == Point(1)


def test_a_schema_says_where_and_why(tmp_path: Path) -> None:
    tree = written(tmp_path, TREE)
    assert tree.fault_of({"name": "a", "below": [{"name": "b"}]}) == ""
    assert tree.fault_of({"name": "a", "below": [{"name": ""}]}).startswith("below.0.name: ")
    assert "and 3 more" in tree.fault_of({"name": "a", "below": 8 * [{"name": 1}]})


@pytest.mark.parametrize("schema", [TREE, ResultSchema.of(Hats).schema])
def test_inside_of_a_tool_it_means_the_same(schema: dict[str, Any]) -> None:
    own = {"type": "object", "properties": {"result": {"description": "as asked"}, "summary": {"type": "string"}}}
    definition = ResultSchema(schema).within({"name": "t", "input_schema": own}, "result")["input_schema"]
    Draft202012Validator.check_schema(definition)
    tool, alone = Draft202012Validator(definition), ResultSchema(schema)
    for result in ({"name": "a", "below": [{"name": "b"}]}, {"name": "a", "below": [{"name": 1}]}, {},
                   {"hats": [{"colour": "red", "price": 2}]}, {"hats": [{"price": "x"}]}, []):  # fmt: skip
        assert tool.is_valid({"result": result}) == (alone.fault_of(result) == "")
    assert own["properties"]["result"] == {"description": "as asked"}


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ("{", "cannot be read as JSON"),
        ([], "has to be an object"),
        ({"type": "objekt"}, "type: 'objekt' is not valid"),
        ({"properties": {"a": {"$ref": "https://example.org/a.json"}}}, "Other files and addresses are not read"),
        ({"properties": {"a": {"$ref": "#/$defs/nothing"}}}, "refers to nothing in it"),
        ({"$schema": 5}, "$schema is 5, not the address"),
    ],
)
def test_what_is_no_schema(tmp_path: Path, schema: Any, wrong: str) -> None:
    with pytest.raises(ToolConfigError, match=r"schema\.json") as error:
        written(tmp_path, schema)
    assert wrong in str(error.value)


def test_a_result_or_a_schema_without_an_end_does_not_fit(tmp_path: Path) -> None:
    nested: list[Any] = []
    for _ in range(800):
        nested = [nested]
    lists = written(tmp_path, {"type": "array", "items": {"$ref": "#"}})
    assert lists.fault_of([[], [[]]]) == ""
    assert "nested too deeply" in lists.fault_of(nested)
    assert "nested too deeply" in written(tmp_path, {"$ref": "#"}).fault_of(1)


def test_what_is_no_class() -> None:
    class Plain:
        pass

    with pytest.raises(ToolConfigError, match="Give a pydantic class"):
        ResultSchema.of(Plain)
