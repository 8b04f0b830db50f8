from tests.prompt.test_prompt import *  # noqa: F403
