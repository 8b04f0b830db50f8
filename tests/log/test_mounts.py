"""Memories that several agents share, on a home in Postgres: the same laws."""

from tests.memory.test_mounts import *  # noqa: F403
