"""The contract of the memory, with the log: its tiers, its prompt, its inbox, its purges."""

from tests.conversation.test_conversation import *  # noqa: F403
from tests.memory.test_explain import *  # noqa: F403
from tests.memory.test_home import *  # noqa: F403
from tests.memory.test_window_holds import *  # noqa: F403
from tests.prompt.test_prompt import *  # noqa: F403
from tests.tiers.test_archive import *  # noqa: F403
from tests.tiers.test_core import *  # noqa: F403
from tests.tiers.test_pages import *  # noqa: F403
from tests.tiers.test_prefetch import *  # noqa: F403
from tests.tiers.test_recall import *  # noqa: F403
from tests.tiers.test_trust import *  # noqa: F403
from tests.upkeep.test_helpers import *  # noqa: F403
from tests.upkeep.test_inbox import *  # noqa: F403
from tests.upkeep.test_purge import *  # noqa: F403
