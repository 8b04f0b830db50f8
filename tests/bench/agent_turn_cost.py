"""What a turn of an agent costs against the bare SDK call with the same request, over HTTP.

Ours: `agent.turn(text)` of configs/assistant.yaml: the message written to disk, the request rendered, sent, streamed,
the reply written. Bare: the request of that turn, sent once more with the same client and streamed to its end. Both
ask the same server, which costs next to nothing, in its own process. After ten more turns the young agent starts anew,
from a copy. With facts in the archive each message is embedded and the facts that fit are put behind it: told beside,
without a limit, because the bare call has nothing like it.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

from agents import Agent
from agents.events import Text, Thinking
from agents.models.anthropic import AnthropicModel
from agents.models.model import FinishedReply, Json
from tests.bench.figures import Figure, Pair, pair, timed
from tests.bench.grown import Talk, archive_all
from tests.bench.quick_server import QuickServer
from tests.bench.texts import Texts

ASSISTANT = Path(__file__).parents[2] / "configs" / "assistant.yaml"
LONG, SHORT = 5_000, 10
FACTS = 100
ROUNDS, WARM_UP = 300, 20


class Watched(AnthropicModel):
    """Remembers the last request."""

    last: Json

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        self.last = params
        return (yield from super().stream(params))

    def again(self) -> None:
        """The same request by the SDK alone."""
        client: Any = self._client
        with client.messages.stream(**self._params(self.last)) as stream:
            for _ in stream:
                pass
            stream.get_final_message()


class Side:
    """An agent that is always about so many turns old."""

    def __init__(self, work: Path, base_url: str, turns: int, *, facts: int, renew: bool) -> None:
        self._home, self._seed = work / "home", work / "seed"
        self._base_url = base_url
        self._renew = renew
        self._texts = Texts(1)
        self._left = SHORT
        with self._load(self._seed) as agent:
            archive_all(agent.memory, self._texts.facts(facts))
            Talk(agent.memory, Texts(2)).turns_in_batches(turns)
        self._start()

    def _load(self, home: Path) -> Agent:
        self.model = Watched("m", base_url=self._base_url)
        return Agent.load(ASSISTANT, home=home, environ={}, model=self.model)

    def _start(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        shutil.copytree(self._seed, self._home)
        self.agent = self._load(self._home)
        self._turn()  # the first one after opening reads what the others find in memory
        self._left = SHORT

    def _turn(self) -> None:
        self.agent.turn(self._texts.said(1))

    def ours(self) -> float:
        if self._renew and not self._left:
            self.agent.close()
            self._start()
        self._left -= 1
        return timed(self._turn)

    def bare(self) -> float:
        return timed(self.model.again)


def figures(work: Path) -> list[Figure]:
    with QuickServer() as server:
        young = measured(work / "young", server.base_url, SHORT, renew=True)
        old = measured(work / "old", server.base_url, LONG, renew=False)
        knowing = measured(work / "knowing", server.base_url, SHORT, facts=FACTS, renew=True)
    told = ("ours", "the bare call")
    return [
        Figure("a turn against the bare SDK call, at 10 turns", young.told(*told), young.ratio, 1.5),
        Figure("... the mean of all", young.told_means(*told), young.ratio_of_means),
        Figure("a turn against the bare SDK call, at 5,000 turns", old.told(*told), old.ratio, 1.5),
        Figure("... the mean of all, evictions among them", old.told_means(*told), old.ratio_of_means),
        Figure("a turn with recalled facts (100), at 10 turns", knowing.told(*told), knowing.ratio),
    ]


def measured(work: Path, base_url: str, turns: int, *, facts: int = 0, renew: bool) -> Pair:
    work.mkdir()
    side = Side(work, base_url, turns, facts=facts, renew=renew)
    found = pair(side.ours, side.bare, rounds=ROUNDS, warm_up=WARM_UP)
    side.agent.close()
    return found
