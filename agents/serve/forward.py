"""Requests for an agent that another worker has open are passed on to it, and its answer back, piece by piece.

Workers know each other by a key that they share: SELFPAGER_WORKER_KEY, or else a secret of the home. The one that is
asked checks the caller's key, and says to the other who calls; keys of callers are never passed on. A request is passed
on once: a worker that does not have the agent either says so, and the one that was asked looks again.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict

import httpx2
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agents.serve.errors import SEE_LOG, ApiError
from agents.serve.keys import Caller

WORKER, CALLER = "x-selfpager-worker", "x-selfpager-caller"
PASSED_ON = ("accept", "content-type", "last-event-id", "x-stainless-retry-count")
PASSED_BACK = (
    "content-type", "cache-control", "idempotency-key", "retry-after", "x-accel-buffering", "request-id",
    "x-should-retry",
)  # fmt: skip
OURS = "selfpager-"  # so begin headers that are passed back, too
CONNECT_SECONDS = 2.0
LOOK_SECONDS = 5.0  # at who has the agent, while no answer comes
SILENCE_SECONDS = 60.0  # after which an answer has broken off: who streams says something every 15 seconds
ELSEWHERE = 421  # the status for: another worker has this agent


class WorkerGoneError(Exception):
    """No answer has begun. If the request `was_sent`, the worker may have done what it asks for."""

    def __init__(self, text: str, *, was_sent: bool) -> None:
        super().__init__(text)
        self.was_sent = was_sent


class Forward:
    """Passes requests on, until `close`."""

    def __init__(self, key: str) -> None:
        self._key = key
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False)

    async def close(self) -> None:
        """End all connections."""
        await self._client.aclose()

    async def send(
        self, url: str, request: Request, caller: Caller, body: bytes, *, key: str,
        has_it: Callable[[], Awaitable[bool]],
    ) -> Response:  # fmt: skip
        """Return the answer of the worker at `url`, which gets the Idempotency-Key `key`. Raises WorkerGoneError if
        none began, also when the worker says nothing and `has_it` says that the agent is not its own any more."""
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        headers |= {"idempotency-key": key} if key else {}
        headers |= {WORKER: self._key, CALLER: json.dumps(asdict(caller))}
        asked = self._client.build_request(
            request.method, url, headers=headers, content=body, extensions={"target": _target(request)}
        )
        sending = asyncio.ensure_future(self._client.send(asked, stream=True))
        try:
            while not (await asyncio.wait({sending}, timeout=LOOK_SECONDS))[0]:
                if not await has_it():
                    raise WorkerGoneError(f"{url} has lost the agent and says nothing", was_sent=True)
            answer = sending.result()
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise WorkerGoneError(str(error), was_sent=False) from error
        except httpx2.TransportError as error:
            raise WorkerGoneError(str(error), was_sent=True) from error
        finally:
            sending.cancel()
        if answer.status_code in (ELSEWHERE, 401):
            await answer.aclose()
            if answer.status_code == ELSEWHERE:
                raise WorkerGoneError(f"{url} does not have the agent", was_sent=False)
            text = "the worker that has this agent open does not take the key of this one."
            raise ApiError(502, "worker", text, SEE_LOG)
        back = {name: text for name, text in answer.headers.items() if name in PASSED_BACK or name.startswith(OURS)}
        return StreamingResponse(_pieces(answer), answer.status_code, back)


def _target(request: Request) -> bytes:
    """Return the path and the query as they came: what was decoded once means something else when it is sent."""
    query: bytes = request.scope["query_string"]
    path: bytes = request.scope["raw_path"]
    return path + (b"?" + query if query else b"")


async def _pieces(answer: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield an answer. If it breaks off, so does ours: the error ends the connection to the client."""
    pieces = answer.aiter_raw()
    try:
        while True:
            async with asyncio.timeout(SILENCE_SECONDS):
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece
    finally:
        await answer.aclose()
