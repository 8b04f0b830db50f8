from tests.upkeep.test_helpers import *  # noqa: F403

del test_a_check_names_the_helper  # noqa: F821 - it damages a file, which is restored here
