"""The Messages API through the anthropic SDK, and its clients for other clouds. The only file that imports it.

It detects what the SDK does not report: a connection lost in the middle of a stream, a stream that ends without a stop
reason, tool input that is not JSON. It retries nothing: the loop does.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from agents.events import Text, Thinking
from agents.models.http import RECORD_SECONDS, RETRIES, Reachable, is_blank, is_local, local_client, status_error
from agents.models.model import (
    FinishedReply,
    Json,
    ModelRefusedError,
    ModelUnavailableError,
    UnreadableReplyError,
)
from pager.errors import brief
from pager.safety.redaction import redacted

if TYPE_CHECKING:
    from anthropic import Anthropic

NO_SUCH_ENDPOINT = (404, 405, 501)
NO_KEY = "no key for the model: set ANTHROPIC_API_KEY, or model.api_key in the agent's YAML."
KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
OWN_ADDRESS = "https://api.anthropic.com"
CLOUDS = {"bedrock": "AnthropicBedrock", "vertex": "AnthropicVertex", "foundry": "AnthropicFoundry"}
HINTS = {
    401: " Check the key: ANTHROPIC_API_KEY, or model.api_key.",
    403: " Check what the key may do.",
    404: " Check model.id and model.base_url.",
}


def make_client(provider: str, *, base_url: str | None, api_key: str | None, read_seconds: float | None) -> Anthropic:
    """Return the SDK's client for a provider. Each takes its credentials from where its own documentation says."""
    import anthropic
    import httpx2

    # The SDK copies each message that it streams, and pydantic prints a warning for every field that a server got
    # wrong. What cannot be used is an error of ours. (A filter for these calls alone would not be safe with threads.)
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning, r"pydantic\.main")
    patience = anthropic.DEFAULT_TIMEOUT if read_seconds is None else httpx2.Timeout(read_seconds)
    options: dict[str, Any] = {"max_retries": RETRIES, "timeout": patience}
    if base_url:
        options["base_url"] = base_url
    if provider in CLOUDS:
        return getattr(anthropic, CLOUDS[provider])(**options)
    if not base_url and is_blank("ANTHROPIC_BASE_URL"):
        options["base_url"] = OWN_ADDRESS
    if direct := local_client(base_url, patience):
        options["http_client"], api_key = direct, api_key or "none"  # such a server asks for none, the SDK for one
    return anthropic.Anthropic(**options, api_key=api_key)


class AnthropicModel(Reachable):
    """`Model` over the SDK. The client is made at the first request: importing the SDK takes a second. After
    `read_seconds` without a word a stream counts as lost."""

    def __init__(
        self, name: str, *, provider: str = "anthropic", base_url: str | None = None, api_key: str | None = None,
        thinking: str = "default", read_seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self._make = partial(make_client, provider, base_url=base_url, api_key=api_key, read_seconds=read_seconds)
        self._thinking = {"adaptive": {"type": "adaptive"}, "off": {"type": "disabled"}}.get(thinking)
        self._made: Anthropic | None = None
        self._making = Lock()
        self._window: int | None = None  # from the record
        self._counts = True
        given = api_key or is_local(base_url) or any(map(os.environ.get, KEY_VARIABLES))
        self.may_lack_key = provider == "anthropic" and not given

    @property
    def _client(self) -> Anthropic:
        if self._made is None:
            with self._making:
                self._made = self._made or self._connected()
        return self._made

    def _connected(self) -> Anthropic:
        import anthropic
        import httpx2

        try:
            return self._make()
        except (ValueError, TypeError, anthropic.AnthropicError, httpx2.InvalidURL) as error:
            # It lacks a key, a region, a project.
            text = redacted(
                f"the model's client cannot be created: {str(error).rstrip('.')}. Check its settings and key."
            )
            raise ModelRefusedError(text) from error

    def close(self) -> None:
        """Close the client's connections."""
        if self._made is not None:
            self._made.close()
            self._made = None

    def check_key(self) -> str:
        """Make the client. Return that it has no key, if so."""
        client = self._client
        return "" if client.api_key or client.auth_token or getattr(client, "_token_cache", None) else NO_KEY

    def ask_for_record(self) -> object:
        """Ask for the model's record."""
        with _errors_translated(self._client):
            return self._client.models.retrieve(self.name, timeout=RECORD_SECONDS)

    def _params(self, params: Json) -> Json:
        return {"model": self.name, **({"thinking": self._thinking} if self._thinking else {}), **params}

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        """Send a request, yield the reply as it comes and return it whole."""
        inputs: dict[int, str] = {}
        with _errors_translated(self._client), self._client.messages.stream(**self._params(params)) as stream:
            for event in stream:
                if event.type == "text":
                    yield Text(event.text)
                elif event.type == "thinking":
                    yield Thinking(event.thinking)
                elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                    inputs[event.index] = inputs.get(event.index, "") + event.delta.partial_json
            message = cast(Json, stream.current_message_snapshot.to_dict(warnings=False))
        if message.get("stop_reason") is None:
            raise ModelUnavailableError("the reply broke off before its end")
        # What the SDK makes, without a word, of an input that is no JSON object is kept if it can be sent back.
        malformed: list[int] = []
        blocks = _blocks(message.get("content"))
        calls = [index for index, block in enumerate(blocks) if block.get("type") == "tool_use"]
        for place, index in enumerate(calls):
            try:
                is_object = isinstance(json.loads(inputs.get(index) or "{}"), dict)
            except ValueError:
                is_object = False
            if not is_object:
                malformed.append(place)
                if not isinstance(blocks[index].get("input"), dict):
                    blocks[index] = {**blocks[index], "input": {}}
        return FinishedReply({**message, "content": blocks}, tuple(malformed))

    def count_tokens(self, params: Json) -> int | None:
        """Return what the provider counts, or None if it does not count. A server that cannot is asked once."""
        import anthropic
        import httpx2

        if not self._counts:
            return None
        counted = {k: v for k, v in self._params(params).items() if k != "max_tokens"}
        try:
            return _positive(self._client.messages.count_tokens(**counted).input_tokens)
        except TypeError as error:
            raise _missing_key(error) from error
        except (anthropic.APIStatusError, AttributeError, ValueError) as error:
            # A server without that endpoint, or with something else in its place, will not grow one.
            self._counts = getattr(error, "status_code", NO_SUCH_ENDPOINT[0]) not in NO_SUCH_ENDPOINT
            return None
        except (anthropic.AnthropicError, httpx2.TransportError):
            return None

    def max_input_tokens(self) -> int | None:
        """Return the window from the provider's record of the model, or None if there is no record."""
        import anthropic
        import httpx2

        try:
            if self._window is None:
                record = self._client.models.retrieve(self.name, timeout=RECORD_SECONDS)
                self._window = _positive(record.max_input_tokens)
            return self._window
        except TypeError as error:
            raise _missing_key(error) from error
        except (anthropic.AnthropicError, httpx2.TransportError, AttributeError, ValueError):
            return None  # no record, or one that cannot be read


def _positive(found: Any) -> int | None:
    """Return a number that a server sent, or None if it is not a positive whole number."""
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _blocks(content: Any) -> list[Json]:
    """Return the blocks of a reply. Raise UnreadableReplyError for what no server should send."""
    blocks = cast("list[Json]", content or [])
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnreadableReplyError(f"the reply's content is {brief(content)}; it has to be a list of blocks.")
    return blocks


@contextmanager
def _errors_translated(client: Anthropic) -> Generator[None]:
    """Turn what the SDK raises into what the loop can do about it: try again, make it shorter, or stop."""
    import anthropic
    import httpx2

    keys = [key for key in (getattr(client, "api_key", None), getattr(client, "auth_token", None)) if key]
    try:
        yield
    except anthropic.APIStatusError as error:
        raise _translate(error, keys) from error
    except (anthropic.APIConnectionError, httpx2.RequestError, AssertionError) as error:
        # The assertion is the SDK's: its stream ended before the message had begun.
        what = str(error) or "no message began; does a server of the Messages API answer at model.base_url?"
        text = redacted(f"the connection to the model at {client.base_url} was lost: {what.rstrip('.')}", keys)
        raise ModelUnavailableError(text) from error
    except anthropic.AnthropicError as error:
        text = redacted(f"{error} Check the model's settings and credentials.", keys)
        raise ModelRefusedError(text) from error
    except (TypeError, AttributeError, ValueError, LookupError, RuntimeError) as error:
        if isinstance(error, TypeError) and "authentication" in str(error):
            raise _missing_key(error) from error
        # The SDK's, of events that make no sense.
        raise UnreadableReplyError(f"the reply could not be read: {error}") from error


def _missing_key(error: TypeError) -> Exception:
    """Return what to raise for a TypeError: the SDK raises one if it finds no key, any other is a bug of ours."""
    if "authentication" not in str(error):
        return error
    return ModelRefusedError(NO_KEY)


def _translate(error: Any, keys: list[str]) -> Exception:
    """Return what an HTTP status means for the caller, with the provider's own words."""
    try:
        inner: Json = dict(error.body["error"])
    except (LookupError, TypeError, ValueError):
        inner = {}
    text, kind = redacted(str(inner.get("message") or error.message), keys), str(inner.get("type") or "")
    status, retry_after = error.status_code, error.response.headers.get("retry-after", "")
    return status_error(status, text, kind=kind, retry_after=retry_after, hint=HINTS.get(status, ""))
