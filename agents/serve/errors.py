"""Errors as they are answered: a status, and JSON with `type`, `message` and `advice`.

No text of an error names an agent of another tenant, a path of this machine or a part of a key. What is not meant for
the caller is logged, and answered as `internal`.
"""

from collections.abc import Mapping

from agents.config.errors import ConfigError
from agents.models.model import ModelError, ModelUnavailableError
from pager.errors import (
    AgentLostError,
    InUseError,
    NeedsApprovalError,
    NewerFormatError,
    NoAgentError,
    NotFoundError,
    OpenCallsError,
    PagerError,
    RejectedError,
    UnavailableError,
)
from pager.safety.redaction import redacted
from pager.types import Json

SEE_LOG = "The log of the server says why; ask who runs it."
YOURS = "GET /v1/agents lists those that you have; POST /v1/agents makes one."
ASK_AGAIN = "Ask again with the same Idempotency-Key: it goes on where it was."


class ApiError(Exception):
    """An answer that is an error. `advice` says what to do."""

    def __init__(
        self, status: int, kind: str, message: str, advice: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.advice = status, kind, message, advice
        self.headers = dict(headers or {})

    @property
    def body(self) -> Json:
        """Return the JSON of the answer."""
        return {"error": {"type": self.kind, "message": self.message, "advice": self.advice}}


def unauthorized(message: str) -> ApiError:
    """Return the answer to a request without a key, or with one that is not valid."""
    advice = "Send a key as 'Authorization: Bearer KEY' or 'x-api-key: KEY'; `selfpager keys add` makes one."
    return ApiError(401, "unauthorized", message, advice, {"WWW-Authenticate": "Bearer"})


def no_agent(agent: str) -> ApiError:
    """Return the answer for an agent that does not exist or is not the caller's: it is the same."""
    return ApiError(404, "not_found", f"there is no agent {agent!r}.", YOURS)


def busy(message: str, retry_seconds: int) -> ApiError:
    """Return the answer when there is more to do than is taken."""
    return ApiError(429, "busy", message, f"Ask again in {retry_seconds} s.", {"Retry-After": str(retry_seconds)})


def stopping() -> ApiError:
    """Return the answer while the server stops."""
    return ApiError(503, "stopping", "the server is stopping.", ASK_AGAIN, {"Retry-After": "2"})


def as_api_error(error: BaseException) -> ApiError:
    """Return the answer that tells of an error."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ModelUnavailableError):
        seconds = str(max(1, round(error.retry_after_seconds or 5)))
        return ApiError(503, "model_unavailable", redacted(str(error)), ASK_AGAIN, {"Retry-After": seconds})
    if isinstance(error, UnavailableError):
        text = f"the memory of this agent cannot be used now: {error.reason}."
        return ApiError(503, "unavailable", text, ASK_AGAIN, {"Retry-After": "5"})
    for kind, (status, name, message, advice) in _ANSWERS.items():
        if isinstance(error, kind):
            retry = {"Retry-After": "1"} if status == 503 else None
            return ApiError(status, name, message or redacted(str(error)), advice, retry)
    return ApiError(500, "internal", "something went wrong here.", SEE_LOG)


# Errors, the special ones first: status, type, message and advice. Without a message, that of the error is meant for
# the caller; with one, that of the error is for whoever runs the server: it may name files, hosts and other agents.
_ANSWERS: dict[type[Exception], tuple[int, str, str, str]] = {
    NoAgentError: (404, "not_found", "there is no such agent.", YOURS),
    NotFoundError: (404, "not_found", "", "The message names what there is."),
    NeedsApprovalError: (409, "needs_approval", "", "A person has to approve it first."),
    OpenCallsError: (409, "conflict", "", "POST .../resume goes on with the open turn."),
    RejectedError: (400, "rejected", "", "Change the request as the message says; nothing was changed."),
    ModelError: (502, "model_error", "", ASK_AGAIN),
    AgentLostError: (503, "lost", "this worker has lost the agent, to another one or to an outage.", ASK_AGAIN),
    NewerFormatError: (503, "newer", "this worker is older than the memory of this agent.", ASK_AGAIN),
    InUseError: (409, "in_use", "another program has this agent open.", "Close it there, or POST .../tell."),
    ConfigError: (500, "configuration", "the configuration of this agent cannot be used.", SEE_LOG),
    PagerError: (500, "storage", "the memory of this agent cannot be used now.", SEE_LOG),
}
