"""The one logger of `agents`. It is silent until a program gives it a handler:

logging.getLogger("selfpager").addHandler(logging.StreamHandler())
"""

from __future__ import annotations

import logging

log = logging.getLogger("selfpager")
log.addHandler(logging.NullHandler())  # without any, Python would print warnings by itself


class _Forwarded(logging.Handler):
    """Records of a library as ours."""

    def emit(self, record: logging.LogRecord) -> None:
        log.handle(record)


_FORWARDED = _Forwarded()


def adopt(name: str) -> None:
    """What a library logs under `name` goes where ours goes, and is as silent. (Doing so twice changes nothing.)"""
    theirs = logging.getLogger(name)
    theirs.addHandler(_FORWARDED)
    theirs.propagate = False  # ours does: it would be told twice
