from tests.store.test_lists import *  # noqa: F403
