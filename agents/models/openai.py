"""Chat Completions through the openai SDK: OpenAI's own server and every other that speaks its API. The only file that
imports it. Needs the extra `selfpager[openai]`; the wire form is in `chat_completions`.

Nothing counts tokens on this wire. It retries nothing: the loop does. Only a request that was refused for the form of a
field, in which servers differ, is sent again in another form (`Dialect`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from agents.events import Text, Thinking
from agents.models.chat_completions import REASONING_BACK, ReplyReader, request_body
from agents.models.http import (
    RECORD_SECONDS,
    RETRIES,
    TOO_LONG,
    Reachable,
    is_blank,
    is_local,
    local_client,
    status_error,
)
from agents.models.model import (
    FinishedReply,
    Json,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
    PromptTooLongError,
    UnreadableReplyError,
)
from pager.safety.redaction import redacted

if TYPE_CHECKING:
    from openai import APIError, OpenAI, Stream
    from openai.types.chat import ChatCompletionChunk

MISSING = "'provider: openai' needs the package openai: pip install 'selfpager[openai]'."
NO_KEY = "Set OPENAI_API_KEY, or model.api_key in the agent's YAML; a server without keys takes any text."
HINTS = {
    401: " Check the key: OPENAI_API_KEY, or model.api_key.",
    403: " Check what the key may do.",
    404: " Check model.id and model.base_url, which usually ends in /v1.",
    429: " Check the credit of the account.",
}
OWN_HOST = "openai.com"
OWN_ADDRESS = "https://api.openai.com/v1"
# The names of the reply's limit: OpenAI's newer models refuse the second one, older servers overlook the first.
LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
NO_THINKING: dict[str, Json] = {
    "reasoning_effort": {"reasoning_effort": "none"},
    "chat_template_kwargs": {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
}
WINDOW_FIELDS = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")
# The size of a prompt in the text of its refusal, which names the limit, too. The memory learns from "N tokens".
PROMPT_SIZE = re.compile(
    r"(?<!\d)(\d{1,15}) (?:tokens )?(?:in|of) (?:the |your )?(?:messages|prompt|text input|input)"
    r"|(?:resulted in|contains|contains at least|has|(?:request|input|prompt) \() ?(\d{1,15})(?: input)? tokens",
    re.IGNORECASE,
)
TOKENS = re.compile(r"(\d)\s++tokens")


@dataclass(frozen=True)
class Dialect:
    """The forms of a request's fields that a server takes."""

    limit_name: str = LIMIT_NAMES[1]
    asks_usage: bool = True
    reasoning_back: bool = False
    no_thinking: tuple[str, ...] = ()  # the fields that ask for none; servers of open models know the second one

    def after(self, refusal: str) -> Dialect:
        """Return the dialect that a refusal asks for; the same one if it asks for none."""
        other = LIMIT_NAMES[1 - LIMIT_NAMES.index(self.limit_name)]
        if TOO_LONG.search(refusal):
            return self
        if "stream_options" in refusal:
            return replace(self, asks_usage=False)
        if REASONING_BACK in refusal:
            return replace(self, reasoning_back=True)
        for name in self.no_thinking:
            if name in refusal and len(self.no_thinking) > 1:
                return replace(self, no_thinking=tuple(each for each in self.no_thinking if each != name))
        return replace(self, limit_name=other) if re.search(rf"\b{other}\b", refusal) else self

    def body(self, params: Json) -> Json:
        """Return a request in this dialect, all but the model, as the SDK takes it."""
        usage = {"stream_options": {"include_usage": True}} if self.asks_usage else {}
        body = request_body(params, reasoning_back=self.reasoning_back)
        for name in self.no_thinking:
            body |= NO_THINKING[name]
        return {**body, self.limit_name: params["max_tokens"], **usage}


def make_client(*, base_url: str | None, api_key: str | None, read_seconds: float | None) -> OpenAI:
    """Return the SDK's client. Without a key it takes OPENAI_API_KEY, without an address OPENAI_BASE_URL."""
    import openai

    timeout = openai.DEFAULT_TIMEOUT if read_seconds is None else openai.Timeout(read_seconds)
    options: dict[str, Any] = {"max_retries": RETRIES, "timeout": timeout}
    if base_url:
        options["base_url"] = base_url
    elif is_blank("OPENAI_BASE_URL"):
        options["base_url"] = OWN_ADDRESS
    if direct := local_client(base_url, timeout):
        options["http_client"], api_key = direct, api_key or "none"  # such a server asks for none, the SDK for one
    return openai.OpenAI(**options, api_key=api_key)


class OpenAIModel(Reachable):
    """`Model` over the SDK. The client is made at the first request: importing the SDK takes a second. After
    `read_seconds` without a word a stream counts as lost."""

    def __init__(
        self, name: str, *, base_url: str | None = None, api_key: str | None = None, thinking: str = "default",
        read_seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self._make = partial(make_client, base_url=base_url, api_key=api_key, read_seconds=read_seconds)
        self._made: OpenAI | None = None
        self._making = Lock()
        self.may_lack_key = not (api_key or is_local(base_url) or os.environ.get("OPENAI_API_KEY"))
        self._dialect = Dialect(no_thinking=tuple(NO_THINKING) if thinking == "off" else ())

    @property
    def _client(self) -> OpenAI:
        if self._made is None:
            with self._making:
                self._made = self._made or self._connected()
        return self._made

    def _connected(self) -> OpenAI:
        try:
            import openai
        except ImportError:
            raise ModelRefusedError(MISSING) from None
        try:
            made = self._make()
        except (ValueError, TypeError, openai.OpenAIError) as error:
            text = redacted(f"the model's client cannot be created: {error} {NO_KEY}")
            raise ModelRefusedError(text) from error
        if made.base_url.host.endswith(OWN_HOST):
            self._dialect = Dialect(LIMIT_NAMES[0], no_thinking=self._dialect.no_thinking[:1])
        return made

    def close(self) -> None:
        """Close the client's connections."""
        if self._made is not None:
            self._made.close()
            self._made = None

    def check_key(self) -> str:
        """Make the client, which raises for want of a key."""
        assert self._client
        return ""

    def ask_for_record(self) -> object:
        """Ask for the model's record."""
        with _errors_translated(self._client):
            return self._client.models.retrieve(self.name, timeout=RECORD_SECONDS)

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        """Send a request, yield the reply as it comes and return it whole."""
        with _errors_translated(self._client), self._send(params) as chunks:
            reader = ReplyReader(REASONING_BACK if self._dialect.reasoning_back else "")
            for chunk in chunks:
                yield from reader.add(cast(Json, chunk.to_dict(warnings=False)))
            return reader.finish(self.name)

    def _send(self, params: Json) -> Stream[ChatCompletionChunk]:
        """Send a request, in another dialect if the server asks for one that was not tried yet."""
        import openai

        tried: set[Dialect] = set()
        while True:
            tried.add(self._dialect)
            body: Any = self._dialect.body(params)
            try:
                stream = self._client.chat.completions.create(model=self.name, stream=True, **body)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                other = self._dialect.after(_text_of(error))
                if other in tried:
                    raise
                self._dialect = other
            else:
                if "json" in stream.response.headers.get("content-type", ""):
                    raise _error_in(stream)
                return stream

    def count_tokens(self, params: Json) -> int | None:
        """Return None: this API does not count."""

    def max_input_tokens(self) -> int | None:
        """Return the window from the server's list of models, or None if it does not tell: OpenAI's does not."""
        import openai

        try:
            listed = self._client.models.list(timeout=RECORD_SECONDS).data
            records: list[Any] = [each.to_dict(warnings=False) for each in listed]
            named = [record for record in records if record.get("id") == self.name] or records
            record: Json = {**named[0], **(named[0].get("meta") or {})} if len(named) == 1 else {}
        except (openai.OpenAIError, AttributeError, TypeError, ValueError):
            return None  # no list, or one that cannot be read
        sizes = [record.get(name) for name in WINDOW_FIELDS]
        return next((size for size in sizes if type(size) is int and size > 0), None)


@contextmanager
def _errors_translated(client: OpenAI) -> Generator[None]:
    """Turn what the SDK raises into what the loop can do about it: try again, make it shorter, or stop."""
    import openai

    keys = [client.api_key] if client.api_key else []
    try:
        yield
    except openai.APIConnectionError as error:
        text = f"the connection to the model at {client.base_url} was lost: {error.__cause__ or error}"
        raise ModelUnavailableError(redacted(text, keys)) from error
    except openai.APIError as error:
        raise _translate(error, keys) from error
    except openai.OpenAIError as error:
        raise ModelRefusedError(redacted(f"{error} Check the model's settings and credentials.", keys)) from error
    except (TypeError, AttributeError, ValueError, LookupError, RuntimeError) as error:  # of chunks without sense
        raise UnreadableReplyError(f"the reply could not be read: {error}") from error


def _error_in(stream: Stream[ChatCompletionChunk]) -> APIError:
    """Return the error that some servers send as JSON, with the status 200, in place of a stream."""
    import openai

    with stream:
        text, body = stream.response.read().decode(errors="replace"), stream.response.json()
    error = body.get("error")
    return openai.APIError(f"the reply is no stream: {text}", stream.response.request, body=error)


def _translate(error: APIError, keys: list[str]) -> ModelError:
    """Return what an error means for the caller, with the server's own words."""
    import openai

    body = _body(error)
    code, kind = str(body.get("code") or ""), str(body.get("type") or "")
    kind = kind if code.isdecimal() else code or kind
    if isinstance(error, openai.APIStatusError):
        status, retry_after = error.status_code, error.response.headers.get("retry-after", "")
    else:  # in the middle of a stream, whose status was 200, there is at most a code
        status, retry_after = int(code) if code.isdecimal() else 400 if "invalid" in kind else 500, ""
    text, hint = redacted(_text_of(error), keys), HINTS.get(status, "")
    result = status_error(status, text, kind=kind, retry_after=retry_after, hint=hint)
    return PromptTooLongError(_with_size(str(result))) if isinstance(result, PromptTooLongError) else result


def _body(error: APIError) -> Mapping[str, Any]:
    body: Any = error.body
    return cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else {}


def _text_of(error: APIError) -> str:
    """Return the message; servers put it in different places."""
    own = error.body if isinstance(error.body, str) else ""
    return str(_body(error).get("message") or _body(error).get("detail") or own or error.message)


def _with_size(text: str) -> str:
    """Return a refusal from which the memory learns the prompt's size and nothing else."""
    found = PROMPT_SIZE.search(text)
    rest = TOKENS.sub(r"\1", text)
    return f"the prompt is too long: {found[1] or found[2]} tokens. {rest}" if found else rest
