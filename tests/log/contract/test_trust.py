from tests.tiers.test_trust import *  # noqa: F403
