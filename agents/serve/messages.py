"""The Messages API of an agent: `POST /a/{id}/v1/messages` and `.../count_tokens`.

A client of that API, pointed at `/a/{id}`, has this agent's memory: of the history that it sends again only what is new
is told, and the model gets the agent's own window. docs/messages-front.md says what of a request is honoured.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import Future
from contextlib import closing, suppress
from hashlib import blake2b
from math import isfinite
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from agents.agent import Agent
from agents.events import Event, Replied, Stopped, StreamLost, Text, Thinking
from agents.models.model import MediaRefusedError, ModelRefusedError, ModelUnavailableError, PromptTooLongError
from agents.serve import messages_shapes as shapes
from agents.serve import messages_stream as wire
from agents.serve.calls import Call, Endpoint, let_in
from agents.serve.errors import ApiError, as_api_error, stopping
from agents.serve.messages_records import Answer, mark_sent, usage_json, visible
from agents.serve.messages_request import Asked, BadRequestError, check_for, read
from agents.serve.messages_stream import Stream
from agents.serve.messages_turn import KeyReusedError, Turn
from pager.errors import PagerError, RejectedError, WindowTooSmallError
from pager.memory import Memory
from pager.safety.redaction import redacted
from pager.types import Json

LARGEST_BODY = 32 << 20  # as the API takes: clients send whole histories
HOLD_BACK_SECONDS = 10.0  # before a stream begins without a word: until then an error has its own status
PING_SECONDS = 15.0
BROKE_OFF = "the model's answer broke off. It is asked again: send this request once more for its answer."
COUNTED = ("system", "messages", "tools", "tool_choice", "thinking")  # what count_tokens of a provider takes
NO_RETRY = {"x-should-retry": "false"}


class Exchange:
    """One request on its way. The thread of its turn puts what is to be sent, and the request sends it."""

    def __init__(self, turn: Turn, *, streams: bool) -> None:
        self.turn = turn
        self.headers: dict[str, str] = {}
        self._stream = Stream("", "")
        self._streams = streams
        self._items: asyncio.Queue[Any] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    # the thread of the turn

    def work(self, agent: Agent) -> str:
        """Tell the agent what is new, and answer. Return why the turn stopped."""
        asked, memory = self.turn.asked, agent.memory
        not_sent = _check(asked, agent)

        def tell() -> bool:
            is_new = self.turn.tell(memory)
            self._stream = Stream(self.turn.message_id, agent.config.model.id)
            self._begin(memory, not_sent)
            return is_new

        def replied() -> None:
            self.turn.replied(memory)

        with closing(agent.stream_told(tell, elsewhere=asked.tool_names, also=replied)) as events:
            stopped = ""
            for event in events:
                self._take(event, memory)
                stopped = event.reason if isinstance(event, Stopped) else stopped
        return stopped

    def _begin(self, memory: Memory, not_sent: Iterable[str]) -> None:
        plan, most = self.turn.plan, memory.limits.max_output_tokens
        told = len(self.turn.history) - plan.told
        after = f"; after={plan.after}" if plan.after else ""
        self.headers["selfpager-history"] = f"{plan.kind}{after}; told={told}"
        if names := ", ".join(not_sent):
            self.headers["selfpager-not-sent"] = names
        if self.turn.asked.options.get("max_tokens", 0) > most:
            self.headers["selfpager-max-tokens"] = str(most)
        for block in self.turn.said_before:
            self._send(self._stream.block(block))

    def _take(self, event: Event, memory: Memory) -> None:
        match event:
            case Text(text):
                self._send(self._stream.text(text))
            case Thinking(text) if self.turn.asked.shows_thinking:
                self._send(self._stream.thinking(text))
            case StreamLost() if self._stream.uncommitted and self._streams:
                self._streams = False  # nothing that was sent can be taken back; the turn goes on without this client
                self.put(ApiError(529, "overloaded", BROKE_OFF))
            case Replied(step=step):
                self.turn.take(event)
                if self._streams and not self._stream.uncommitted:  # a model that does not stream
                    for block in visible(memory, step, thinking=self.turn.asked.shows_thinking):
                        self._send(self._stream.block(block))
                self._send(self._stream.commit())
            case Stopped(reason="cancelled"):
                raise stopping()
            case Stopped():
                answer = self.turn.finish(memory, event)
                self._send(self._stream.end(answer, self.turn.unsent))
                self.put(answer)
            case _:
                pass

    def _send(self, events: Iterable[Json]) -> None:
        if self._streams:
            for event in events:
                self.put(wire.encode(event))

    def put(self, item: object) -> None:
        """Hand something to the request: bytes of the stream, the answer, or an error."""
        with suppress(RuntimeError):  # the server has stopped, and nobody waits
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    def ended(self, job: "Future[None]") -> None:
        """Hand on the error with which the job ended, if it did."""
        error = job.exception() if not job.cancelled() else stopping()
        if error is not None:
            self.put(error)

    # the request

    async def next(self, seconds: float) -> Any:
        """Return what is to be sent next: bytes, the answer, or None after so long without. Raises an error that came
        in its place."""
        try:
            async with asyncio.timeout(seconds):
                item = await self._items.get()
        except TimeoutError:
            return None
        if isinstance(item, BaseException):
            raise item
        return item


class FrontEndpoint(Endpoint):
    """An endpoint whose errors are those of the Messages API, and whose bodies may be as long as there."""

    failed = shapes.FrontFailed

    async def respond(self, request: Request) -> Response:
        """Answer a request, here or by the worker that has the agent."""
        request_id = request.state.request_id = f"req_{uuid4().hex[:24]}"
        try:
            call = await let_in(request, self.scope)
            await call.raw_body(LARGEST_BODY)
            answer = await call.somewhere(self._handle, repeats=True)
        except Exception as error:  # noqa: BLE001 - every error is answered, and logged in `app`
            status, message, headers = _told(error)
            request.state.error = error
            details = error.details if isinstance(error, BadRequestError) else None
            answer = JSONResponse(wire.error(status, message, request_id, details), status, headers)
        answer.headers.setdefault("request-id", request_id)
        return answer


async def create_message(call: Call) -> Response:
    """Answer as the Messages API does, with this agent's memory and tools.

    Of the history only what is new is told. With `stream` its events come as they happen.
    """
    request, raw = call.request, await call.raw_body()
    key = request.headers.get("idempotency-key", "")
    turn = await call.in_thread(lambda: _read_turn(raw, retried=_retries(request) > 0, key=key))
    exchange = Exchange(turn, streams=turn.asked.streams)

    def work(agent: Agent) -> None:
        with call.server.visits.noted(call.agent, agent):
            stopped = exchange.work(agent)
        if turn.answer and not turn.is_repeated:
            call.server.metrics.turn(stopped, usage_json(turn.answer.usage))

    call.server.workers.submit(call.agent, work).add_done_callback(exchange.ended)
    if turn.asked.streams:
        return await _stream(call, exchange)
    seconds = call.server.limits.answer_seconds
    answer: Answer | None = await exchange.next(seconds)
    if answer is None:
        text = f"this takes longer than {seconds:g} s. It goes on: send the same request again for its answer."
        raise ApiError(504, "timeout", text)
    if not await request.is_disconnected():
        await _mark(call, turn)
    return JSONResponse(answer.message, headers=exchange.headers)


async def _stream(call: Call, exchange: Exchange) -> Response:
    first = await exchange.next(HOLD_BACK_SECONDS)

    async def pieces() -> AsyncGenerator[bytes]:
        item = first
        try:
            while not isinstance(item, Answer):
                yield wire.encode(wire.PING) if item is None else item
                item = await exchange.next(PING_SECONDS)
            await _mark(call, exchange.turn)
        except Exception as error:  # noqa: BLE001 - the stream has begun: it ends with the error
            call.request.state.error = error
            status, message, _ = _told(error)
            yield wire.encode(wire.error(status, message, call.request.state.request_id))

    headers = {**exchange.headers, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(pieces(), headers=headers, media_type="text/event-stream")


async def _mark(call: Call, turn: Turn) -> None:
    """Note that the answer was sent. If that fails, the same request would get the same answer."""
    with suppress(ApiError, PagerError):
        await call.with_agent(lambda agent: mark_sent(agent.memory, turn.digest))


class _Undo(Exception):
    """Rolls back what was only tried."""


async def count_tokens(call: Call) -> Response:
    """Count what the agent's model would get for a request. Nothing changes."""
    raw = await call.raw_body()
    asked = await call.in_thread(lambda: read(_parsed(raw), counts=True))
    tokens = await call.in_line(lambda agent: _count(agent, asked))
    return JSONResponse({"input_tokens": tokens})


def _count(agent: Agent, asked: Asked) -> int:
    _check(asked, agent)
    memory, params, estimate = agent.memory, Json(), 0

    def tell() -> bool:
        nonlocal params, estimate
        with suppress(_Undo), memory.transaction():
            Turn(asked, "").place(memory)
            request = memory.request()
            params, estimate = request.params, request.tokens
            raise _Undo
        return False

    with closing(agent.stream_told(tell)) as events:
        for _ in events:
            pass
    counted = agent.model.count_tokens({name: value for name, value in params.items() if name in COUNTED})
    return counted or estimate


def _check(asked: Asked, agent: Agent) -> tuple[str, ...]:
    model, most = agent.config.model, agent.memory.limits.max_output_tokens
    return check_for(
        asked, provider=model.provider, thinking=model.thinking, own_tools=agent.tool_names, most_tokens=most
    )


def _read_turn(raw: bytes, *, retried: bool, key: str) -> Turn:
    body = _parsed(raw)
    return Turn(read(body), _digest(body), retried=retried, key=key)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        raise BadRequestError("The request body is not valid JSON.") from None


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):  # NaN is Python's own JSON, and no provider takes it
        raise ValueError(text)
    return number


def _digest(body: Json) -> str:
    """Return what tells one request from another with the same history. A client that streams may ask again without."""
    text = json.dumps({name: body[name] for name in body if name not in ("messages", "stream")}, sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _retries(request: Request) -> int:
    given = request.headers.get("x-stainless-retry-count", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0


def _told(error: Exception) -> tuple[int, str, dict[str, str]]:
    """Return the status, the text and the headers with which a client is told of an error. The SDK asks again where a
    retry may help."""
    match error:
        case BadRequestError():
            return 400, str(error), {}
        case KeyReusedError():
            return 400, "this Idempotency-Key was used for another request. Make a new key for each.", {}
        case PromptTooLongError() | WindowTooSmallError():
            return 400, f"prompt is too long: {redacted(str(error))}", {}
        case MediaRefusedError() | RejectedError():
            return 400, redacted(str(error)), {}
        case ModelRefusedError():
            return 502, f"the agent's model refused: {redacted(str(error))}", NO_RETRY
        case ModelUnavailableError():
            seconds = max(1, round(error.retry_after_seconds or 1))
            return 529, redacted(str(error)), {"retry-after": str(seconds)}
        case _:
            told = as_api_error(error)
            retry = NO_RETRY if isinstance(error, PagerError) and told.status != 503 else {}
            return told.status, f"{told.message} {told.advice}".strip(), {**told.headers, **retry}


MESSAGES = [
    FrontEndpoint(
        "POST", "/a/{id}/v1/messages", "write", create_message, shapes.FrontAnswer, body=shapes.ToAnswer, streams=True,
        takes=shapes.TAKEN, gives=shapes.GIVEN,
    ),
    FrontEndpoint(
        "POST", "/a/{id}/v1/messages/count_tokens", "write", count_tokens, shapes.Counted, body=shapes.ToCount,
        takes=shapes.VERSIONS, gives=shapes.ID,
    ),
]  # fmt: skip
