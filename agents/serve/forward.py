"""Requests for an agent that another worker has open are passed on to it, and its answer back, piece by piece.

Workers know each other by a key that they share: SELFPAGER_WORKER_KEY, or else a secret of the home. The one that is
asked checks the caller's key, and says to the other who calls; keys of callers are never passed on.
"""

import json
from collections.abc import AsyncGenerator
from dataclasses import asdict

import httpx2
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agents.serve.keys import Caller

WORKER, CALLER = "x-selfpager-worker", "x-selfpager-caller"
PASSED_ON = ("accept", "content-type", "idempotency-key", "last-event-id", "x-stainless-retry-count")
PASSED_BACK = (
    "content-type", "cache-control", "idempotency-key", "retry-after", "x-accel-buffering", "request-id",
    "x-should-retry",
)  # fmt: skip
OURS = "selfpager-"  # so begin headers that are passed back, too
CONNECT_SECONDS = 2.0


class WorkerGoneError(Exception):
    """The worker cannot be reached, or has left before it answered."""


class Forward:
    """Passes requests on. `close` ends its connections."""

    def __init__(self, key: str) -> None:
        self._key = key
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False)

    async def send(self, url: str, request: Request, caller: Caller, body: bytes) -> Response:
        """Return the answer of the worker at `url`. Raises WorkerGoneError if none began."""
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        headers |= {WORKER: self._key, CALLER: json.dumps(asdict(caller))}
        target = url + request.url.path + (f"?{request.url.query}" if request.url.query else "")
        try:
            asked = self._client.build_request(request.method, target, headers=headers, content=body)
            answer = await self._client.send(asked, stream=True)
        except httpx2.TransportError as error:
            raise WorkerGoneError(str(error)) from error
        back = {name: text for name, text in answer.headers.items() if name in PASSED_BACK or name.startswith(OURS)}
        return StreamingResponse(_pieces(answer), answer.status_code, back)


async def _pieces(answer: httpx2.Response) -> AsyncGenerator[bytes]:
    try:
        async for piece in answer.aiter_raw():
            yield piece
    except httpx2.TransportError:  # it died: who reads events comes back with Last-Event-ID
        return
    finally:
        await answer.aclose()
