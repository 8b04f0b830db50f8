"""The Messages API through the anthropic SDK, and its clients for other clouds. The only file that imports it.

It detects what the SDK does not report: a connection lost in the middle of a stream, a stream that ends without a stop
reason, tool input that is not JSON. It retries nothing: the loop does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from agents.events import Text, Thinking
from agents.models.model import (
    FinishedReply,
    Json,
    ModelRefusedError,
    ModelUnavailableError,
    PromptTooLongError,
    UnreadableReplyError,
)

if TYPE_CHECKING:
    from anthropic import Anthropic

RECORD_SECONDS = 10.0  # the longest wait for the provider's record of the model
NO_SUCH_ENDPOINT = (404, 405, 501)
RETRIES = 0  # the loop waits, where a person sees it and a limit holds
CLOUDS = {"bedrock": "AnthropicBedrock", "vertex": "AnthropicVertex", "foundry": "AnthropicFoundry"}
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
TOO_LONG = re.compile(  # the last is llama.cpp's
    "prompt is too long|exceed context limit|context window|context length|available context size", re.IGNORECASE
)
MESSAGE_CHARS = 500
HINTS = {
    401: " Check the key: ANTHROPIC_API_KEY, or model.api_key.",
    403: " Check what the key may do.",
    404: " Check model.id and model.base_url.",
}
WORTH_WAITING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
TYPES_WORTH_WAITING = frozenset({"overloaded_error", "rate_limit_error", "api_error", "timeout_error"})


def make_client(provider: str, *, base_url: str | None, api_key: str | None, read_seconds: float | None) -> Anthropic:
    """Return the SDK's client for a provider. Each takes its credentials from where its own documentation says."""
    import ssl

    import anthropic
    import httpx2

    patience = anthropic.DEFAULT_TIMEOUT if read_seconds is None else httpx2.Timeout(read_seconds)
    options: dict[str, Any] = {"max_retries": RETRIES, "timeout": patience}
    if base_url:
        options["base_url"] = base_url
    if provider in CLOUDS:
        return getattr(anthropic, CLOUDS[provider])(**options)
    if base_url and urlsplit(base_url).hostname in LOOPBACK:
        # A server on this machine asks for no key, the SDK insists on one; and no proxy leads back here.
        # (The SDK's own client would take the environment's proxies all the same.) Without TLS the world's
        # certificates need not be read, which takes as long as a turn: https is trusted to nobody then.
        trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if urlsplit(base_url).scheme == "http" else True
        direct = httpx2.Client(trust_env=False, timeout=patience, follow_redirects=True, verify=trusted)
        return anthropic.Anthropic(**options, api_key=api_key or "none", http_client=direct)
    return anthropic.Anthropic(**options, api_key=api_key)


class AnthropicModel:
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
        self._counts = True

    @property
    def _client(self) -> Anthropic:
        if self._made is None:
            import anthropic

            try:
                self._made = self._make()
            except (ValueError, TypeError, anthropic.AnthropicError) as error:  # it lacks a key, a region, a project
                text = f"the model's client cannot be created: {error} Check the settings and credentials."
                raise ModelRefusedError(text) from error
        return self._made

    def close(self) -> None:
        """Close the client's connections."""
        if self._made is not None:
            self._made.close()
            self._made = None

    def _params(self, params: Json) -> Json:
        return {"model": self.name, **params, **({"thinking": self._thinking} if self._thinking else {})}

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
        blocks = list(cast("list[Json]", message["content"] or []))
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
            return self._client.messages.count_tokens(**counted).input_tokens
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
            found: Any = self._client.models.retrieve(self.name, timeout=RECORD_SECONDS).max_input_tokens
        except TypeError as error:
            raise _missing_key(error) from error
        except (anthropic.AnthropicError, httpx2.TransportError, AttributeError, ValueError):
            return None  # no record, or one that cannot be read
        return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


@contextmanager
def _errors_translated(client: Anthropic) -> Generator[None]:
    """Turn what the SDK raises into what the loop can do about it: try again, make it shorter, or stop."""
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _translate(error) from error
    except (anthropic.APIConnectionError, httpx2.RequestError, AssertionError) as error:
        # The assertion is the SDK's: its stream ended before the message had begun.
        what = str(error) or "no message began; does a server of the Messages API answer at model.base_url?"
        raise ModelUnavailableError(f"the connection to the model at {client.base_url} was lost: {what}") from error
    except anthropic.AnthropicError as error:
        raise ModelRefusedError(f"{error} Check the model's settings and credentials.") from error
    except (TypeError, AttributeError, ValueError, LookupError, RuntimeError) as error:
        if isinstance(error, TypeError) and "authentication" in str(error):
            raise _missing_key(error) from error
        # The SDK's, of events that make no sense.
        raise UnreadableReplyError(f"the reply could not be read: {error}") from error


def _missing_key(error: TypeError) -> Exception:
    """Return what to raise for a TypeError: the SDK raises one if it finds no key, any other is a bug of ours."""
    if "authentication" not in str(error):
        return error
    return ModelRefusedError("no key for the model: set ANTHROPIC_API_KEY, or model.api_key in the agent's YAML.")


def _translate(error: Any) -> Exception:
    """Return what an HTTP status means for the caller, with the provider's own words."""
    try:
        inner: Json = dict(error.body["error"])
    except (LookupError, TypeError, ValueError):
        inner = {}
    text = " ".join(str(inner.get("message") or error.message).split())[:MESSAGE_CHARS]
    if error.status_code in (400, 413) and TOO_LONG.search(text):
        return PromptTooLongError(text)
    # In the middle of a stream, whose status was 200, there is only the type.
    if error.status_code in WORTH_WAITING or inner.get("type") in TYPES_WORTH_WAITING:
        try:
            retry_after = max(0.0, float(error.response.headers.get("retry-after", "")))
        except ValueError:
            retry_after = None
        return ModelUnavailableError(f"the provider answered {error.status_code}: {text}", retry_after)
    hint = HINTS.get(error.status_code, "")
    return ModelRefusedError(f"the provider refused the request ({error.status_code}): {text}{hint}")
