"""The bodies of requests. `/openapi.json` is made from them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(description="letters, digits, '.', '_' and '-', at most 64", max_length=64)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class Asked(BaseModel):
    """The fields of a request, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Nothing(Asked):
    """No field."""


class Said(Asked):
    """A message of a person, by name if several talk to the agent."""

    text: Text
    name: str | None = None


class Told(Said):
    """A message that nobody waits to be answered."""


class TaskAsked(Asked):
    """A long task."""

    text: Text


class Allowed(Asked):
    """A person's word about a call."""

    allow: bool


class Made(Asked):
    """An agent to make. `config` may be left out if the server has one."""

    id: Id
    config: str | None = None


class Searched(Asked):
    """A question to the memory: to facts (`archive`), what was said (`recall`), or both."""

    query: Text
    tier: Literal["memory", "archive", "recall"] = "memory"
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    tags: list[str] | None = None
    source: str | None = None
    as_of: str | None = Field(None, description="archive: what was true then")
    after: str | None = None
    before: str | None = None


class FactAsked(Asked):
    """A fact to store. One with the `key` of a current fact supersedes it."""

    text: Text
    key: str | None = None
    tags: list[str] = []
    valid_from: str | None = None
    valid_until: str | None = None


class BlockEdit(Asked):
    """An edit of a core block: `append` a text, or replace `old_text`, which stands there once, by `new_text`."""

    append: str | None = None
    old_text: str | None = None
    new_text: str | None = None


class Decision(Asked):
    """The edits of a proposal that are meant; left out: all that are open."""

    edits: Annotated[list[int], Field(min_length=1)] | None = None
