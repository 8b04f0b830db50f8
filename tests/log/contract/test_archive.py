from tests.tiers.test_archive import *  # noqa: F403
