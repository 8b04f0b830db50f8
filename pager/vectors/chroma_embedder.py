"""Any of Chroma's embedding functions as an Embedder: `ChromaEmbedder("ollama", {"model_name": "nomic-embed-text"})`.

`ChromaEmbedder.check` raises if the name or its arguments are wrong. Making one calls the function's own constructor,
which raises if something is missing (a package, a key) and may load weights. The fingerprint has no secrets in it.
chromadb is imported when an embedder is checked or made.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from threading import Lock
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from pager.errors import RejectedError, brief
from pager.safety.redaction import redacted
from pager.vectors.embedder import EmbedderUnavailableError, Rows

_SECRET = re.compile(r"key|token|secret|password|credential|header|auth", re.IGNORECASE)
AT_ONCE = 16  # texts in a call, for whose end other threads wait: on a slow machine they take a second or two
_ABOUT_THE_CALL = frozenset({"timeout", "device", "preferred_providers", "batch_size"})  # they change no vector


class EmbedderConfigError(RejectedError):
    """No embedding function has that name, or it takes no such argument; then `argument` is its name."""

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class ChromaEmbedder:
    """An Embedder. `config` are the arguments of the function's constructor."""

    def __init__(self, name: str, config: Mapping[str, Any] | None = None) -> None:
        config = config or {}
        function = self.check(name, config)
        self._name, self._dimension = name, 0
        named = [os.environ.get(str(value), "") for argument, value in config.items() if argument.endswith("_env_var")]
        self._secrets = [str(value) for argument, value in config.items() if self.is_secret(argument)] + named
        self._lock, self._next = Lock(), Lock()
        try:
            with warnings.catch_warnings():
                # It warns that a key given directly is not stored, which is what we want.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._embed = function(**config)
                reported = self._embed.get_config()  # with its defaults
        except Exception as error:
            raise EmbedderUnavailableError(f"the embedder {name!r} cannot be used: {self._shown(error)}") from error
        settings = _plain(reported if isinstance(reported, Mapping) else config)
        self.fingerprint = f"chroma {name} {json.dumps(settings, sort_keys=True, ensure_ascii=False)}"

    @staticmethod
    def check(name: str, config: Mapping[str, Any]) -> Callable[..., Any]:
        """Return Chroma's function. Raise EmbedderConfigError if there is none, or if it takes other arguments."""
        from chromadb.utils import embedding_functions

        functions: dict[str, Callable[..., Any]] = vars(embedding_functions)["known_embedding_functions"]
        function = functions.get(str(name))
        if function is None:
            near = _suggest(str(name), sorted(functions))
            raise EmbedderConfigError(f"Chroma has no embedding function {brief(name)}{near}")
        parameters = inspect.signature(function).parameters.values()
        known = {each.name: each for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)}
        unknown = [argument for argument in config if argument not in known]
        if unknown and not any(each.kind is each.VAR_KEYWORD for each in parameters):
            near = _suggest(unknown[0], list(known))
            raise EmbedderConfigError(f"{name} takes no argument {unknown[0]!r}{near}", unknown[0])
        needed = [each for each in known if known[each].default is inspect.Parameter.empty and each not in config]
        if needed:
            raise EmbedderConfigError(f"{name} needs more arguments: {', '.join(needed)}.")
        return function

    @staticmethod
    def is_secret(argument: str) -> bool:
        """Return True if the value of an argument must not be shown. The name of an environment variable may be."""
        return bool(_SECRET.search(argument)) and not argument.endswith("_env_var")

    @property
    def dimension(self) -> int:
        """Return the length of a row."""
        if not self._dimension:
            self.embed(["dimension"])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Rows:
        """Return one row per text."""
        import numpy as np

        given = [text or " " for text in texts]  # some services refuse an empty one
        try:
            calls = [self._call(given[at : at + AT_ONCE]) for at in range(0, len(given), AT_ONCE)]
            rows = np.concatenate([np.asarray(found, dtype=np.float32) for found in calls])
            self._dimension = self._dimension or rows.shape[1]
        except Exception as error:
            why = f"{type(error).__name__}: {self._shown(error)}"
            raise EmbedderUnavailableError(f"the embedder {self._name!r} failed: {why}") from error
        return rows

    def _shown(self, error: Exception) -> str:
        """Return the text of an error, which goes to the ledger, without secrets."""
        return redacted(str(error), self._secrets)

    def _call(self, texts: list[str]) -> Any:
        """Call the function, one call at a time. A thread that waits meanwhile is next, before the rest of a batch."""
        with self._next:
            self._lock.acquire()
        try:
            return self._embed(texts)
        finally:
            self._lock.release()


def _suggest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known) or 'none'}."


def _plain(value: Any) -> Any:
    """Return the settings that decide the vectors, without secrets."""
    if isinstance(value, Mapping):
        return {
            name: _plain(item)
            for name, item in cast("Mapping[str, Any]", value).items()
            if not (_SECRET.search(name) or name.endswith("_env_var") or name in _ABOUT_THE_CALL or item is None)
        }
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, str) and "://" in value:  # an address, without its login
        parts = urlsplit(value)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return value if isinstance(value, str | bool | int | float) else type(value).__name__
