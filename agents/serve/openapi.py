"""The description of the API, made from its endpoints and their types, as OpenAPI and as a page for people."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from agents.serve.calls import Endpoint
from pager.types import Json

REF = "#/components/schemas/{model}"
RESPONSES = {
    "400": "The request cannot be carried out as it is.", "401": "No key, or one that is not valid.",
    "403": "The key has not the scope.", "404": "There is nothing of this name that is yours.",
    "409": "The agent is in a state in which this cannot be.", "429": "There is too much to do: see Retry-After.",
    "5XX": "The server, the home or the model cannot answer now.",
}  # fmt: skip
ABOUT = """Agents whose memory works like an operating system's. Send a key as `Authorization: Bearer KEY` or
`x-api-key: KEY`. Every error is JSON with `type`, `message` and `advice`. What begins a turn takes an
`Idempotency-Key`: the same key gives the same answer and never a second turn."""
STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
background:var(--paper);color:var(--ink)}
:root{color-scheme:light dark;--paper:#fff;--ink:#1c1c1e;--line:#d0d0d4;--soft:#f4f4f6}
@media(prefers-color-scheme:dark){:root{--paper:#17181b;--ink:#ececee;--line:#3a3b40;--soft:#212226}}
code,pre{font:14px/1.45 ui-monospace,monospace;background:var(--soft);border-radius:4px;padding:.1em .3em}
pre{padding:.8rem;overflow:auto}details{border-top:1px solid var(--line);padding:.6rem 0}summary{cursor:pointer}
summary b{display:inline-block;min-width:4.5rem}table{border-collapse:collapse}td,th{text-align:left;padding:.2rem .8rem
.2rem 0;vertical-align:top}"""


def describe(endpoints: Sequence[Endpoint]) -> Json:
    """Return the API as OpenAPI 3.1."""
    asked = {each.body for each in endpoints if each.body}
    given = {shape for each in endpoints for shape in (each.answers, each.failed)}
    kinds: list[tuple[type[BaseModel], Any]] = [
        *((shape, "validation") for shape in sorted(asked, key=_name)),
        *((shape, "serialization") for shape in sorted(given - asked, key=_name)),
    ]
    references, schemas = models_json_schema(kinds, ref_template=REF)
    shape_of: dict[Any, Any] = {shape: reference for (shape, _), reference in references.items()}
    paths: Json = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, shape_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "selfpager", "version": _version(), "description": " ".join(ABOUT.split())},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
        "security": [{"bearer": []}, {"key": []}],
    }


def _operation(each: Endpoint, shape_of: dict[Any, Any]) -> Json:
    summary, _, more = (line.strip() for line in each.about.strip().partition("\n"))
    given: Json = {"application/json": {"schema": shape_of[each.answers]}}
    if each.streams:
        given["text/event-stream"] = {"schema": {"type": "string"}}
    failed = {"application/json": {"schema": shape_of[each.failed]}}
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in each.gives.items()}
    about = (each.answers.__doc__ or "").strip()
    operation: Json = {
        "operationId": each.name,
        "summary": summary,
        "description": " ".join(f"{more} Needs the scope {each.scope}.".split()),
        "parameters": [*_parameters(each)],
        "responses": {
            str(each.status): {"description": about, "content": given, "headers": headers},
            **{status: {"description": text, "content": failed} for status, text in RESPONSES.items()},
        },
    }
    if each.body:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": shape_of[each.body]}}}
    return operation


def _parameters(each: Endpoint) -> Iterable[Json]:
    text = {"type": "string"}
    for name in re.findall(r"{(\w+)}", each.path):
        yield {"name": name, "in": "path", "required": True, "schema": text}
    for name, about in each.query.items():
        kind = {"type": "integer"} if name in ("limit", "offset") else text
        yield {"name": name, "in": "query", "description": about, "schema": kind}
    for name, about in each.takes.items():
        yield {"name": name, "in": "header", "description": about, "schema": text}


def as_page(api: Json) -> str:
    """Return the API as a page that loads nothing."""
    parts = [f"<h1>selfpager {escape(api['info']['version'])}</h1><p>{_words(api['info']['description'])}</p>"]
    parts.append('<p>The same for programs: <a href="openapi.json">openapi.json</a></p>')
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            parts.append(_operation_as_html(method.upper(), path, operation, api["components"]["schemas"]))
    head = f"<!doctype html><meta charset=utf-8><title>selfpager: the API</title><style>{STYLE}</style>"
    return f"{head}<meta name=viewport content='width=device-width'>{''.join(parts)}"


def _operation_as_html(method: str, path: str, operation: Json, schemas: Json) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code><td>{each['in']}<td>{_words(each.get('description', ''))}"
        for each in operation["parameters"]
    )
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    status, answer = next(iter(operation["responses"].items()))
    given = answer["content"]["application/json"]["schema"]
    return (
        f"<details><summary><b>{method}</b> <code>{escape(path)}</code> {_words(operation['summary'])}</summary>"
        f"<p>{_words(operation['description'])}</p><table>{rows}</table>"
        + (f"<p>Body</p><pre>{_fields(body, schemas)}</pre>" if body else "")
        + f"<p>{status}: {_words(answer['description'])}</p><pre>{_fields(given, schemas)}</pre></details>"
    )


def _fields(schema: Json, schemas: Json) -> str:
    """Return the fields of a shape, a line for each, with those of shapes inside."""
    found = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    lines = [
        f"{name}{'' if name in found.get('required', ()) else '?'}: {_kind(field, schemas)}"
        for name, field in found.get("properties", {}).items()
    ]
    return escape("\n".join(lines)) or "{}"


def _kind(field: Json, schemas: Json) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        inner = ", ".join(schemas[name].get("properties", {}))
        return f"{{{inner}}}"
    if "anyOf" in field:
        return " | ".join(_kind(each, schemas) for each in field["anyOf"])
    if field.get("type") == "array":
        return f"[{_kind(field.get('items', {}), schemas)}]"
    if "enum" in field:
        return " | ".join(map(repr, field["enum"]))
    return str(field.get("format") or field.get("type") or "any")


def _words(text: str) -> str:
    """Return a text for HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _name(shape: type[BaseModel]) -> str:
    return shape.__name__


def _version() -> str:
    try:
        return version("selfpager")
    except PackageNotFoundError:
        return "unknown"
