"""The one logger of `agents`. It is silent until a program gives it a handler:

logging.getLogger("selfpager").addHandler(logging.StreamHandler())
"""

from __future__ import annotations

import logging

log = logging.getLogger("selfpager")
log.addHandler(logging.NullHandler())  # without any, Python would print warnings by itself
