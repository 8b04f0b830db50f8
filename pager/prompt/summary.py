"""A digest that a model writes: what the model is given, and what becomes of its answer.

Nothing depends on it. An eviction is planned and fits with the built digest; only then a model may replace the lines by
its words, within the same room. Whatever goes wrong there, the built digest is used, and the ledger says why.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import reduce

from pager import blocks, markup, tokens
from pager.clock import format_minute, from_micros
from pager.errors import brief
from pager.limits import DIGEST_SHARE
from pager.prompt import digest
from pager.prompt.digest import Line
from pager.prompt.epochs import Draft
from pager.prompt.state import PromptState
from pager.safety.sources import union
from pager.store import Store
from pager.store.rows import Step
from pager.tiers.trust import FORGOTTEN
from pager.tokens.counter import Counter, Window

MAX_CUTS = 6  # of an answer that is too long


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The input for a model that writes a summary: the one so far, the steps that leave, and how long it may be."""

    earlier: str
    leaving: str
    limit_tokens: int


Summarize = Callable[[SummaryRequest], str]


class Summary:
    """Puts the words of `summarize` into a draft of an epoch."""

    def __init__(self, summarize: Summarize, store: Store, window: Window, zone: tzinfo) -> None:
        self._summarize = summarize
        self._store = store
        self._window = window
        self._zone = zone

    def write(self, draft: Draft, state: PromptState) -> Draft:
        """Return the draft with a model's words in place of the built digest; the same draft if that fails."""
        counter, room = self._window.counter, self._window.limits.share_in_tokens(DIGEST_SHARE)
        earlier = digest.read(state.epoch.digest) if state.epoch else []
        if draft.leaving[0].id <= int(self._store.settings.get(FORGOTTEN) or 0):
            return self._unchanged(draft, "what leaves holds something of a forgotten source")
        lines = "\n".join(line.text(self._zone) for line in earlier)
        leaving = "\n".join(_as_text(step, self._zone) for step in draft.leaving)
        request = SummaryRequest(lines, leaving, int(room / max(1.0, counter.ratios[0])) - 60)
        try:
            words = self._summarize(request) if request.limit_tokens > 0 else ""
            if not isinstance(words, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- anybody's function
                raise TypeError(f"the summary is {brief(words)}, no text")
        except Exception as error:  # noqa: BLE001 - anybody's code and a network: the built digest stands
            return self._unchanged(draft, str(error) or type(error).__name__)
        sources = union(*(line.sources for line in earlier), *(step.sources for step in draft.leaving))
        whole = replace(reduce(digest.joined, digest.read(draft.epoch.digest)), sources=sources)
        line = summary_line(whole, words, room, counter, self._zone)
        if line is None:
            return self._unchanged(draft, "the model gave no words")
        text = markup.digest([line.text(self._zone)])
        counts = tokens.count(text)
        shown = blocks.text_block(text)
        preamble = [shown if markup.shows_digest(block) else block for block in draft.epoch.preamble]
        sizes = {**draft.epoch.sizes, "digest": counts}
        shown_sources = frozenset(union(draft.epoch.sources, sources))
        epoch = replace(
            draft.epoch, digest=digest.write([line]), preamble=preamble, sizes=sizes, sources=shown_sources
        )  # fmt: skip
        size = counter.tokens(counts)
        self._store.ledger.write("digest", reason="a model wrote it", tokens=size, epoch=epoch.id)
        return replace(draft, epoch=epoch)

    def _unchanged(self, draft: Draft, why: str) -> Draft:
        self._store.ledger.write("digest", reason=f"no summary, the built digest stands: {why}")
        return draft


def _as_text(step: Step, zone: tzinfo) -> str:
    forms = [part.form for part in step.parts if part.kind == "said" and part.form]
    text = "\n".join(blocks.text_of(form) for form in forms if form.get("type") not in blocks.THINKING)
    return markup.one_line(f"s{step.id}, {step.name or step.kind}, {format_minute(from_micros(step.at, zone))}: {text}")


def summary_line(whole: Line, words: str, limit_tokens: int, counter: Counter, zone: tzinfo) -> Line | None:
    """Return the line of all steps with the model's words, cut to its room; None if that leaves no words."""
    text = " ".join(str(blocks.clean(words)).split())
    for _ in range(MAX_CUTS):
        line = replace(whole, words=text)
        size = counter.tokens(tokens.count(markup.digest([line.text(zone)])))
        if size <= limit_tokens:
            return line if text else None
        text = tokens.head(text, int(0.9 * tokens.total(text) * limit_tokens / size))
    return None
