from tests.memory.test_explain import *  # noqa: F403
