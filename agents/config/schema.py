"""The JSON schema of an agent's YAML file, for editors: completion, the meaning of a key, mistakes while typing.

    >>> json_schema()["properties"]["name"]["description"]
    "The agent's name, and that of the directory with its memory."

It is made from the same models that `agents.config.agent_config` reads with, and is written to configs/agent.schema.json:

    python -m agents.config.schema > configs/agent.schema.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from agents.config.agent_config import AgentConfig

# Editors know this draft best.
DRAFT = "http://json-schema.org/draft-07/schema#"
EXPANSION = {
    "description": "Taken from the environment.",
    "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\}$",
    "type": "string",
}
# A plain text may be anything already, so only these need the permission to be a `${VAR}`.
_NARROW_TYPES = frozenset({"integer", "number", "boolean"})
_NARROW_WORDS = frozenset({"enum", "const", "pattern"})
Schema = dict[str, Any]


def json_schema() -> Schema:
    raw = AgentConfig.model_json_schema()
    definitions: dict[str, Schema] = raw.pop("$defs")
    root = _section(raw, definitions)
    root["anyOf"] = [{"required": root.pop("required")}, {"required": ["extends"]}]  # what is missing may be there
    sections = {name: _section(section, definitions) for name, section in definitions.items()}
    return {
        "$schema": DRAFT,
        "title": "An agent of selfpager",
        **root,
        "$defs": {**sections, "Expansion": EXPANSION},
    }


def rendered() -> str:
    """The schema as the file holds it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _section(section: Schema, definitions: Mapping[str, Schema]) -> Schema:
    required = section.get("required", [])
    properties: dict[str, Schema] = section["properties"]
    return {
        **_untitled(section),
        "properties": {
            key: _property(schema, definitions, optional=key not in required) for key, schema in properties.items()
        },
    }


def _property(schema: Schema, definitions: Mapping[str, Schema], *, optional: bool) -> Schema:
    """Its meaning and its default, then everything that may stand there: a value, a `${VAR}`, nothing at all."""
    rest = _untitled(schema)
    about = {word: rest.pop(word) for word in ("description", "default") if word in rest}
    if isinstance(about.get("default"), dict | list | None):  # the defaults of a section's keys stand with the keys
        about.pop("default", None)
    if "description" not in about:  # pydantic leaves out what the section says in the same words
        about = {"description": definitions[rest["$ref"].rpartition("/")[2]]["description"], **about}
    choices: list[Schema] = rest.pop("anyOf", None) or rest.pop("oneOf", None) or [rest]
    if any(choice.get("type") in _NARROW_TYPES or _NARROW_WORDS & choice.keys() for choice in choices):
        choices = [*choices, {"$ref": "#/$defs/Expansion"}]
    if optional and {"type": "null"} not in choices:
        choices = [*choices, {"type": "null"}]
    return {**about, "anyOf": choices} if len(choices) > 1 else {**about, "allOf": choices}


def _untitled(schema: Schema) -> Schema:
    """pydantic's titles only repeat the key."""
    return {word: value for word, value in schema.items() if word != "title"}


if __name__ == "__main__":
    sys.stdout.write(rendered())
