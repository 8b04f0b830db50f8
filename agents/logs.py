"""The one logger of `agents`. It is silent until a program gives it a handler:

logging.getLogger("selfpager").addHandler(logging.StreamHandler())
"""

import logging

log = logging.getLogger("selfpager")
log.addHandler(logging.NullHandler())  # without any, Python would print warnings by itself


def adopt(name: str) -> None:
    """Send what a library logs under `name` to our logger."""
    logging.getLogger(name).parent = log
