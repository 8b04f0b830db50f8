"""Every law of the memory at once, under random use: with a provider that counts tokens, with one that does not, and on
the wire of Chat Completions."""

from hypothesis import settings

from tests.laws.machine import MemoryLaws
from tests.laws.opened import LOOK, NOTE
from tests.standin.chat import StoredForm


class Counted(MemoryLaws):
    counts = True


class Uncounted(MemoryLaws):
    counts = False


class OverChatCompletions(MemoryLaws):
    counts = False
    standin = StoredForm
    tools_known = [[LOOK], [LOOK, NOTE], [{**LOOK, "description": "Looks twice."}]]  # noqa: RUF012


assert settings.default is not None
_effort = settings(
    max_examples=max(8, settings.default.max_examples // 8), stateful_step_count=40, report_multiple_bugs=False
)

TestMemoryWhereTokensAreCounted = Counted.TestCase
TestMemoryWhereTokensAreCounted.settings = _effort
TestMemoryWhereTokensAreGuessed = Uncounted.TestCase
TestMemoryWhereTokensAreGuessed.settings = _effort
TestMemoryOverChatCompletions = OverChatCompletions.TestCase
TestMemoryOverChatCompletions.settings = settings(_effort, max_examples=max(5, _effort.max_examples // 2))
