from tests.store.test_tables import *  # noqa: F403
