"""How large a prompt really is, which is what the first law rests on, and what responses teach about that.

`weigh` knows surely where even one token for each byte would fit; else it asks the provider; where none counts, what
was learned decides with its margin, or a bound for what is new.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pager import blocks, tokens
from pager.prompt import render as window
from pager.prompt.state import PromptState
from pager.store.ledger import Ledger
from pager.tokens.counter import Counter
from pager.types import Json, Usage

AROUND_BLOCK = 12  # tokens that a block may cost beside its text
AROUND_REPLIED = 32  # or one of a reply beside the output that it was billed as
AROUND_TOOLS = 300  # and what a provider writes around the tools
MEMORY_TOOL = 3000  # and for its own memory tool, of which the request says only the type
LEAST_TOKENS_SHARE, MOST_TOKENS_TIMES = 0.2, 8  # of tiktoken's count: what a server that counts can say of text
CountTokens = Callable[[Json], int | None]  # None: the provider could not say


@dataclass(slots=True)
class Scales:
    """`counter` is the one of the present model; a `count_tokens` is the provider's."""

    counter: Counter
    ledger: Ledger
    count_tokens: CountTokens | None

    def weigh(self, view: PromptState, usable_tokens: int) -> tuple[int, bool]:
        """What the request that this view makes has at most, and whether the provider said so."""
        size, base, new = view.size(self.counter), view.base_tokens, view.unmeasured()
        around = AROUND_BLOCK * len(new) + AROUND_REPLIED * view.base_blocks + (0 if base else _around_tools(view))
        media = 2 * view.counts_not_measured().media  # how large it really is only the provider knows
        most = (base or 0) + media + around + sum(map(tokens.upper_bound, new))
        if most <= usable_tokens and not (media and self.count_tokens):
            return size.tokens, False
        counted = self._count(view)
        if counted is not None:
            self.counter.learn(view.counts(), counted)
            view.counted(counted)
            return counted, True
        if self.counter.learned and size.safe <= usable_tokens:
            return size.tokens, False
        return max(size.tokens, (base or 0) + media + around + sum(map(tokens.byte_bound, new))), False

    def _count(self, view: PromptState) -> int | None:
        """What the provider says, if it says a number. The function is somebody else's: its errors are told."""
        if self.count_tokens is None:
            return None
        assert view.epoch is not None
        params = window.render(view.epoch, view.messages(), None, view.epoch.settings["max_output_tokens"])
        try:
            counted = self.count_tokens(params)
        except Exception as error:  # noqa: BLE001 - told, and the request goes on with a bound
            self.ledger.write("error", reason=f"count_tokens failed: {str(error) or type(error).__name__}")
            return None
        right = isinstance(counted, int) and not isinstance(counted, bool) and counted > 0
        return counted if right else None

    def believe(self, view: PromptState, usage: Usage) -> bool:
        """Whether it can be what the request of this view cost; some servers do not count."""
        counts = view.counts()
        text = counts.total - counts.media
        most = math.inf if counts.media else text * MOST_TOKENS_TIMES  # what documents hold nobody knew
        return text * LEAST_TOKENS_SHARE <= usage.whole_input <= most

    def learn(self, view: PromptState, usage: Usage) -> bool:
        """Learn from what the request of this view cost: whether that told anything."""
        since = view.counts_since_base()
        if since is None or view.base_tokens is None:
            return self.counter.learn(view.counts(), usage.whole_input)
        return view.base_is_exact and self.counter.learn(since, usage.whole_input - view.base_tokens)


def _around_tools(view: PromptState) -> int:
    tools = view.epoch.tools if view.epoch else []
    return AROUND_TOOLS + MEMORY_TOOL * sum(map(blocks.is_memory_tool, tools))
