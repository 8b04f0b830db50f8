"""The strict stand-in over real HTTP, streaming included, on a loopback port.

    with StandinServer(Standin(limit_tokens=20_000), faults=Faults(3, SOME)) as standin:
        client = Anthropic(base_url=standin.base_url, api_key="none")
        standin.script(Reply("Hello."), http_error(529))
    assert standin.rejected == []

It gives the scripted replies and faults in order, then those of `replies`. Then faults come at random, too.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from agents.testing.faults import Fault
from agents.testing.messages_server import MessagesServer, Sending, model_record
from agents.testing.wire import ApiError
from pager.types import Json
from tests.standin.api import Standin
from tests.standin.errors import Rejected
from tests.standin.faults import Faults, Replies, odd_reply, waiting_server_calls
from tests.standin.reply import Reply, search_result


class StandinServer(MessagesServer):
    """`windows` are of models that have one of their own. `rejected` are the answers that no client should ever get."""

    def __init__(
        self,
        api: Standin,
        *,
        replies: Replies = lambda _: Reply("ok"),
        faults: Faults | None = None,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        self.api = api
        self.replies = replies
        self.faults = faults or Faults()
        self.windows = {"": api.limit_tokens, **(windows or {})}
        self.asked = 0
        self.rejected: list[str] = []
        self.drawn: Counter[str] = Counter()
        self.unsaid: deque[Reply | Fault] = deque()
        super().__init__(self)

    def script(self, *lines: Reply | Fault | str) -> None:
        self.unsaid.extend(Reply(line) if isinstance(line, str) else line for line in lines)

    # The service behind the server.

    def create(self, params: Json) -> Sending:
        self.asked += 1
        line = self.unsaid.popleft() if self.unsaid else None
        kind = "" if line else self.faults.draw()
        fault = line if isinstance(line, Fault) else self.faults.on_the_wire(kind)
        if kind:
            self.drawn[kind] += 1
        if fault and fault.kind == "refuse":
            raise fault.error()
        said = line.reply if isinstance(line, Fault) else line
        # What the rules say is asked for only when the request was found valid.
        reply = said or (lambda known: self._reply(known, kind))
        try:
            message = self._checked(params, lambda known: self.api.create(known, reply))
        except ApiError:
            if line:
                self.unsaid.appendleft(line)
            raise
        return message, fault

    def count_tokens(self, params: Json) -> int:
        return self._checked(params, self.api.count_tokens)

    def model(self, model_id: str) -> Json:
        return model_record(model_id, max_input_tokens=self._window(model_id))

    # how

    def _window(self, model: str) -> int:
        return self.windows.get(model, self.windows[""])

    def _checked(self, params: Json, ask: Callable[[Json], Any]) -> Any:
        known = {name: value for name, value in params.items() if name != "stream"}
        self.api.limit_tokens = self._window(str(params.get("model")))
        try:
            return ask(known)
        except Rejected as error:
            self.rejected.append(error.message)
            raise ApiError(error.status, error.message, error_type=error.type) from error

    def _reply(self, params: Json, kind: str) -> Reply:
        reply = odd_reply(kind, self.replies, params)
        waiting = waiting_server_calls(params)
        if not waiting or reply.stop_reason == "refusal":
            return reply
        # A paused turn goes on: first what its server tools have found.
        return Reply(*map(search_result, waiting), *(reply.blocks or ("Done.",)), stop_reason=reply.stop_reason)
