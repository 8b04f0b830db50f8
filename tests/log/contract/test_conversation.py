from tests.conversation.test_conversation import *  # noqa: F403
