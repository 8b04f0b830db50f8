from tests.tiers.test_recall import *  # noqa: F403
