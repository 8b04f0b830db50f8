"""Every law of the memory at once, under random use: with a provider that counts tokens, and with one that does not."""

from hypothesis import settings

from tests.laws.machine import MemoryLaws


class Counted(MemoryLaws):
    counts = True


class Uncounted(MemoryLaws):
    counts = False


assert settings.default is not None
_effort = settings(
    max_examples=max(8, settings.default.max_examples // 8), stateful_step_count=40, report_multiple_bugs=False
)

TestMemoryWhereTokensAreCounted = Counted.TestCase
TestMemoryWhereTokensAreCounted.settings = _effort
TestMemoryWhereTokensAreGuessed = Uncounted.TestCase
TestMemoryWhereTokensAreGuessed.settings = _effort
