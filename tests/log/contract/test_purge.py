from tests.upkeep.test_purge import *  # noqa: F403
