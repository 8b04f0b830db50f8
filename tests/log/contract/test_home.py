from tests.memory.test_home import *  # noqa: F403
