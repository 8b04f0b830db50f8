"""Write docs/agent-keys.md from configs/agent.schema.json: every key of an agent's YAML, its type, default and meaning.

python docs/keys.py
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEMA, PAGE = ROOT / "configs" / "agent.schema.json", ROOT / "docs" / "agent-keys.md"
HEAD = """\
<!-- made by `python docs/keys.py` from configs/agent.schema.json; not written by hand -->

# Every key of an agent's YAML

[Agents in YAML](agents.md) explains how the keys work together. Only `name` has to be there. A key without a value
means its default. A value may be `${VARIABLE}` or `${VARIABLE:-default}`, from the environment. `selfpager render`
shows an agent with every default, `selfpager schema` prints the schema from which this page is made.
"""
PLAIN = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
TITLES = {
    "FunctionTool": "tools: a Python function", "ServerTools": "tools: an MCP server",
    "FilesTool": "tools: builtin: files", "WebTool": "tools: builtin: web", "ShellTool": "tools: builtin: shell",
    "ProviderTool": "tools: a tool of the provider", "HelperTool": "tools: another agent",
}  # fmt: skip
Schema = dict[str, Any]


def page(schema: Schema) -> str:
    """Return the whole page: a section for the file itself and one for each mapping in it, in reading order."""
    sections: dict[str, tuple[str, Schema]] = {}
    collect(schema, "", schema["$defs"], sections)
    parts = [HEAD, section("The file", schema, sections)]
    parts += [section(title, schema["$defs"][name], sections) for name, (title, _) in sections.items()]
    return "\n".join(parts)


def collect(node: Schema, path: str, defs: Schema, sections: dict[str, tuple[str, Schema]]) -> None:
    """Find the mappings below `node`, and give each the title under which its keys are listed."""
    for key, value in node.get("properties", {}).items():
        for name, many in references(value):
            if name in sections or name == "Expansion":
                continue
            here = f"{path}.{key}".lstrip(".") + (".NAME" if many == "named" else "")
            sections[name] = (TITLES.get(name, here), defs[name])
            collect(defs[name], here, defs, sections)


def references(value: Any, many: str = "") -> list[tuple[str, str]]:
    """Return the mappings that a value may be, each with "named" or "listed" if there may be several."""
    if isinstance(value, list):
        return [found for each in value for found in references(each, many)]
    if not isinstance(value, dict):
        return []
    if "$ref" in value:
        return [(value["$ref"].rpartition("/")[2], many)]
    found = references([value.get(word, []) for word in ("anyOf", "oneOf", "allOf")], many)
    found += references(value.get("items"), "listed")
    return found + references(value.get("additionalProperties"), "named")


def section(title: str, schema: Schema, sections: dict[str, tuple[str, Schema]]) -> str:
    """Return a heading, what the mapping is for, and the table of its keys."""
    lines = [f"## {title}", "", cell(schema.get("description", "")), ""]
    lines += ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    required = schema.get("required", [])
    for key, value in schema["properties"].items():
        default = "(required)" if key in required else given(value)
        lines.append(f"| `{key}` | {kind(value, sections)} | {default} | {cell(value.get('description', ''))} |")
    return "\n".join(lines) + "\n"


def given(value: Schema) -> str:
    """Return the default as it would be written, or nothing where the meaning says it."""
    if value.get("default") in (None, "", {}, []):
        return ""
    default = value["default"]
    return f"`{json.dumps(default) if isinstance(default, bool | list) else default}`"


def kind(value: Schema, sections: dict[str, tuple[str, Schema]]) -> str:
    """Return what the value may be, in a few words."""
    kinds: list[str] = []
    for each in value.get("anyOf", value.get("allOf", [value])):
        kinds += [each_kind(each, sections)]
    return " or ".join(dict.fromkeys(filter(None, kinds)))


def each_kind(value: Schema, sections: dict[str, tuple[str, Schema]]) -> str:
    """Return one of the kinds that a value may have; nothing for `null` and variables, which HEAD explains."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return "" if name == "Expansion" else link(sections[name][0])
    if "enum" in value or "const" in value:
        return ", ".join(f"`{choice}`" for choice in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        items = value["items"]
        inner = [link(sections[name][0]) for name, _ in references(items)]
        return "a list: " + (", ".join(inner) or each_kind(items, sections)) if inner or items else "a list"
    if value.get("type") == "object":
        inner = [link(sections[name][0]) for name, _ in references(value)]
        return "by name: " + inner[0] if inner else "a mapping"
    return PLAIN.get(str(value.get("type")), "")


def link(title: str) -> str:
    """Return a link to the section of this title."""
    slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{slug})"


def cell(text: str) -> str:
    """Return a text that a cell of a Markdown table can hold, with code where the schema's authors wrote examples."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(SCHEMA.read_text(encoding="utf-8"))), encoding="utf-8")
