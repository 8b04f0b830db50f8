from tests.tiers.test_prefetch import *  # noqa: F403
