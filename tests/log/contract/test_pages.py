from tests.tiers.test_pages import *  # noqa: F403
