"""Snapshots, traces and the public types of pager as JSON: the same in `--json` and in the debug view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, cast

from pager.types import Fact, FactUse, Json, Residency


def to_json(value: Any) -> Any:
    """Return a value for JSON: data classes as objects, times in ISO 8601, ids as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Fact):
        return _fact(value, None)
    if isinstance(value, FactUse):
        return _fact(value.fact, value)
    if isinstance(value, Residency):
        return {"page_id": value.page_id, "how": value.how, "since": value.from_step}
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in cast("Sequence[Any]", value)]
    return value


def _fields(value: Any) -> Json:
    return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}


def _fact(fact: Fact, use: FactUse | None) -> Json:
    """A fact. `uses` is None where the uses were not counted."""
    return {
        "page_id": fact.id,
        "text": fact.text,
        "key": fact.key,
        "tags": list(fact.tags),
        "at": fact.at.isoformat(),
        "actor": fact.actor,
        "step": fact.step,
        "valid_from": fact.valid_from.isoformat(),
        "valid_until": to_json(fact.valid_until),
        "forgotten": fact.forgotten,
        "superseded_by": fact.superseded_by,
        "purged": fact.purged,
        "uses": use.uses if use else None,
        "used_at": to_json(use.used_at) if use else None,
    }
