"""What tests of the memory stand on: a clock set by hand, small embedders, a conversation with the stand-in.

talk = Talk(directory)
talk.ask("hello", Reply("hi"))          # user message, request through the stand-in, reply
talk.memory, talk.standin, talk.watch
"""

from __future__ import annotations

from tests.support.clock import HandClock
from tests.support.embedders import Broken, Careless, Letters, Pieces, Words, vector
from tests.support.talk import TOOLS, Talk, database_of, undone

__all__ = [
    "TOOLS",
    "Broken",
    "Careless",
    "HandClock",
    "Letters",
    "Pieces",
    "Talk",
    "Words",
    "database_of",
    "undone",
    "vector",
]
