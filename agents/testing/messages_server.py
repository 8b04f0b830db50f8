"""The HTTP of the Messages API around any `Service`, on a loopback port.

It answers POST /v1/messages (streamed or not), POST /v1/messages/count_tokens and GET /v1/models/{id}. A `Fault` breaks
an answer on its way.

    with MessagesServer(service) as server:
        client = Anthropic(base_url=server.base_url, api_key="none")
"""

import contextlib
import json
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit

from agents.logs import log
from agents.testing import wire
from agents.testing.faults import Fault
from agents.testing.loopback import LoopbackHandler, LoopbackServer
from agents.testing.wire import ApiError
from pager.errors import RejectedError
from pager.types import Json

LARGEST_BODY = 64 << 20  # the API takes half of that; what is larger is its own error to give
Answer = TypeVar("Answer")
Sending = tuple[Json, Fault | None]  # a finished message, and what breaks it on its way to the client
STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}


class Service(Protocol):
    """Decides the answers. It is called by one thread at a time, and each method may raise `ApiError`."""

    def create(self, params: Json) -> Sending: ...  # noqa: D102 - POST /v1/messages
    def count_tokens(self, params: Json) -> int: ...  # noqa: D102 - POST /v1/messages/count_tokens
    def model(self, model_id: str) -> Json: ...  # noqa: D102 - GET /v1/models/{id}


def model_record(model_id: str, *, max_input_tokens: int, max_tokens: int = 32_000) -> Json:
    """Return a model's record, as GET /v1/models/{id} answers it."""
    return {
        "type": "model", "id": model_id, "display_name": model_id, "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active", "max_input_tokens": max_input_tokens, "max_tokens": max_tokens,
    }  # fmt: skip


class MessagesServer(LoopbackServer):
    """A `Service` behind HTTP."""

    def __init__(self, service: Service, *, port: int = 0) -> None:
        self.service = service
        self.service_lock = threading.Lock()
        self.request_ids = (f"req_{number:012}" for number in count(1))
        super().__init__(partial(_Handler, self), port=port, name="messages server")


class _Handler(LoopbackHandler):
    def __init__(self, api: MessagesServer, *arguments: Any) -> None:
        self._api = api
        super().__init__(*arguments)

    def answer(self, method: str) -> None:
        self._request_id = next(self._api.request_ids)
        service = self._api.service
        try:
            match method, unquote(urlsplit(self.path).path).split("/")[1:]:
                case "POST", ["v1", "messages"]:
                    body = self._read_body()
                    self._send_message(self._ask(service.create, body), streams=bool(body.get("stream")))
                case "POST", ["v1", "messages", "count_tokens"]:
                    self._send_json({"input_tokens": self._ask(service.count_tokens, self._read_body())})
                case "GET", ["v1", "models", *name] if any(name):
                    self._send_json(self._ask(service.model, "/".join(name)))
                case _:
                    self._read_body()
                    raise ApiError(404, f"Not found: {method} {self.path}")
        except ApiError as error:
            self._send_json(error.body(self._request_id), error.status, error.headers)

    def _ask(self, method: Callable[..., Answer], *arguments: Any) -> Answer:
        """Return the service's answer. Any exception but its ApiError is a defect: logged, and not to be retried."""
        try:
            with self._api.service_lock:
                return method(*arguments)
        except ApiError:
            raise
        except Exception as error:
            log.exception("the service behind %s failed", self.path)
            text = f"this server failed: {type(error).__name__}: {error}"
            raise ApiError(500, text, headers={"x-should-retry": "false"}) from error

    def _read_body(self) -> Json:
        try:
            body = json.loads(self.read_body(LARGEST_BODY) or b"{}")
        except RejectedError as error:
            raise ApiError(400, str(error)) from None
        except (ValueError, RecursionError) as error:
            raise ApiError(400, f"The request body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise ApiError(400, "Input should be a valid dictionary")
        return cast(Json, body)

    def _send_json(self, body: Json, status: int = 200, headers: dict[str, str] | None = None) -> None:
        all_headers = {"request-id": self._request_id, **(headers or {})}
        self.send_whole(status, "application/json", json.dumps(body).encode(), all_headers)

    def _send_message(self, sending: Sending, *, streams: bool) -> None:
        message, fault = sending
        if fault and fault.kind == "error" and not streams:
            raise fault.error()
        if fault and fault.ends_early and fault.after <= 0:
            self._end_early(fault)
        elif streams:
            self.send_head(200, {"request-id": self._request_id, **STREAM_HEADERS})
            events = list(wire.events(message))
            if fault:
                events = events[: fault.sent(len(events))] + ([fault.error().body()] if fault.kind == "error" else [])
            for data in [*map(wire.encode, events), *([] if fault and fault.ends_early else [b""])]:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            if fault and fault.ends_early:
                self._end_early(fault)
        elif fault:
            raw = json.dumps(wire.whole(message)).encode()
            self.send_head(200, {"content-type": "application/json", "content-length": str(len(raw))})
            self.wfile.write(raw[: fault.sent(len(raw))])
            self._end_early(fault)
        else:
            self._send_json(wire.whole(message))

    def _end_early(self, fault: Fault) -> None:
        """Leave the answer incomplete. The connection is closed now, or when a stalled client has left."""
        if fault.kind == "stall":
            with contextlib.suppress(OSError):
                self.connection.recv(1)
        self.close_connection = True
