"""The log of the server: lines of JSON on standard error, and figures for Prometheus.

A line has the time, what happened, and where: never a text of a conversation, a name that a caller chose, or a key. Of
an error it has the type and the place in the code; what is wrong with a file or the database it says in words.
"""

import json
import logging
import sys
import traceback
from contextlib import suppress
from threading import Lock
from typing import TextIO

from agents.config.errors import ConfigError
from agents.logs import log
from pager.clock import Clock
from pager.errors import InUseError, StorageError
from pager.safety.redaction import redacted
from pager.types import Json

PLACES = 3  # of the code, the innermost last


class Log:
    """Writes lines from any thread."""

    def __init__(self, clock: Clock, out: TextIO | None = None) -> None:
        self._clock = clock
        self._out = out or sys.stderr
        self._lock = Lock()

    def write(self, event: str, **fields: object) -> None:
        """Write a line."""
        line = json.dumps({"at": self._clock.now().isoformat(timespec="milliseconds"), "event": event, **fields})
        with self._lock, suppress(OSError, ValueError):  # nobody reads it any more: the server goes on
            print(line, file=self._out, flush=True)

    def trouble(self, event: str, error: BaseException | None = None) -> None:
        """Write that something went wrong, and where in the code."""
        self.write(event, level="error", **(described(error) if error else {}))

    def adopt(self) -> logging.Handler:
        """Write what the rest of the program logs here, too. Return the handler, to be removed in the end."""
        handler = _Handler(self)
        log.addHandler(handler)
        return handler

    def remove(self, handler: logging.Handler) -> None:
        """Write it no more."""
        log.removeHandler(handler)


def described(error: BaseException) -> Json:
    """Return the type of an error and its places in the code. The text of one about the machine, too: others may quote
    a conversation."""
    frames = traceback.extract_tb(error.__traceback__)[-PLACES:]
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]
    text = {"text": redacted(str(error))} if isinstance(error, ConfigError | StorageError | InUseError) else {}
    return {"error": type(error).__name__, **text, "where": places}


class _Handler(logging.Handler):
    def __init__(self, into: Log) -> None:
        super().__init__(logging.WARNING)
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        fields = described(error) if error else {}
        text = f"{record.msg}: {fields['text']}" if "text" in fields else str(record.msg)  # without its arguments
        self._into.write("log", **{**fields, "level": record.levelname.lower(), "text": text})
