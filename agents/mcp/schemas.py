"""The input schemas of MCP tools as the Messages API takes them: an object, without oneOf, anyOf or allOf at its root.

Pure. What stood there is told in another way. The properties of all branches become properties of the root, what every
branch needs stays needed, and the alternatives are named in words. The new schema allows all that the old one did, and
the arguments go to the server as they are: it refuses what fits no branch, in its own words. Names of properties that
the API refuses ($filter) get others, which `with_plain_names` tells.

    >>> schema, told = for_api({"type": "object", "oneOf": [
    ...     {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
    ...     {"properties": {"name": {"type": "string"}}, "required": ["name"]}]})
    >>> schema
    {'type': 'object', 'properties': {'id': {'type': 'integer'}, 'name': {'type': 'string'}}}
    >>> told
    'Give one of: id; name.'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from agents.tools.functions import Json

CHOICES = ("oneOf", "anyOf")
LONGEST_NAME = 64  # of a tool and of a property, as the API takes them
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_.-]")
DEEPEST = 8  # branches within branches, and references that lead back to themselves


class Shape(NamedTuple):
    """What an object may hold: its properties, those it needs, and the ways to give them."""

    properties: Json
    required: list[str]
    ways: list[str]


def for_api(schema: Mapping[str, Any]) -> tuple[Json, str]:
    """The schema without combinations at its root, and what it said by them, in words."""
    root = _resolved(schema, schema)
    combined = {*CHOICES, "allOf"} & root.keys()
    plain = {key: value for key, value in root.items() if key not in ("$schema", "type", *combined)}
    if not combined:
        return {"type": "object", **plain}, ""
    shape = _shape(root, schema, DEEPEST)
    if not _names_all(root, schema):
        plain.pop("additionalProperties", None)
        plain.pop("unevaluatedProperties", None)
    flat = {"type": "object", **plain, "properties": shape.properties, "required": shape.required}
    told = f"Give one of: {'; '.join(shape.ways)}." if len(shape.ways) > 1 else ""
    return {key: value for key, value in flat.items() if key != "required" or value}, told


def with_plain_names(schema: Json) -> tuple[Json, dict[str, str]]:
    """The schema with names of properties that the API takes, and for each that is new the server's own."""
    properties = cast(Json, schema.get("properties") or {})
    plain = {name for name in properties if name == _plain(name)}
    new: dict[str, str] = {}
    for name in properties:
        if name not in plain:
            new[name] = _free(_plain(name), plain)
            plain.add(new[name])
    if not new:
        return schema, {}
    renamed = {**schema, "properties": {new.get(name, name): each for name, each in properties.items()}}
    if schema.get("required"):
        renamed["required"] = [new.get(str(name), name) for name in schema["required"]]
    return renamed, {told: name for name, told in new.items()}


def _plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:LONGEST_NAME] or "_"


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: LONGEST_NAME - len(str(number)) - 1]}_{number}"
    return free


def _resolved(schema: Any, root: Mapping[str, Any]) -> Json:
    """The schema behind `#/...` references, with what stands beside them."""
    found = dict(cast("Mapping[str, Any]", schema)) if isinstance(schema, Mapping) else {}
    for _ in range(DEEPEST):
        reference = found.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return found
        target: Any = root
        for name in reference[2:].split("/"):
            known = cast(Json, target) if isinstance(target, dict) else Json()
            target = known.get(name.replace("~1", "/").replace("~0", "~"))
        beside = {key: value for key, value in found.items() if key != "$ref"}
        found = {**(cast(Json, target) if isinstance(target, dict) else Json()), **beside}
    return {}


def _shape(schema: Any, root: Mapping[str, Any], deeper: int) -> Shape:
    here = _resolved(schema, root)
    properties = cast(Json, here.get("properties") or {})
    shape = Shape(dict(properties), [str(name) for name in here.get("required") or ()], [])
    if not deeper:
        return Shape(shape.properties, [], [])
    for branch in _branches(here, "allOf"):
        shape = _both(shape, _shape(branch, root, deeper - 1))
    for name in CHOICES:
        if ways := [_shape(branch, root, deeper - 1) for branch in _branches(here, name)]:
            shape = _both(shape, _either(ways))
    return shape


def _branches(schema: Json, name: str) -> Sequence[Any]:
    return cast("list[Any]", schema[name]) if isinstance(schema.get(name), list) else ()


def _both(one: Shape, other: Shape) -> Shape:
    required = list(dict.fromkeys([*one.required, *other.required]))
    return Shape(_merged([one.properties, other.properties]), required, one.ways + other.ways)


def _either(ways: Sequence[Shape]) -> Shape:
    needed = [name for name in ways[0].required if all(name in way.required for way in ways)]
    told = [", ".join(way.required) or "nothing" for way in ways]
    return Shape(_merged([way.properties for way in ways]), needed, list(dict.fromkeys(told)))


def _merged(of_all: Sequence[Json]) -> Json:
    """Each property once; where it reads differently, any of its readings will do."""
    readings: dict[str, list[Any]] = {}
    for properties in of_all:
        for name, reading in properties.items():
            known = readings.setdefault(name, [])
            if reading not in known:
                known.append(reading)
    return {name: known[0] if len(known) == 1 else {"anyOf": known} for name, known in readings.items()}


def _names_all(root: Json, schema: Mapping[str, Any]) -> bool:
    """Whether the root, by itself, named every property that its branches name: then what it closes may stay closed."""
    named = cast(Json, root.get("properties") or {})
    return _shape(root, schema, DEEPEST).properties.keys() <= named.keys()
