"""Facts that are put behind a user message before anyone asks for them, within a budget of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pager import markup, tokens
from pager.arguments import whole_number
from pager.errors import RejectedError
from pager.search.words import excerpt, telling_words, words
from pager.store import Store
from pager.tiers.archive import Archival
from pager.tiers.relevance import relevant
from pager.types import Hit

QUERY_CHARS = 2000  # a longer message is searched by its beginning


@dataclass(frozen=True, slots=True)
class Prefetch:
    """`k` facts at most, `budget_tokens` in all; off with k 0."""

    k: int = 0
    budget_tokens: int = 400

    def __post_init__(self) -> None:
        for name in ("k", "budget_tokens"):
            if whole_number(getattr(self, name), f"{name} of prefetch") < 0:
                raise RejectedError(f"{name} of prefetch is {getattr(self, name)}; give 0 or more.")

    def choose(self, text: str, archival: Archival, store: Store) -> list[Hit]:
        """The facts that help with a message, best first; none for a greeting. What is too long for what is left of the
        budget leaves room for the next."""
        if self.k < 1 or not telling_words(text[:QUERY_CHARS]):
            return []
        chosen: list[Hit] = []
        left = self.budget_tokens
        found = archival.find(text[:QUERY_CHARS], limit=self.k)
        for hit in relevant(found, text[:QUERY_CHARS], store, archival):
            fitting = self._fitting(hit, left, text)
            if fitting is not None:
                chosen.append(fitting)
                left -= self._cost(fitting)
        return chosen

    def _fitting(self, hit: Hit, left: int, asked: str) -> Hit | None:
        """The fact, or of a long one the piece that the message speaks of; None if neither fits."""
        piece = replace(hit, text=excerpt(hit.text, words(asked)))
        return next((each for each in (hit, piece) if self._cost(each) <= left), None)

    def _cost(self, hit: Hit) -> int:
        return tokens.total(self.line(hit)) + 1

    @staticmethod
    def line(hit: Hit) -> str:
        return f"{hit.page_id} ({markup.stamp(hit.at)}): {hit.text}"
