"""Convert the input schemas of MCP tools to what the Messages API takes: an object without oneOf, anyOf, allOf or $ref
at its root.

Pure. The properties of all branches become properties of the root, what every branch requires stays required, and the
alternatives are described in words. The new schema allows everything that the old one did: a property that some branch
leaves open may be anything, and its type in the other branches is only a hint. The server gets the arguments unchanged
and refuses what fits no branch. Property names that the API refuses ($filter) are replaced by `with_plain_names`.

    >>> schema, alternatives = for_api({"type": "object", "oneOf": [
    ...     {"properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": False},
    ...     {"properties": {"name": {"type": "string"}}, "required": ["name"]}]})
    >>> schema
    {'type': 'object', 'properties': {'id': {'anyOf': [{'type': 'integer'}, {}]}, 'name': {'type': 'string'}}}
    >>> alternatives
    'Give one of: id; name.'
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from agents.tools.functions import Json

CHOICES = ("oneOf", "anyOf")
MAX_NAME_CHARS = 64  # of a tool and of a property, as the API takes them
MAX_DEPTH = 8  # of branches within branches, and of references that lead back to themselves
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_.-]")


class Shape(NamedTuple):
    """What an object may hold. `is_open` is True if properties that are not named may be anything."""

    properties: Json
    required: list[str]
    alternatives: list[str]
    is_open: bool


def for_api(schema: Mapping[str, Any]) -> tuple[Json, str]:
    """Return the schema without combinations at its root, and a sentence that names the alternatives."""
    root = _resolve(schema, schema)
    combined = {*CHOICES, "allOf"} & root.keys()
    plain = {key: value for key, value in root.items() if key not in ("$schema", "type", *combined)}
    if not combined:
        return {"type": "object", **plain}, ""
    shape = _shape(root, schema, MAX_DEPTH)
    plain.pop("unevaluatedProperties", None)
    if not shape.properties.keys() <= cast(Json, root.get("properties") or {}).keys():
        plain.pop("additionalProperties", None)  # it would now allow what the root itself did not name
    flat = {"type": "object", **plain, "properties": shape.properties, "required": shape.required}
    sentence = f"Give one of: {'; '.join(shape.alternatives)}." if len(shape.alternatives) > 1 else ""
    return {key: value for key, value in flat.items() if key != "required" or value}, sentence


def with_plain_names(schema: Json) -> tuple[Json, dict[str, str]]:
    """Return the schema with property names that the API takes, and the server's own name for each new one."""
    properties = cast(Json, schema.get("properties") or {})
    taken = {name for name in properties if name == _plain(name)}
    new: dict[str, str] = {}
    for name in [name for name in properties if name not in taken]:
        plain = unused = _plain(name)
        for number in range(2, len(properties) + 2):
            if unused not in taken:
                break
            unused = f"{plain[: MAX_NAME_CHARS - len(str(number)) - 1]}_{number}"
        new[name] = unused
        taken.add(unused)
    if not new:
        return schema, {}
    renamed = {**schema, "properties": {new.get(name, name): value for name, value in properties.items()}}
    if schema.get("required"):
        renamed["required"] = [new.get(str(name), name) for name in schema["required"]]
    return renamed, {plain: name for name, plain in new.items()}


def _plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME_CHARS] or "_"


def _resolve(schema: Any, root: Mapping[str, Any]) -> Json:
    """Follow `#/...` references. What stands beside a reference holds, too; where both have a key, as an allOf."""
    resolved = dict(cast("Mapping[str, Any]", schema)) if isinstance(schema, Mapping) else {}
    for _ in range(MAX_DEPTH):
        reference = resolved.pop("$ref", None)
        if reference is None:
            return resolved
        target: Any = root if isinstance(reference, str) and reference.startswith("#/") else {}
        for name in str(reference)[2:].split("/"):
            target = _object(target).get(name.replace("~1", "/").replace("~0", "~"))
        target = _object(target)
        if target.keys() & resolved.keys():
            return {**resolved, "allOf": [*_branches(resolved, "allOf"), target]}
        resolved = {**target, **resolved}
    return {}


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _branches(schema: Json, name: str) -> list[Any]:
    return cast("list[Any]", schema[name]) if isinstance(schema.get(name), list) else []


def _shape(schema: Any, root: Mapping[str, Any], depth: int) -> Shape:
    here = _resolve(schema, root)
    is_open = here.get("additionalProperties") is not False or "patternProperties" in here
    required = [str(name) for name in here.get("required") or ()]
    shape = Shape(dict(cast(Json, here.get("properties") or {})), required, [], is_open)
    if not depth:
        return shape
    for branch in _branches(here, "allOf"):
        shape = _both(shape, _shape(branch, root, depth - 1))
    for name in CHOICES:
        if ways := [_shape(branch, root, depth - 1) for branch in _branches(here, name)]:
            names = {name for way in ways for name in way.properties}
            left_open = [dict.fromkeys(sorted(names - way.properties.keys()), Json()) for way in ways if way.is_open]
            either = Shape(
                _merge([*(way.properties for way in ways), *left_open]),
                [name for name in ways[0].required if all(name in way.required for way in ways)],
                list(dict.fromkeys(", ".join(way.required) or "nothing" for way in ways)),
                any(way.is_open for way in ways),
            )
            shape = _both(shape, either)
    return shape


def _both(one: Shape, other: Shape) -> Shape:
    return Shape(
        _merge([one.properties, other.properties]),
        list(dict.fromkeys([*one.required, *other.required])),
        one.alternatives + other.alternatives,
        one.is_open and other.is_open,
    )


def _merge(shapes: Iterable[Json]) -> Json:
    """Return each property once; where its schemas differ, any of them will do."""
    schemas: dict[str, dict[str, Any]] = {}
    for properties in shapes:
        for name, schema in properties.items():
            schemas.setdefault(name, {})[json.dumps(schema, sort_keys=True)] = schema
    return {
        name: next(iter(found.values())) if len(found) == 1 else {"anyOf": [*found.values()]}
        for name, found in schemas.items()
    }
