from tests.upkeep.test_inbox import *  # noqa: F403
