from tests.store.test_database import *  # noqa: F403
