"""Snapshots, traces and the public types of pager as JSON: the same in `--json` and in the debug view."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, cast

from pager.types import Fact, FactUse, Json, Residency


def to_json(value: Any) -> Any:
    """Return a value for JSON: data classes as objects, times in ISO 8601, ids as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, FactUse):
        return {**to_json(value.fact), "uses": value.uses, "used_at": to_json(value.used_at)}
    if isinstance(value, Fact):  # without counted uses
        return {"page_id": value.id, **_fields(value, "id", "supersedes"), "uses": None, "used_at": None}
    if isinstance(value, Residency):
        return {"page_id": value.page_id, "how": value.how, "since": value.from_step}
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in cast("Sequence[Any]", value)]
    return value


def _fields(value: Any, *left_out: str) -> Json:
    return {field.name: to_json(getattr(value, field.name)) for field in fields(value) if field.name not in left_out}
