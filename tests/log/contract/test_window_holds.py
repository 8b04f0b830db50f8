from tests.memory.test_window_holds import *  # noqa: F403
