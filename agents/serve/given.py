"""The bodies of answers. `/openapi.json` is made from them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

SourceText = Annotated[str, BeforeValidator(str)]


class Given(BaseModel):
    """The fields of an answer."""

    model_config = ConfigDict(from_attributes=True)


class Empty(Given):
    """No field."""


class Stop(Given):
    """The end of a turn. `text` says what to do if it was not simply answered."""

    reason: str
    text: str = ""
    result: Any = None


class Spent(Given):
    """Tokens of a turn."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    web_search_requests: int = 0


class Answer(Given):
    """The answer to a request that began or continued a turn, by the request's `key`."""

    key: str
    text: str
    steps: list[str]
    usage: Spent
    stopped: Stop


class MessageLeft(Given):
    """The id of a message that was left."""

    message: str


class TaskState(Given):
    """A long task. `stopped` is why it stands still, if it does."""

    text: str
    step: str
    state: Literal["open", "done", "failed", "dropped"]
    summary: str
    result: Any
    steps: int
    usd: float
    tokens: int
    seconds: float
    stopped: str


class TaskBegun(Given):
    """A task that is on disk, and the key of the request."""

    key: str
    task: TaskState | None


class WaitingCall(Given):
    """A tool call that waits for a person."""

    id: str
    name: str
    input: dict[str, Any]
    why: str


class AgentState(Given):
    """An agent. `config` is null if the server has none for it: then it can be read, and does not answer."""

    id: str
    config: str | None
    state: str
    steps: int
    facts: int
    last_at: datetime | None
    window_share: float | None
    tokens: int
    usd: float | None
    task: str
    error: str
    approvals: list[WaitingCall] = []


class Agents(Given):
    """Agents by id. `next` is where the next page begins."""

    agents: list[str]
    next: str | None


class Block(Given):
    """A core block."""

    name: str
    value: str
    description: str
    limit_tokens: int
    used_tokens: int
    read_only: bool
    version: int
    actor: str
    at: datetime
    via: list[str]


class Core(Given):
    """The core tier."""

    blocks: list[Block]


class Fact(Given):
    """A version of a fact. It was true from `valid_from` until `valid_until` (null: it still is)."""

    id: str
    text: str
    key: str | None
    tags: list[str]
    valid_from: datetime
    valid_until: datetime | None
    at: datetime
    actor: str
    step: str
    supersedes: str | None
    superseded_by: str | None
    forgotten: str | None
    purged: bool
    sources: list[SourceText]
    via: list[str]
    expires: datetime | None


class Facts(Given):
    """Some of `total` facts, newest first."""

    total: int
    facts: list[Fact]


class Rekeyed(Given):
    """The number of memories that were encrypted with the new key: the agent's, and those of its helpers."""

    memories: int


class Purged(Given):
    """A page that was destroyed, and in how many places its text was."""

    places: int


class Problem(Given):
    """A law that does not hold, or a file that is damaged."""

    where: str
    text: str


class Checked(Given):
    """The findings of a check; none if all is well."""

    problems: list[Problem]


class Step(Given):
    """A step of the conversation. `begins` is the beginning of its text; GET .../pages/{id} has all of it."""

    id: str
    turn: str
    kind: str
    who: str
    at: datetime
    tokens: int
    resident: bool
    purged: bool
    begins: str
    calls: list[str]
    via: list[str]


class Steps(Given):
    """Some of `total` steps, newest first."""

    total: int
    steps: list[Step]


class Movement(Given):
    """A row of the ledger: what moved, when, why, who asked, how many tokens."""

    number: int
    at: datetime
    step: str
    event: str
    page_id: str | None
    reason: str
    actor: str
    tokens: int
    detail: dict[str, Any]


class Ledger(Given):
    """Some of `total` movements, newest first."""

    total: int
    movements: list[Movement]


class Page(Given):
    """A piece of a page. `next_offset` is where to read on; null at its end."""

    page_id: str
    text: str
    offset: int
    next_offset: int | None
    length: int
    via: list[str]


class Hit(Given):
    """A search result. Its `parts` add up to `score`."""

    page_id: str
    text: str
    at: datetime
    score: float
    parts: dict[str, float]
    who: str
    tags: list[str]
    sources: list[SourceText]
    via: list[str]


class Hits(Given):
    """Search results, best first."""

    hits: list[Hit]


class Trace(Given):
    """The life of a text: where it is, its pages and searches, and why it is not in the prompt."""

    text: str
    known: bool
    verdict: dict[str, Any]
    pages: list[dict[str, Any]]
    more_pages: int
    uncounted: bool
    searches: list[dict[str, Any]]
    more_searches: int
    near: list[dict[str, Any]]


class Sleep(Given):
    """A proposal of a sleep. Each of its `edits` has a number, a state, and what stood before and would stand after."""

    number: int
    at: datetime
    finished: bool
    edits: list[dict[str, Any]]
    detail: dict[str, Any]


class Sleeps(Given):
    """Proposals, newest first."""

    sleeps: list[Sleep]


class Slept(Given):
    """The proposal of a sleep; null if nothing has come since the last one."""

    sleep: Sleep | None


class Undone(Given):
    """The edits that were taken back, and those that stay, each with what has changed since."""

    number: int
    undone: list[int]
    stays: list[tuple[int, str]]


class Fault(Given):
    """An error: its type, what happened, and what to do."""

    type: str
    message: str
    advice: str


class Failed(Given):
    """The body of every answer that is an error."""

    error: Fault
