from tests.sleep.conftest import memory, open_memory  # noqa: F401
from tests.sleep.test_sleeps import *  # noqa: F403
