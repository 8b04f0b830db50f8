"""The bodies and headers of the Messages front, for `/openapi.json`. What a request may hold is checked in
`messages_request`, in the API's own words; the blocks of messages are those of the Messages API."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.serve.calls import KEYED

Object = dict[str, Any]
Sent = Annotated[Object | None, Field(description="sent on as it is")]


class FrontMessage(BaseModel):
    """A message of the history: a text, or blocks of the Messages API."""

    role: Literal["user", "assistant"]
    content: str | list[Object]


class ToCount(BaseModel):
    """A request of the Messages API to count the tokens of."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[str, Field(description="any text: the agent's YAML decides")]
    messages: Annotated[list[FrontMessage], Field(description="the whole history")]
    system: str | list[Object] | None = None
    tools: Annotated[list[Object] | None, Field(description="of the client, beside the agent's own")] = None
    tool_choice: Object | None = None
    thinking: Object | None = None
    output_config: Sent = None
    cache_control: Annotated[Object | None, Field(description="left out: the agent's window has its own marks")] = None
    context_management: Annotated[Object | None, Field(description="not sent: the agent pages its window")] = None
    diagnostics: Annotated[Object | None, Field(description="not sent")] = None


class ToAnswer(ToCount):
    """A request of the Messages API."""

    max_tokens: int
    stream: Annotated[bool, Field(description="answer with the API's server-sent events")] = False
    stop_sequences: list[str] | None = None
    metadata: Sent = None
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    temperature: Annotated[float | None, Field(description="for models behind Chat Completions")] = None
    top_p: Annotated[float | None, Field(description="for models behind Chat Completions")] = None


class FrontAnswer(BaseModel):
    """An answer of the Messages API."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: Annotated[str, Field(description="the agent's")]
    content: list[Object]
    stop_reason: str
    stop_sequence: str | None
    usage: Annotated[Object, Field(description="of all requests of the turn")]


class Counted(BaseModel):
    """The tokens of a request."""

    input_tokens: int


class FrontFault(BaseModel):
    """An error: its type, and what happened. `details` are for programs."""

    type: str
    message: str
    details: Object | None = None


class FrontFailed(BaseModel):
    """An error in the form of the Messages API."""

    type: Literal["error"]
    error: FrontFault
    request_id: str


VERSIONS = {"anthropic-version": "Any: the newest form of the API is taken.", "anthropic-beta": "Not looked at."}
TAKEN = {
    **KEYED,
    "x-stainless-retry-count": "Of the SDK: above 0 the same request gets the same answer.",
    **VERSIONS,
}
ID = {"request-id": "The id of this answer."}
GIVEN = {
    **ID,
    "selfpager-history": "What became of the history: continued, begun, branched or repeated, and how much was new.",
    "selfpager-not-sent": "What of the request is not sent to the agent's model.",
    "selfpager-max-tokens": "The agent's own limit, if the request asked for more.",
}
