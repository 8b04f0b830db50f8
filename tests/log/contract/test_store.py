"""The contract of the store, with the log."""

from tests.store.test_database import *  # noqa: F403
from tests.store.test_lists import *  # noqa: F403
from tests.store.test_tables import *  # noqa: F403
