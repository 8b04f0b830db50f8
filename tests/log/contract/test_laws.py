"""Every law of the memory at once, with the log: the memory is restored from Postgres whenever it is opened."""

from tests.laws.test_memory_laws import *  # noqa: F403
