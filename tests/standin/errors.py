"""What the stand-in answers instead of a message: the API's own kind of error."""

from __future__ import annotations


class Rejected(Exception):
    """A request that the API refuses: HTTP `status`, error `type`, and a `message` that starts with the place."""

    def __init__(
        self, message: str, *, status: int = 400, error_type: str = "invalid_request_error", code: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = error_type
        self.message = message
        self.code = code
