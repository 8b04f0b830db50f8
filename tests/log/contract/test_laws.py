from tests.laws.test_memory_laws import *  # noqa: F403
