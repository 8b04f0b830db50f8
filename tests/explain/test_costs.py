"""What requests cost, and where a prefix was not found in the provider's cache."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents import Agent
from agents.explain import costs
from agents.explain.costs import cache_loss
from agents.meter import Prices
from pager import MemoryReader
from pager.inspect import AnsweredRequest
from pager.types import Usage
from tests.support import Talk
from tests.support.cli import write_agent

PRICES = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)


def asked(
    read: int, write: int, *, epoch: int = 1, model: str = "m", after: timedelta = timedelta()
) -> AnsweredRequest:
    return AnsweredRequest("s2", NOON + after, epoch, model, Usage(5, 1, read, write), 0, "x0")


@pytest.mark.parametrize(
    ("now", "ttl", "why"),
    [
        (asked(1_000, 50), "5m", ""),
        (asked(960, 90), "5m", ""),  # a provider counts a few tokens more or less
        (asked(0, 1_100), "5m", "the provider did not find the prefix, which was the same: 1,000 tokens"),
        (asked(300, 1_100), "5m", "700 tokens were not found in the cache"),
        (asked(0, 900, epoch=2), "5m", "a new epoch began: 1,000 tokens"),
        (asked(0, 900, model="n"), "5m", "the model changed"),
        (asked(0, 900, after=timedelta(minutes=7)), "5m", "7 minutes had passed, and the cache keeps 5 minutes"),
        (asked(0, 900, after=timedelta(minutes=7)), "1h", "the provider did not find the prefix"),
        (asked(0, 900, after=timedelta(minutes=70)), "1h", "70 minutes had passed, and the cache"),
    ],
)  # fmt: skip
def test_a_cache_that_was_lost_says_why_and_what_was_never_cached_was_not_lost(
    now: AnsweredRequest, ttl: str, why: str
) -> None:
    silent = AnsweredRequest("s2", NOON, 1, "m", None, 0, "x0")
    assert [cache_loss(before, now, ttl) for before in (None, asked(0, 0), silent)] == [""] * 3
    assert cache_loss(now, silent, ttl) == ""
    told = cache_loss(asked(400, 600), now, ttl)
    assert why in told
    assert bool(told) == bool(why)


def test_the_lists_and_the_sum_agree(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    for number in range(30):
        talk.ask(f"turn {number} " + "and so on " * 60, "ok")
    costs.save_prices(talk.memory, PRICES)
    every = costs.costs(talk.memory, 0, 100)
    assert every.requests.total == len(every.requests.rows) == 30
    assert sum(cost.usage.whole_input for cost in every.requests.rows if cost.usage) == every.total.whole_input > 0
    assert sum(cost.usd or 0 for cost in every.requests.rows) == pytest.approx(every.usd)
    assert every.usd == pytest.approx(PRICES.usd(every.total))
    pages = [row for offset in range(0, 30, 7) for row in costs.costs(talk.memory, offset, 7).requests.rows]
    assert pages == every.requests.rows
    lost = [cost.step for cost in every.requests.rows if cost.broke]
    opened = [column.step for column in talk.memory.inspect.columns() if column.opened][1:]
    assert lost == opened[::-1]
    assert all("a new epoch began" in cost.broke for cost in every.requests.rows if cost.broke)


def test_the_prices_of_the_file_are_stored_as_the_agent_runs_with_them(tmp_path: Path) -> None:
    prices = "prices: {input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75}\n"
    for more, stored in ((prices, PRICES), (prices, PRICES), ("", None)):
        Agent.load(write_agent(tmp_path, more + "archival: {embedder: none}\n"), home=tmp_path / "home").close()
        with MemoryReader.open(tmp_path / "home" / "x") as reading:
            assert costs.load_prices(reading) == stored
            assert (costs.costs(reading).usd is None) == (stored is None)
