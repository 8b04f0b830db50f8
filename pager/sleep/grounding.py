"""Is a fact in what was said? What a model claims is believed as far as the quoted steps show it, and no further.

Every number, every name and nearly every word that carries meaning has to be in the quoted steps, or the word pieces of
those are as near as a synonym is; a negation has to be in both or in neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pager.sleep.edits import Claim, Quote, SaidStep
from pager.sleep.signs import Reader, names_of, negations_of, numbers_of, sentences

if TYPE_CHECKING:
    from pager.vectors.embedder import Meaning

    Embed = Callable[[Sequence[str]], list[Meaning] | None]

MOST_QUOTED = 4  # steps of one fact
MOST_CHARS = 500  # of a fact
MOST_KEY_CHARS, MOST_TAGS = 60, 5
LEAST_COSINE = 0.55  # of a fact and what it is quoted from, where a word of it is only near
LEAST_PIECE = 0.92  # of that word's pieces and the nearest of what was said
LEAST_COVERED = 0.66  # share of the words that carry meaning


_OF_SELF = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Mm]yself)\b")
_CAPITALIZED = re.compile(r"\b[A-Z]\w+")


class Grounded(NamedTuple):
    """A fact that was said, and where."""

    claim: Claim
    quotes: tuple[Quote, ...]
    steps: tuple[SaidStep, ...]


def ground(claim: Claim, said: Mapping[str, SaidStep], reader: Reader, embed: Embed | None) -> Grounded | str:
    """Return a claim with its quotes, or why it is dropped."""
    text = " ".join(claim.text.split())
    if not text or len(text) > MOST_CHARS:
        return "it has no text, or a long one"
    steps = _steps(claim, said)
    if not steps:
        return "it names no step that was read"
    quotes = tuple(_quote(step, text, claim.quote, reader) for step in steps)
    shown = " \n ".join(_around(step, quote) for step, quote in zip(steps, quotes, strict=True))
    speakers = " ".join(step.who for step in steps)
    if set(numbers_of(text)) - set(numbers_of(shown)):
        return "it has a number that nobody said"  # not which: it may be another step's, and be purged there
    [content, spoke] = reader.stems([text, speakers])
    everything = spoke | reader.all_stems(shown)
    names = names_of(text)
    if names and reader.stems([" ".join(names)])[0] - everything:
        return "it names what nobody has named"
    if not _in_order(
        _capitalized(text), [_capitalized(_named(step, quote)) for step, quote in zip(steps, quotes, strict=True)]
    ):
        return "it lets names change their places"
    if _is_negated(text) != any(_is_negated(quote.text) for quote in quotes):
        return "it denies what was said, or says what was denied"
    missing = content - everything
    if missing and (
        len(missing) > (1 - LEAST_COVERED) * len(content) or not _are_near(text, missing, quotes, reader, embed)
    ):
        return "its words are not in what was said"
    return Grounded(Claim(text, tuple(step.id for step in steps), claim.quote, claim.key, claim.tags), quotes, steps)


def _steps(claim: Claim, said: Mapping[str, SaidStep]) -> tuple[SaidStep, ...]:
    """Return the steps that a claim names; if it names none, the one that holds its quote."""
    named = [said[step] for step in dict.fromkeys(claim.steps) if step in said][:MOST_QUOTED]
    quote = _folded(claim.quote)
    if not named and len(quote) > 8:
        named = [step for step in said.values() if quote in _folded(step.text)][:1]
    return tuple(named)


def _quote(step: SaidStep, text: str, quote: str, reader: Reader) -> Quote:
    """Return the place in a step that a quote names, or the sentence that shares most words with a text."""
    begin = step.text.find(quote.strip()) if len(quote.strip()) > 8 else -1
    if begin >= 0:
        spans = [span for span in sentences(step.text) if span[0] < begin + len(quote.strip()) and span[1] > begin]
        if spans:
            return Quote(step.id, spans[0][0], spans[-1][1], step.text[spans[0][0] : spans[-1][1]])
    spans = list(sentences(step.text)) or [(0, len(step.text))]
    [wanted, *each] = reader.stems([text, *(step.text[slice(*span)] for span in spans)])
    best = max(range(len(spans)), key=lambda place: (len(wanted & each[place]), -len(each[place])))
    return Quote(step.id, *spans[best], step.text[slice(*spans[best])])


def _around(step: SaidStep, quote: Quote) -> str:
    """Return the quoted sentences, with the one before and the one behind them: there is more in a long message."""
    spans = list(sentences(step.text))
    first = max((begin for begin, end in spans if end <= quote.begin), default=quote.begin)
    last = min((end for begin, end in spans if begin >= quote.end), default=quote.end)
    return step.text[first:last]


def _named(step: SaidStep, quote: Quote) -> str:
    """Return a quote with the speaker's name where they speak of themselves."""
    return _OF_SELF.sub(step.who, quote.text)


def _capitalized(text: str) -> list[str]:
    return [name.lower() for name in _CAPITALIZED.findall(text)]


def _in_order(names: Sequence[str], quoted: Sequence[Sequence[str]]) -> bool:
    """Return True if no quote has two of these names the other way round."""
    for said in quoted:
        shared = [name for name in dict.fromkeys(names) if name in said]
        if shared != [name for name in dict.fromkeys(said) if name in shared]:
            return False
    return True


def _is_negated(text: str) -> bool:
    return negations_of(text) % 2 == 1


def _are_near(text: str, missing: frozenset[str], quotes: Sequence[Quote], reader: Reader, embed: Embed | None) -> bool:
    """Return True if what was said holds a near word for each one that it lacks, and is near as a whole."""
    meanings = embed([text, " ".join(quote.text for quote in quotes)]) if embed else None
    if meanings is None:
        return False
    fact, said = meanings
    if fact.tokens is None or said.tokens is None or float(fact.vector @ said.vector) < LEAST_COSINE:
        return False
    best = (fact.tokens.rows @ said.tokens.rows.T).max(axis=1)
    stems = dict(zip(fact.tokens.words, reader.stems(fact.tokens.words), strict=True))
    return all(
        cosine >= LEAST_PIECE for word, cosine in zip(fact.tokens.words, best, strict=True) if stems[word] & missing
    )


def rewrite_fault(old: str, new: str, reader: Reader) -> str:
    """Return why a text cannot take the place of a longer one: it says what that does not; empty if it can."""
    if not new.strip():
        return "it is empty"
    if set(numbers_of(new)) - set(numbers_of(old)):
        return "it has a number that the block does not have"
    if _is_negated(new) != _is_negated(old) or reader.stems([new])[0] - reader.all_stems(old):
        return "it says what the block does not say"
    return ""


def left_out(old: str, new: str, reader: Reader) -> list[str]:
    """Return the lines of a text of which something is missing in the shorter one."""
    lines = [line.strip() for line in old.splitlines() if line.strip()]
    words, numbers = reader.all_stems(new), set(numbers_of(new))
    stems = reader.stems(lines) if lines else []
    return [line for line, each in zip(lines, stems, strict=True) if each - words or set(numbers_of(line)) - numbers]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
