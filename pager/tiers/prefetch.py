"""Put facts and turns in front of a user message before anyone asks for them, within a budget of their own.

First it is chosen what would be put in: facts for a third of the budget, for the rest turns that have left the prompt,
each by its score. Then the message is judged, not each page: what answers a question often has a low cosine of its own.
Nothing is put in for a message without a telling word. Else the highest cosine among the chosen must reach a floor, and
must exceed the message's cosine to every sentence of small talk (`pager/data/small_talk.json`). Where there is no
cosine, or the embedder does not know the script, one of them must hold enough of the telling words. A question about
the person who asks is only measured against a lower floor: its answer was told in other words.

The thresholds were chosen on other conversations than those of `make bench-retrieval`, which judges them.
"""

import math
from base64 import b64decode, b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Literal, NamedTuple, Protocol

from pager import markup, tokens
from pager.arguments import require_int
from pager.clock import format_minute
from pager.errors import RejectedError, brief
from pager.safety.sources import label
from pager.search.words import (
    FUNCTION_WORDS,
    asks_of_self,
    count_telling,
    excerpt,
    folded,
    language_of,
    languages,
    rarities,
    telling_words,
    words,
)
from pager.store import Store
from pager.tiers.archive import RAISING, Archive
from pager.tiers.recall import Recall
from pager.types import Hit, Json, is_shared, kind_of, number_of
from pager.vectors.embedder import EmbedderUnavailableError, Rows
from pager.vectors.embedding import Embedding

COPIED = 2.0  # times the length of a fact that a sleep found, up to which its turn says little more
ADDED = 3  # words in which it may differ: the name of who spoke, and what goes with it
TRIED = 4  # times as many turns, where only trusted ones are put in
MAX_QUERY_CHARS = 2000  # a longer message is searched by its beginning
FACTS_SHARE = 3  # facts get a third of the budget, and more only where turns leave it
FLOORS = (0.50, 0.44, 0.40)  # the least highest cosine for 1, 2, and 3 or more telling words
FLOORS_WITH_FACTS = (0.50, 0.50, 0.45)  # the same if facts are among the chosen
FLOOR_OF_SELF = 0.355  # the same for "what do I do for a living?": a person's own affairs are no small talk
# In a larger memory something is near by chance: the floors rise with each doubling. That of a question about the
# person who asks also falls in a smaller one.
FREE_SIZE, RISE = 500, 0.017
COVERAGE = 0.35  # the least share of the telling words, weighted by rarity, that a page holds where words decide
BLIND = 0.5  # from this mean cosine of its small talk on, an embedder knows too little of a language to judge
SESSION = timedelta(hours=6)  # a longer pause between two lines: the time is printed anew
TIME_TOKENS = 11  # of a line that has only the time
SMALL_TALK_VECTORS = "small_talk"  # the setting that stores them
Kind = Literal["facts", "turns"]


class Judgement(NamedTuple):
    """What a message would get, judged: its best value of a measure, and the value that it needs."""

    measure: Literal["cosine", "coverage"]
    value: float
    needed: float


class Recalled(NamedTuple):
    """A page with the line that the prompt shows for it, and the time that stands before it unless that is clear; and
    why the message got any."""

    hit: Hit
    time: str
    line: str
    tokens: int
    judgement: Judgement

    @property
    def why(self) -> Json:
        """Return why it was recalled, for the ledger: the parts of its score, and how the message was judged."""
        parts = {name: round(value, 5) for name, value in self.hit.parts.items()}
        judged = {"measure": self.judgement.measure, "value": round(self.judgement.value, 3)}
        return {"score": round(self.hit.score, 5), "parts": parts, **judged, "needed": round(self.judgement.needed, 3)}


@dataclass(frozen=True, slots=True)
class Prefetch:
    """At most `k` facts and turns, `budget_tokens` in all; off with k 0."""

    k: int = 0
    budget_tokens: int = 400
    kinds: tuple[Kind, ...] = ("facts", "turns")
    trust: Literal["any", "trusted"] = "any"  # trusted: nothing with only untrusted sources

    def __post_init__(self) -> None:
        for name in ("k", "budget_tokens"):
            if require_int(getattr(self, name), f"{name} of prefetch") < 0:
                raise RejectedError(f"{name} of prefetch is {getattr(self, name)}; give 0 or more.")
        if isinstance(self.kinds, str) or not set(self.kinds) <= {"facts", "turns"}:
            raise RejectedError(
                f"kinds of prefetch are {brief(self.kinds)}; give 'facts', 'turns' or both, as a tuple."
            )
        if self.trust not in ("any", "trusted"):
            raise RejectedError(f"trust of prefetch is {brief(self.trust)}; give 'any' or 'trusted'.")


class SharedFacts(Protocol):
    """The facts of the memories that an agent shares with others."""

    def facts(self, message: str, limit: int) -> list[Hit]:
        """Return the best facts for a message, those of each memory best first."""
        ...

    def count(self) -> int:
        """Return how many there are."""
        ...


class PageChooser:
    """Chooses the pages of one memory that help with a message."""

    def __init__(
        self, prefetch: Prefetch, archive: Archive, recall: Recall, store: Store, shared: SharedFacts | None = None
    ) -> None:
        self._prefetch = prefetch
        self._archive = archive
        self._recall = recall
        self._store = store
        self._shared = shared
        self._small_talk = SmallTalk(store)

    def choose(self, text: str, resident: Collection[int], instead_of: Collection[str] = ()) -> list[Recalled]:
        """Return what helps with a message, oldest first; nothing for a greeting, and none of the `resident` steps.

        Pages that are in the prompt already are left out, but for those that may be replaced.
        """
        message = text[:MAX_QUERY_CHARS]
        if not (telling := telling_words(message)):
            return []
        last_step, shown = self._store.prompt.shown()
        shown = [page for page in shown if page not in instead_of]
        facts, turns, only_trusted = list[Hit](), list[Hit](), self._prefetch.trust == "trusted"
        copies = set[str]()
        best: list[Hit] | None = None
        if "facts" in self._prefetch.kinds:
            most = max(RAISING + 1, self._prefetch.k + len(shown))
            best = self._archive.recall(message, most, only_trusted=only_trusted)
            facts = self._with_shared(self._shared, best, message, most) if self._shared else best
            facts = [hit for hit in facts if hit.page_id not in shown][: self._prefetch.k]
            if "turns" in self._prefetch.kinds and any(is_slept(hit) for hit in best):
                copies = self._copies(best)
                best = [hit for hit in best if hit.page_id not in copies]
        if "turns" in self._prefetch.kinds and last_step > len(resident):
            without = [*resident, *(number_of(page) for page in shown if page.startswith("s"))]
            most = self._prefetch.k * (TRIED if only_trusted else 1)
            turns = self._recall.find(message, most, without=without, facts=best)
            turns = [hit for hit in turns if not (only_trusted and hit.via)]
            turns = self._without_corrected(turns, facts)[: self._prefetch.k]
        if not (facts or turns):
            return []
        chosen = self._fill(facts, turns, copies, words(message))
        if not chosen:
            return []
        judgement = self._judge(chosen, message, telling, last_step)
        return _lines(chosen, judgement) if judgement.value >= judgement.needed else []

    def _with_shared(self, shared: SharedFacts, own: Sequence[Hit], message: str, most: int) -> list[Hit]:
        """Return the best facts among one's own and those of shared memories."""
        only_trusted = self._prefetch.trust == "trusted"
        found = [hit for hit in shared.facts(message, most) if not (only_trusted and hit.via)]
        return sorted([*own, *found], key=lambda hit: -hit.score)

    def _judge(self, chosen: Sequence[Hit], message: str, telling: Sequence[str], last_step: int) -> Judgement:
        """Judge a message by what it would get: by the highest cosine, or where there is none by the best coverage."""
        has_facts = any(kind_of(hit.page_id) == "f" for hit in chosen)
        facts = self._store.archive.count_searchable() if has_facts else 0
        facts += self._shared.count() if has_facts and self._shared else 0
        cosines, of_small_talk = self._cosines(message, chosen)
        if not cosines:
            return Judgement("coverage", self._coverage(chosen, telling, facts, last_step), COVERAGE)
        rise = RISE * math.log2(max(last_step, facts, 1) / FREE_SIZE)
        if asks_of_self(message):
            return Judgement("cosine", max(cosines), FLOOR_OF_SELF + rise)
        floor = (FLOORS_WITH_FACTS if has_facts else FLOORS)[min(count_telling(telling), len(FLOORS)) - 1]
        return Judgement("cosine", max(cosines), max(floor + max(0.0, rise), math.nextafter(of_small_talk, 2.0)))

    def _cosines(self, message: str, chosen: Sequence[Hit]) -> tuple[list[float], float]:
        """Return the cosines of the chosen pages, and the highest of small talk; none where they tell nothing."""
        facts, turns = self._archive.vectors, self._recall.vectors
        meaning = facts.embedding.embed(message) if facts else None
        if facts is None or turns is None or meaning is None or not facts.embedding.vectors_match():
            return [], 0.0
        vector = meaning.vector
        of_small_talk = self._small_talk.nearest(facts.embedding, message, vector)
        if of_small_talk is None:
            return [], 0.0
        own = [hit.page_id for hit in chosen if not is_shared(hit.page_id)]
        numbers = {kind: [number_of(page) for page in own if page.startswith(kind)] for kind in "fs"}
        found = {f"f{number}": cosine for number, cosine in facts.cosines_of(numbers["f"], vector)}
        if numbers["s"]:
            found |= {f"s{number}": cosine for number, cosine in turns.cosines_of(numbers["s"], vector).items()}
        found |= {hit.page_id: hit.cosine for hit in chosen if is_shared(hit.page_id) and hit.cosine is not None}
        # What has just left the prompt has no vector yet, and is as likely to help as the rest.
        if missing := [hit.text for hit in chosen if hit.page_id not in found]:
            try:
                fresh = facts.embedding.embed_all(missing)
            except EmbedderUnavailableError as error:
                facts.embedding.log_failure(error)
                return [], 0.0
            return [*found.values(), *(float(each.vector @ vector) for each in fresh)], of_small_talk
        return list(found.values()), of_small_talk

    def _coverage(self, chosen: Sequence[Hit], telling: Sequence[str], facts: int, last_step: int) -> float:
        """Return the largest share of the telling words that a page holds, rare ones counting more."""
        asked, *texts = self._store.conversation.terms([" ".join(telling), *(folded(hit.text) for hit in chosen)])
        holding = dict.fromkeys(asked, 0)
        for table, count in ((self._store.archive, facts), (self._store.said, last_step)):
            if count:
                holding = {term: holding[term] + found for term, found in table.count_holding(asked).items()}
        weights = rarities(holding, facts + last_step)
        total = sum(weights.values()) or 1.0
        return max(sum(weights.get(term, 0.0) for term in terms) for terms in texts) / total

    def _fill(
        self, facts: Sequence[Hit], turns: Sequence[Hit], copies: Collection[str], asked: Sequence[str]
    ) -> list[Hit]:
        """Return what fits, each kind best first: facts in their share, turns, then facts in what is left."""
        most, budget = self._prefetch.k, self._prefetch.budget_tokens
        chosen = list[Hit]()
        share = (most, budget) if not turns else (math.ceil(most / FACTS_SHARE), budget // FACTS_SHARE)
        # A copy keeps its place among the best facts, so that no worse one takes room from the turns.
        best = [hit for hit in facts[: share[0]] if hit.page_id not in copies]
        left = self._add(chosen, best, asked, *share) + budget - share[1]
        facts = [hit for hit in facts if hit.page_id not in copies]
        if chosen and turns:
            own = [hit.page_id for hit in chosen if not is_slept(hit) and not is_shared(hit.page_id)]
            told = self._store.archive.told_in(list(map(number_of, own)))
            turns = [hit for hit in turns if not any(number_of(hit.page_id) in steps for steps in told.values())]
        left = self._add(chosen, turns, asked, most, left)
        self._add(chosen, facts, asked, most, left)
        return chosen

    def _copies(self, facts: Sequence[Hit]) -> set[str]:
        """Return the facts that a sleep took out of a turn that is hardly longer and has all of their words. The turn
        itself, among its neighbours, is found as well or better: beside it they would only take its place."""
        slept = [hit for hit in facts if is_slept(hit)]
        told = self._store.archive.told_in([number_of(hit.page_id) for hit in slept]) if slept else {}
        pairs = [
            (hit, said)
            for hit in slept
            for step in told.get(number_of(hit.page_id), ())
            if 0 < len(said := self._store.sleeps.said(step)) <= COPIED * len(hit.text)
        ]
        copied = self._say_no_more([(hit.text, said) for hit, said in pairs])
        return {hit.page_id for (hit, _), is_copy in zip(pairs, copied, strict=True) if is_copy}

    def _without_corrected(self, turns: list[Hit], facts: Sequence[Hit]) -> list[Hit]:
        """Return the turns without those that only say what one of these facts has superseded since a sleep."""
        own = [hit for hit in facts if is_slept(hit) and not is_shared(hit.page_id)]
        superseding = {number_of(hit.supersedes): hit for hit in own if hit.supersedes}
        old = self._store.archive.facts(list(superseding)) if superseding else {}
        pairs = [
            (fact, hit)
            for number, fact in old.items()
            for hit in turns
            if hit.at < (superseding[number].valid_from or hit.at) and len(hit.text) <= COPIED * len(fact.text)
        ]
        said = self._say_no_more([(fact.text, hit.text) for fact, hit in pairs])
        gone = {hit.page_id for (_, hit), is_old in zip(pairs, said, strict=True) if is_old}
        return [hit for hit in turns if hit.page_id not in gone]

    def _say_no_more(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Return for each fact and what was said if that has all words of the fact, but for a name and its verb."""
        if not pairs:
            return []
        texts = [folded(text) for pair in pairs for text in pair]
        empty, *terms = map(set, self._store.conversation.terms([" ".join(FUNCTION_WORDS), *texts]))
        found = zip(terms[::2], terms[1::2], strict=True)
        missing = [(own - empty, own - empty - said) for own, said in found]
        return [len(lacks) <= ADDED and 2 * len(lacks) <= len(own) for own, lacks in missing]

    def _add(self, chosen: list[Hit], hits: Sequence[Hit], asked: Sequence[str], most: int, left: int) -> int:
        """Append hits, a long one as an excerpt, until there are `most`. Return how many tokens are left of `left`."""
        for hit in hits:
            if len(chosen) >= most:
                break
            if any(hit.page_id == each.page_id for each in chosen):
                continue
            time = 0 if any(abs(hit.at - each.at) <= SESSION for each in chosen) else TIME_TOKENS
            for each in (hit, replace(hit, text=excerpt(hit.text, asked))):
                size = tokens.total(_line(each)) + time + 1  # and a line break
                if size <= left:
                    chosen.append(each)
                    left -= size
                    break
        return left


def is_slept(fact: Hit) -> bool:
    """Return True for a fact that a sleep has stored. The turn that it was taken from may say much more."""
    return fact.who.startswith("sleep ")


class SmallTalk:
    """The vectors of the sentences of small talk, computed once for an embedder and stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stamp = ""
        self._rows: Rows | None = None

    def nearest(self, embedding: Embedding, message: str, vector: Rows) -> float | None:
        """Return the highest cosine of a message to small talk; None if cosines tell nothing in its script."""
        language = language_of(message)
        rows = self._load(embedding, len(vector)) if language else None
        if language is None or rows is None:
            return None
        start = 0
        for each in languages():
            end = start + len(each.sentences)
            if each is language:
                own = rows[start:end]
                if (float((own @ own.T).sum()) - len(own)) / (len(own) * (len(own) - 1)) >= BLIND:
                    return None
            start = end
        return float((rows @ vector).max())

    def _load(self, embedding: Embedding, length: int) -> Rows | None:
        import numpy as np

        sentences = [sentence for language in languages() for sentence in language.sentences]
        digest = sha256("\n".join(sentences).encode()).hexdigest()[:16]
        stamp = f"{digest} {length} {embedding.embedder.fingerprint}"
        if self._stamp != stamp:
            stored, _, packed = (self._store.settings.get(SMALL_TALK_VECTORS) or "").rpartition(" ")
            if stored == stamp:
                rows = np.frombuffer(b64decode(packed), dtype=np.float16).astype(np.float32).reshape(-1, length)
            else:
                try:
                    rows = np.stack([each.vector for each in embedding.embed_all(sentences)])
                except EmbedderUnavailableError as error:
                    embedding.log_failure(error)
                    return None
                packed = b64encode(rows.astype(np.float16).tobytes()).decode()
                with self._store.transaction(durable=False):
                    self._store.settings.put(SMALL_TALK_VECTORS, f"{stamp} {packed}")
            self._stamp, self._rows = stamp, rows
        return self._rows


def texts_of(recalled: Sequence[Recalled]) -> list[str]:
    """Return the lines that the prompt shows."""
    return [line for each in recalled for line in (each.time, each.line) if line]


def sources_of(recalled: Sequence[Recalled]) -> frozenset[str]:
    """Return the untrusted sources of recalled pages."""
    return frozenset(name for each in recalled for name in each.hit.via)


def _line(hit: Hit) -> str:
    """Return a page's text on one line, after its id and who said it: another line would pass for another page."""
    who = f" {hit.who}" if kind_of(hit.page_id) == "s" else ""
    return markup.one_line(f"{hit.page_id}{label(hit.via) if hit.via else ''}{who}: {hit.text}")


def _lines(chosen: Sequence[Hit], judgement: Judgement) -> list[Recalled]:
    lines = list[Recalled]()
    for hit in sorted(chosen, key=lambda each: each.at):
        line = _line(hit)
        is_new = not lines or hit.at - lines[-1].hit.at > SESSION
        lines.append(Recalled(hit, format_minute(hit.at) if is_new else "", line, tokens.total(line), judgement))
    return lines
