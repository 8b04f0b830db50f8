"""What every provider behind HTTP has in common: the client for a server on this machine, and what a status means."""

from __future__ import annotations

import os
import re
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agents.models.model import (
    MediaRefusedError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
    PromptTooLongError,
)
from pager import shortened

if TYPE_CHECKING:
    from httpx2 import Client, Timeout

RECORD_SECONDS = 10.0  # the longest wait for the provider's record of the model
RETRIES = 0  # the loop waits, where a person sees it and a limit holds
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MESSAGE_CHARS = 500
WORTH_WAITING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
KINDS_WORTH_WAITING = frozenset({"overloaded_error", "rate_limit_error", "api_error", "timeout_error"})
NO_CREDIT = "insufficient_quota"  # sent with 429, which usually says to wait
# Its meaning is a guess from many servers' words. Without media in the prompt the loop raises the refusal as it is.
MEDIA = re.compile(r"(?<![a-z])(?:image|pdf|document|media|file)", re.IGNORECASE)
MEDIA_STATUSES = frozenset({400, 404, 415, 422})
NO_MEDIA = re.compile("image input is not supported|cannot identify image", re.IGNORECASE)  # servers say it with 500
KIND_CHARS = 100
NOT_ABOUT_SIZE = frozenset({401, 403, 404})
TOO_LONG = re.compile(
    "|".join((
        r"prompt is too long|input is too long|too large for model with|request too large|string_above_max_length",
        r"context.?(window|length|size)|exceeds? context limit|maximum (prompt|model) length|reduce the length of the",
        r"too many (input )?tokens|exceeds? the (maximum|configured) [\w ]{0,60}(tokens|limit)|exceeds the max_model",
        r"exceeded model token limit|`inputs` must have less than|prompt token count of \d+ exceeds",
        r"prompt exceeds max(imum)? length|range of input length should be|`inputs` tokens \+ `max_new_tokens` must be",
    )),
    re.IGNORECASE,
)  # fmt: skip


class Reachable:
    """`problem` and `unreachable` of a model behind HTTP, asked before the first message."""

    may_lack_key = False  # no key was given, and none is in the usual variable

    def check_key(self) -> str:
        """Make the client. Return what is wrong with its key, or raise ModelRefusedError."""
        raise NotImplementedError

    def ask_for_record(self) -> object:
        """Ask for the model's record, within `RECORD_SECONDS`. Raise ModelError."""
        raise NotImplementedError

    def problem(self) -> str:
        """Return why no request can succeed: there is no key, or no client can be made. An SDK, which takes a second to
        import, knows more places for a key than the environment."""
        try:
            return self.check_key() if self.may_lack_key else ""
        except ModelRefusedError as error:
            return str(error)

    def unreachable(self) -> str:
        """Ask for the model's record. Return what is wrong with the address, the key or the model."""
        try:
            self.ask_for_record()
        except ModelError as error:
            status = getattr(error.__cause__, "status_code", None)
            if status is None and isinstance(error, ModelUnavailableError):
                return f"{str(error).rstrip('.')}. Check the network and model.base_url."
            has_no_client = status is None and isinstance(error, ModelRefusedError)
            # A server without records says 404, too.
            is_unknown = status == HTTPStatus.NOT_FOUND and _names_a_model(str(error).lower())
            return str(error) if has_no_client or is_unknown or status in (401, 403) else ""
        return ""


def _names_a_model(text: str) -> bool:
    """Return True if it is the model that is not there, not the address."""
    behind = text.partition("model")[2]
    return "model: " in text or "does not exist" in behind or "not found" in behind


def is_blank(variable: str) -> bool:
    """Return True for a variable that is set to nothing. An SDK would take that for an address."""
    return os.environ.get(variable) == ""


def is_local(base_url: str | None) -> bool:
    """Return True for an address on this machine, where servers ask for no key."""
    return urlsplit(base_url or "").hostname in LOOPBACK


def local_client(base_url: str | None, timeout: Timeout) -> Client | None:
    """Return the HTTP client for a server on this machine; None for any other, with which an SDK's own one serves.

    No proxy leads back here, which an SDK would take from the environment. Without TLS the world's certificates need
    not be read, which takes as long as a turn: https is trusted to nobody then.
    """
    if not is_local(base_url):
        return None
    import ssl

    import httpx2

    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if urlsplit(base_url).scheme == "http" else True
    return httpx2.Client(trust_env=False, timeout=timeout, follow_redirects=True, verify=trusted)


def status_error(status: int, text: str, *, kind: str = "", retry_after: str = "", hint: str = "") -> ModelError:
    """Return what a refusal means, with the provider's own words: make it shorter, try again, or stop.

    The status decides, whatever the body calls itself. Only in the middle of a stream, whose status was 200, there is
    nothing but the `kind`. `hint` says what to do about it.
    """
    text, kind = shortened(text, MESSAGE_CHARS), kind[:KIND_CHARS]
    if status not in NOT_ABOUT_SIZE and TOO_LONG.search(f"{kind} {text}"):
        return PromptTooLongError(text)
    worth_waiting = status in WORTH_WAITING or (status == HTTPStatus.OK and kind in KINDS_WORTH_WAITING)
    if worth_waiting and kind != NO_CREDIT and not NO_MEDIA.search(text):
        try:
            pause = max(0.0, float(retry_after))
        except ValueError:
            pause = None
        return ModelUnavailableError(f"the provider answered {status}: {text}", pause)
    # A body over the provider's limit of bytes: no text of a window is that long.
    is_media = status == 413 or (status in MEDIA_STATUSES and MEDIA.search(text)) or NO_MEDIA.search(text)
    error, text = MediaRefusedError if is_media else ModelRefusedError, f"{text.rstrip('.')}.{hint}" if hint else text
    return error(f"the provider refused the request ({status}): {text}")
