"""A server of the Messages API that answers as a test scripts it, faults included.

    with ScriptedServer() as server:
        server.script(call("archive", text="prefers window seats"), "Noted.", http_error(529))
        client = Anthropic(base_url=server.base_url, api_key="none")

A line is a text, a call, a `Reply`, a fault, or a function that gets the request and returns one of these. A request
for which no line is left is refused, and the fixture lets the test fail.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import cast

from agents.models.model import PromptTooLongError
from agents.models.replies import Reply, as_reply
from agents.models.simulated import DEFAULT_LIMIT_TOKENS, SimulatedProvider, as_blocks, count_tokens
from agents.testing.faults import Fault
from agents.testing.messages_server import MessagesServer, Sending, model_record
from agents.testing.wire import ApiError
from pager.types import Json

Line = str | Json | Reply | Fault
ScriptLine = Line | Callable[[Json], Line]
FINAL = {"x-should-retry": "false"}


class ScriptedServer(MessagesServer):
    """Answers from its construction to `close`. `requests` and `replies` are what went over the wire."""

    def __init__(self, *, limit_tokens: int = DEFAULT_LIMIT_TOKENS, now: Callable[[], float] = time.monotonic) -> None:
        self.requests: list[Json] = []  # as they came, including refused ones
        self.replies: list[Json] = []  # finished messages, including those that broke on their way
        self.errors: list[Exception] = []  # what went wrong in the script itself
        self._lines: deque[ScriptLine] = deque()
        self._otherwise: ScriptLine | None = None
        self._provider = SimulatedProvider(limit_tokens, now=now)
        super().__init__(self)

    def script(self, *lines: ScriptLine) -> None:
        """Answer the next requests with these lines, in order."""
        for line in lines:
            if not callable(line) and type(line) not in {str, dict, Reply, Fault}:
                raise TypeError(f"{line!r} is no line of a script; use a text, a call, a Reply, a fault or a function.")
        self._lines.extend(lines)

    def otherwise(self, line: ScriptLine) -> None:
        """Answer with this line whenever no scripted line is left."""
        self._otherwise = line

    @property
    def unused(self) -> int:
        """Return how many scripted lines are left."""
        return len(self._lines)

    # The service behind the server.

    def create(self, params: Json) -> Sending:
        """Answer a request with the next line."""
        self.requests.append(params)
        check_request(params)
        try:
            line = self._lines.popleft() if self._lines else self._otherwise
            if line is None:
                raise AssertionError(f"no line is left for request {len(self.requests)}; script one, or otherwise().")
            answer = line(params) if callable(line) else line
            fault, reply = (answer, answer.reply) if isinstance(answer, Fault) else (None, as_reply(answer))
        except Exception as error:
            self.errors.append(error)
            raise ApiError(400, f"the script failed: {type(error).__name__}: {error}", headers=FINAL) from error
        if fault and fault.kind == "refuse":
            raise fault.error()
        try:
            self._provider.check_window(params)
        except PromptTooLongError as error:
            raise ApiError(400, str(error)) from error
        message = self._provider.finish(params, reply or Reply("These words are cut off."))
        self.replies.append(message)
        return message, fault

    def count_tokens(self, params: Json) -> int:
        """Return the tokens of a request."""
        check_request({"max_tokens": 1, **params})
        return count_tokens(params)

    def model(self, model_id: str) -> Json:
        """Return a model's record."""
        return model_record(model_id, max_input_tokens=self._provider.limit_tokens)


def check_request(params: Json) -> None:
    """Raise ApiError for what every server of this API refuses. Only the provider itself is stricter."""
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if name not in params:
            raise ApiError(400, f"{name}: Field required")
        if not isinstance(params[name], kind):
            raise ApiError(400, f"{name}: Input should be a valid {kind.__name__}")
    if not params["messages"]:
        raise ApiError(400, "messages: at least one message is required")
    open_calls: set[str] = set()
    end: Json = {"role": "user", "content": []}
    for index, message in enumerate(cast("list[Json]", [*params["messages"], end])):
        if not {"role", "content"} <= message.keys():
            raise ApiError(400, f"messages.{index}: role and content: Field required")
        blocks = as_blocks(message["content"])
        unanswered = open_calls - {block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"}
        if unanswered:
            found = "`tool_use` ids were found without `tool_result` blocks immediately after"
            rule = "Each `tool_use` block must have a corresponding `tool_result` block in the next message"
            raise ApiError(400, f"messages.{index - 1}: {found}: {', '.join(sorted(unanswered))}. {rule}.")
        open_calls = {block["id"] for block in blocks if block.get("type") == "tool_use"}
