"""The JSON schema of an agent's YAML file, for editors: completion, the meaning of a key, mistakes while typing.

    >>> json_schema()["properties"]["name"]["description"]
    "The agent's name, and that of the directory with its memory."

It is made from the models that `load` validates with. `selfpager schema` writes it: > configs/agent.schema.json.
"""

import json
from typing import Any

from agents.config.agent_config import AgentConfig

EXPANSION = {
    "description": "Taken from the environment.",
    "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\}$",
    "type": "string",
}
# Where any text is allowed a `${VAR}` is too; only these need the permission.
_NARROW_TYPES = frozenset({"integer", "number", "boolean"})
_NARROW_WORDS = frozenset({"enum", "const", "pattern"})
Schema = dict[str, Any]


def json_schema() -> Schema:
    """Return the schema in draft 7, which editors support best."""
    raw = AgentConfig.model_json_schema()
    definitions: dict[str, Schema] = raw.pop("$defs")
    root = _section(raw, definitions)
    root["anyOf"] = [{"required": root.pop("required")}, {"required": ["extends"]}]  # a base may have what is missing
    sections = {name: _section(section, definitions) for name, section in definitions.items()}
    about = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "An agent of selfpager"}
    return {**about, **root, "$defs": {**sections, "Expansion": EXPANSION}}


def rendered() -> str:
    """Return the text of configs/agent.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _section(section: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return a section without pydantic's titles, which only repeat the keys."""
    required = section.get("required", [])
    properties = {
        key: _property(schema, definitions, optional=key not in required)
        for key, schema in section["properties"].items()
    }
    return {word: value for word, value in section.items() if word != "title"} | {"properties": properties}


def _property(schema: Schema, definitions: dict[str, Schema], *, optional: bool) -> Schema:
    """Return a key's meaning and default, then everything that may be its value: a value, a `${VAR}`, nothing."""
    rest = {word: value for word, value in schema.items() if word not in ("title", "description", "default")}
    meaning = schema.get("description") or definitions[rest["$ref"].rpartition("/")[2]]["description"]
    about = {"description": " ".join(meaning.split())}  # written in several lines
    default = schema.get("default")
    if not isinstance(default, dict | list | None):  # a section's keys have defaults of their own
        about["default"] = default
    choices: list[Schema] = rest.pop("anyOf", None) or rest.pop("oneOf", None) or [rest]
    if any(choice.get("type") in _NARROW_TYPES or _NARROW_WORDS & choice.keys() for choice in choices):
        choices = [*choices, {"$ref": "#/$defs/Expansion"}]
    if optional and {"type": "null"} not in choices:
        choices = [*choices, {"type": "null"}]
    return {**about, "anyOf" if len(choices) > 1 else "allOf": choices}
