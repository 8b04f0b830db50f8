"""The one logger of `agents`. It is silent until a program gives it a handler:

logging.getLogger("selfpager").addHandler(logging.StreamHandler())
"""

from __future__ import annotations

import logging

log = logging.getLogger("selfpager")
log.addHandler(logging.NullHandler())  # without any, Python would print warnings by itself


class _Forwarded(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log.handle(record)


_FORWARDED = _Forwarded()


def adopt(name: str) -> None:
    """Send what a library logs under `name` to our logger. Calling this twice changes nothing."""
    library = logging.getLogger(name)
    library.addHandler(_FORWARDED)
    library.propagate = False  # ours does, so each record would appear twice
