"""A digest that a model writes: what it is asked, and what becomes of its answer.

Nothing depends on it. An eviction is planned and fits with the built digest; only then a model may replace the lines
by its words, within the same room. Whatever goes wrong there, the built digest stands, and the ledger says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import reduce

from pager import blocks, markup, tokens
from pager.clock import from_micros
from pager.limits import DIGEST_SHARE, Limits
from pager.prompt import digest
from pager.prompt.digest import Line
from pager.prompt.epochs import Draft
from pager.prompt.state import PromptState
from pager.store.ledger import Ledger
from pager.tokens.counter import Counter
from pager.types import Step

TRIES = 6  # to cut an answer that is too long


@dataclass(frozen=True, slots=True)
class SummaryAsk:
    """What a model needs to write a summary: the one so far, the steps that leave, and how long it may be."""

    earlier: str
    leaving: str
    limit_tokens: int


Summarize = Callable[[SummaryAsk], str]


class Summary:
    """Puts the words of `summarize` into a draft of an epoch."""

    def __init__(self, summarize: Summarize, ledger: Ledger, zone: tzinfo) -> None:
        self._summarize = summarize
        self._ledger = ledger
        self._zone = zone

    def of(self, draft: Draft, view: PromptState, limits: Limits, counter: Counter) -> Draft:
        """The draft with a model's words in the room of the built digest, or as it is."""
        room = limits.of_usable(DIGEST_SHARE)
        earlier = digest.read(view.epoch.digest) if view.epoch else []
        asked = ask(earlier, draft.leaving, int(room / max(1.0, counter.ratios[0])) - 60, self._zone)
        try:
            words = self._summarize(asked) if asked.limit_tokens > 0 else ""
            if not isinstance(words, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- somebody else's
                raise TypeError(f"the summary is {words!r:.100}, no text")
        except Exception as error:  # noqa: BLE001 - anybody's code and a network: the built digest stands, told below
            return self._unchanged(draft, str(error) or type(error).__name__)
        told = line(digest.read(draft.epoch.digest), words, room, counter, self._zone)
        if told is None:
            return self._unchanged(draft, "the model gave no words")
        text = markup.digest([told.text(self._zone)])
        counts = tokens.count(text)
        epoch = replace(
            draft.epoch,
            digest=digest.write([told]),
            preamble=[blocks.text_block(text), *draft.epoch.preamble[1:]],
            sizes={**draft.epoch.sizes, "digest": counts},
        )
        self._ledger.write("digest", reason="a model wrote it", tokens=counter.tokens(counts), epoch=epoch.id)
        return replace(draft, epoch=epoch)

    def _unchanged(self, draft: Draft, why: str) -> Draft:
        self._ledger.write("digest", reason=f"no summary, the built digest stands: {why}")
        return draft


def ask(earlier: Sequence[Line], leaving: Sequence[Step], limit_tokens: int, zone: tzinfo) -> SummaryAsk:
    return SummaryAsk(
        "\n".join(line.text(zone) for line in earlier), "\n\n".join(_told(step, zone) for step in leaving), limit_tokens
    )


def _told(step: Step, zone: tzinfo) -> str:
    """A step as the prompt carried it, thinking and what was only for the moment apart."""
    forms = [part.form for part in step.parts if part.kind == "said" and part.form]
    said = "\n".join(blocks.text_of(form) for form in forms if form.get("type") not in blocks.THINKING)
    return f"s{step.id}, {step.name or step.kind}, {markup.stamp(from_micros(step.at, zone))}:\n{said}"


def line(lines: Sequence[Line], words: str, limit_tokens: int, counter: Counter, zone: tzinfo) -> Line | None:
    """All lines as one with the model's words, cut to its room; None when that leaves no words."""
    whole = reduce(digest.joined, lines)
    said = " ".join(str(blocks.clean(words)).split())
    for _ in range(TRIES):
        told = replace(whole, words=said)
        size = counter.tokens(tokens.count(markup.digest([told.text(zone)])))
        if size <= limit_tokens:
            return told if said else None
        said = tokens.head(said, int(0.9 * tokens.total(said) * limit_tokens / size))
    return None
