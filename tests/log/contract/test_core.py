from tests.tiers.test_core import *  # noqa: F403
