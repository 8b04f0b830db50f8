"""GET over connections that are checked, timed and counted. The only file of this room that imports the HTTP library.

A name is resolved once for each connection, its addresses are checked (`addresses`), and a checked one is connected
to: a redirect or a change of the DNS leads nowhere else. No proxy is used, because it would resolve names itself.
Nothing is sent but the request: no credentials, no cookies. Time is limited as a whole, with redirects and handshakes,
and so are the bytes, before and after they are decompressed.
"""

import re
import time
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext, SSLError
from typing import Any

import httpcore2
import httpx2

from agents.builtin import documents
from agents.builtin.addresses import Resolve, checked, resolved
from agents.builtin.markdown import READABLE
from agents.tools.functions import ToolCallError

MAX_BODY_BYTES = 5_000_000
MAX_DOCUMENT_BYTES = 25_000_000  # of a PDF or an Office document: a part of one cannot be read
MAX_WIRE_BYTES = MAX_BODY_BYTES + 1_000_000  # of a whole fetch: with headers, redirects and framing
MAX_REDIRECTS = 5
MAX_URL_CHARS = 2_000
SCHEMES = ("http", "https")
SHOWN_CHARS = 200
TEXT = re.compile(r"text/.*|application/([^;]*\+)?(json|xml|yaml|x-yaml|toml|x-ndjson|(x-)?javascript)|")
HEADERS = {
    "User-Agent": "selfpager (fetch_page)",
    "Accept": "text/html, application/xhtml+xml, text/*, application/json, */*;q=0.5",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sent: the address it came from at last, its type, and at most `MAX_BODY_BYTES` of it. A document,
    which has the ending of its kind, is whole."""

    url: str
    host: str
    content_type: str
    charset: str
    body: bytes
    is_cut: bool
    document: str = ""


class _TooLargeError(Exception):
    """More bytes came than a fetch may take."""


@dataclass(slots=True)
class _Budget:
    """The time and the bytes that are left of a fetch."""

    seconds: float
    bytes_left: int = MAX_WIRE_BYTES
    since: float = field(default_factory=time.monotonic)

    def time_left(self) -> float:
        left = self.since + self.seconds - time.monotonic()
        if left <= 0:
            raise self.too_late()
        return left

    def too_late(self) -> ToolCallError:
        return ToolCallError(f"the page did not arrive within {self.seconds:g} s. Try another address, or later.")

    def take(self, count: int) -> None:
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise _TooLargeError


class _Stream(httpcore2.NetworkStream):
    """A connection within a budget."""

    def __init__(self, stream: httpcore2.NetworkStream, budget: _Budget) -> None:
        self._stream, self._budget = stream, budget

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        found = self._stream.read(max_bytes, self._budget.time_left())
        self._budget.take(len(found))
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._budget.time_left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._budget.time_left())
        return _Stream(stream, self._budget)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Checked(httpcore2.SyncBackend):
    """Connects to checked addresses alone. The request keeps the name of its host, for its Host header and for TLS."""

    def __init__(self, allowed: Collection[str], budget: _Budget, resolve: Resolve) -> None:
        self._budget = budget
        self._addresses = partial(checked, allowed=allowed, resolve=resolve)

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:  # fmt: skip
        failed: Exception = httpcore2.ConnectError(f"{host} has no address")
        addresses = self._addresses(host, port)
        for tried, address in enumerate(addresses):
            patience = self._budget.time_left() / (len(addresses) - tried)
            try:
                stream = super().connect_tcp(address, port, patience, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream, self._budget)
        raise failed


class _Transport(httpx2.BaseTransport):
    """The transport of a client that sends everything through one backend."""

    def __init__(self, backend: httpcore2.NetworkBackend) -> None:
        self._pool = httpcore2.ConnectionPool(network_backend=backend, max_keepalive_connections=0)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        sent = httpcore2.Request(request.method, target, headers=request.headers.raw)
        answer = self._pool.handle_request(sent)
        return httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Any:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def get(url: str, allowed: Collection[str], *, seconds: float, resolve: Resolve = resolved) -> Answer:
    """Fetch an address. Raise ToolCallError with a text for the model if that cannot be done, or may not."""
    budget = _Budget(seconds)
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    transport = _Transport(_Checked(allowed, budget, resolve))
    options: dict[str, Any] = {"trust_env": False, "headers": HEADERS, "cookies": no_cookies, "timeout": None}
    with httpx2.Client(transport=transport, follow_redirects=False, **options) as client, _errors(url, budget):
        wanted = checked_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            with client.stream("GET", wanted) as response:
                if response.next_request is None:
                    return _read(response, wanted, budget)
                wanted = checked_url(str(response.next_request.url))
    raise ToolCallError(f"{_shown(url)} was redirected more than {MAX_REDIRECTS} times. Try another address.")


def checked_url(text: str) -> httpx2.URL:
    """Return an address that may be asked for. Raise ToolCallError for any other."""
    if len(text) > MAX_URL_CHARS:
        raise ToolCallError(f"the address has {len(text):,} characters; at most {MAX_URL_CHARS:,} are fetched.")
    try:
        url = httpx2.URL(text)
        scheme, host = url.scheme, url.raw_host
    except (httpx2.InvalidURL, UnicodeError, ValueError) as error:
        raise ToolCallError(f"{_shown(text)} is no address: {error}. Write https://host/path.") from error
    if scheme not in SCHEMES or not host:
        raise ToolCallError(f"{_shown(text)} cannot be fetched; only http and https can: write https://host/path.")
    if url.userinfo:
        raise ToolCallError("an address with a user name or password in it is not fetched. Leave them out.")
    return url.copy_with(fragment=None)


def _read(response: httpx2.Response, url: httpx2.URL, budget: _Budget) -> Answer:
    if not response.is_success:
        status = response.status_code
        phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else "unknown status"
        raise ToolCallError(f"{_shown(str(url))} was answered with {status} ({phrase}).")
    if "," in response.headers.get("content-encoding", ""):  # each may hide a thousand times what the one before does
        raise ToolCallError(f"{_shown(str(url))} is compressed more than once, which is not read.")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    document, most = documents.ending_of(kind, url.path), MAX_BODY_BYTES
    size = response.headers.get("content-length", "").strip()
    size = int(size) if size.isdecimal() and len(size) < SHOWN_CHARS else None
    told = f"{_shown(str(url))} is a file of the type {_shown(kind)}" + (f" of {size:,} bytes" if size else "")
    if document and documents.can_read():
        most = MAX_DOCUMENT_BYTES
        budget.bytes_left += MAX_DOCUMENT_BYTES - MAX_BODY_BYTES
    elif document or not TEXT.fullmatch(kind):
        raise ToolCallError(f"{told}. {documents.MISSING if document else READABLE}")
    body, is_cut = bytearray(), False
    try:
        for chunk in response.iter_bytes():
            budget.time_left()
            body += chunk
            if len(body) > most:
                is_cut = True
                break
    except _TooLargeError:
        is_cut = True
    if is_cut and document:
        raise ToolCallError(f"{told}; at most {most:,} bytes of a document are fetched.")
    charset = response.charset_encoding or ""
    return Answer(str(url), url.host, kind, charset, bytes(body[:most]), is_cut, document)


@contextmanager
def _errors(url: str, budget: _Budget) -> Generator[None]:
    """Turn what the library raises into a text for the model."""
    try:
        yield
    except (httpcore2.TimeoutException, httpx2.TimeoutException) as error:
        raise budget.too_late() from error
    except _TooLargeError as error:
        what = f"more than {MAX_WIRE_BYTES:,} bytes of headers and redirects"
        raise ToolCallError(f"{_shown(url)} was answered with {what}.") from error
    except httpx2.DecodingError as error:
        raise ToolCallError(f"{_shown(url)} sent what cannot be decompressed.") from error
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise ToolCallError(f"{_shown(url)} was redirected to what is no address: {_shown(str(error))}") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpx2.HTTPError, SSLError) as error:
        raise ToolCallError(f"the connection to {_shown(url)} failed: {_shown(str(error))}") from error


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"
