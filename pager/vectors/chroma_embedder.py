"""Any of Chroma's embedding functions as an Embedder, by the name under which Chroma knows it.

    >>> from pager.vectors.chroma_embedder import ChromaEmbedder
    >>> embedder = ChromaEmbedder("ollama", {"model_name": "nomic-embed-text"})       # doctest: +SKIP
    >>> Memory.open(directory, embedder=embedder)                                     # doctest: +SKIP

`ChromaEmbedder.check` raises if the name or its arguments are wrong. Making one calls the function's own constructor,
which raises if something is missing (a package, a key) and may load weights. The fingerprint has no secrets in it.
chromadb is imported when an embedder is checked or made.
"""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from threading import Lock
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from pager.errors import RejectedError
from pager.vectors.embedder import EmbedderUnavailableError, Rows

_SECRET = re.compile(r"key|token|secret|password|credential|header|auth", re.IGNORECASE)
AT_ONCE = 16  # texts in a call, for whose end other threads wait: on a slow machine they take a second or two
_ABOUT_THE_CALL = frozenset({"timeout", "device", "preferred_providers", "batch_size"})  # they change no vector


class EmbedderConfigError(RejectedError):
    """No embedding function has that name, or it takes no such argument; then `argument` is its name."""

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


def _function(name: str) -> Callable[..., Any]:
    from chromadb.utils import embedding_functions

    known: dict[str, Callable[..., Any]] = vars(embedding_functions)["known_embedding_functions"]  # typed in part
    if name not in known:
        raise EmbedderConfigError(f"Chroma has no embedding function {name!r}{_suggest(name, sorted(known))}")
    return known[name]


def _suggest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word.lower(), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known) or 'none'}."


class ChromaEmbedder:
    """An Embedder. `config` are the arguments of the function's constructor."""

    def __init__(self, name: str, config: Mapping[str, Any] | None = None) -> None:
        self.check(name, config or {})
        self._name = name
        self._lock, self._next = Lock(), Lock()
        self._dimension = 0
        try:
            with warnings.catch_warnings():
                # It warns that a key given directly is not stored, which is what we want.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._embed = _function(name)(**(config or {}))
        except Exception as error:
            raise EmbedderUnavailableError(f"the embedder {name!r} cannot be used: {error}") from error
        self.fingerprint = f"chroma {name} {_identity(self._embed, config or {})}"

    @staticmethod
    def check(name: str, config: Mapping[str, Any]) -> None:
        """Raise EmbedderConfigError if Chroma has no such function, or if it takes other arguments."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise EmbedderConfigError(f"the embedding function is {name!r:.100}; give its name, such as 'ollama'.")
        parameters = inspect.signature(_function(name)).parameters.values()
        named = [each for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
        known = [each.name for each in named]
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
        for argument in config if not takes_any else ():
            if argument not in known:
                raise EmbedderConfigError(f"{name} takes no argument {argument!r}{_suggest(argument, known)}", argument)
        needed = [each.name for each in named if each.default is each.empty and each.name not in config]
        if needed:
            raise EmbedderConfigError(f"{name} needs more arguments: {', '.join(needed)}.")

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
        """Return one row of unit length per text."""
        import numpy as np

        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        # No encoder takes lone surrogates, and some services refuse an empty text.
        readable = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") or " " for text in texts]
        try:
            calls = [self._call(readable[at : at + AT_ONCE]) for at in range(0, len(readable), AT_ONCE)]
            rows = np.concatenate([np.asarray(found, dtype=np.float32) for found in calls])
        except Exception as error:
            raise EmbedderUnavailableError(
                f"the embedder {self._name!r} failed: {type(error).__name__}: {error}"
            ) from error
        wanted = (len(texts), self._dimension or (rows.shape[1] if rows.ndim == 2 else 0))
        if rows.shape != wanted or not wanted[1] or not np.isfinite(rows).all():
            raise EmbedderUnavailableError(
                f"the embedder {self._name!r} answered with numbers of shape {rows.shape} for {len(texts)} texts, or "
                f"with some that are none; expected {wanted}."
            )
        self._dimension = wanted[1]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        # A vector of zeros has no direction: it becomes one that is equally far from every axis.
        return np.where(lengths > 0, rows / np.where(lengths > 0, lengths, 1), self._dimension**-0.5).astype(np.float32)

    def _call(self, texts: list[str]) -> Any:
        """Call the function, one call at a time. A thread that waits meanwhile is next, before the rest of a batch."""
        with self._next:
            self._lock.acquire()
        try:
            return self._embed(texts)
        finally:
            self._lock.release()


def _identity(function: Any, config: Mapping[str, Any]) -> str:
    """Return the settings that decide the vectors, as JSON: the function's own with its defaults, or `config`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        reported = function.get_config()
    settings = cast("Mapping[str, Any]", reported if isinstance(reported, Mapping) else config)
    return json.dumps(_plain(settings), sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
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
