"""The digest: the text in the prompt for the steps that have left. Pure, and built without a model.

A line per evicted turn (ids, date, first words of its request). It keeps within its budget by merging its oldest
lines into one range, and by shortening that range if it has to. The lines are stored with the epoch, so that an
eviction reads only the steps that leave.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import tzinfo

from pager import blocks, markup
from pager.clock import format_minute, from_micros
from pager.safety.sources import label
from pager.store.rows import Step
from pager.types import Json

FIRST_WORDS_CHARS = 90


@dataclass(frozen=True, slots=True)
class Line:
    """The steps from `first` to `last` of one turn or several, with the request's first words or a model's summary."""

    first: int
    last: int
    turn: int
    turns: int
    from_at: int
    to_at: int
    words: str = ""
    dated: bool = True
    sources: Sequence[str] = ()  # the untrusted ones of a summary; a request's words are of who said them

    def text(self, zone: tzinfo) -> str:
        """Return the line as the model reads it."""
        pages = f"s{self.first}" if self.first == self.last else f"s{self.first}-s{self.last}"
        if not self.dated:
            return pages
        pages += label(self.sources)
        start, end = (format_minute(from_micros(at, zone)) for at in (self.from_at, self.to_at))
        head = f"{pages}: {self.turns} turns, {start} to {end}" if self.turns > 1 else f"{pages} {start}"
        return f"{head}: {markup.disarm(self.words)}" if self.words else head


def read(lines: Sequence[Json]) -> list[Line]:
    """Return stored lines."""
    return [Line(**line) for line in lines]


def write(lines: Sequence[Line]) -> list[Json]:
    """Return lines as they are stored."""
    return [asdict(line) for line in lines]


def first_words(text: str) -> str:
    """Return the beginning of a request on one line, cut at a word."""
    line = " ".join(text[: 4 * FIRST_WORDS_CHARS].split())
    if len(line) <= FIRST_WORDS_CHARS:
        return line
    cut = line[:FIRST_WORDS_CHARS]
    return (cut.rsplit(" ", 1)[0] if " " in cut[FIRST_WORDS_CHARS // 2 :] else cut) + " …"


def line_of(step: Step) -> Line:
    """Return the line of a step that leaves."""
    forms = [part.form for part in step.parts if part.kind == "said" and part.form]
    words = " ".join(map(blocks.text_of, forms)) if step.kind == "user" else ""
    return Line(step.id, step.id, step.turn, 1, step.at, step.at, first_words(words))


def extend(lines: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    """Append the newly evicted steps; more steps of the last line's turn make that line longer."""
    result = list(lines)
    for line in new:
        if result and result[-1].turn == line.turn and result[-1].turns == 1:
            last, words = result[-1], result[-1].words or line.words
            result[-1] = replace(last, last=line.last, to_at=line.to_at, words=words)
        else:
            result.append(line)
    return result


def fit(lines: Sequence[Line], limit_tokens: int, count: Callable[[str], int], zone: tzinfo) -> list[Line]:
    """Bring the lines within a budget: the oldest become one range, which always stays, at last with its ids alone."""
    if not lines:
        return []
    sizes = [count(line.text(zone)) + 2 for line in lines]
    oldest, size, newer, index = lines[0], sizes[0], sum(sizes[1:]), 0
    while size + newer > limit_tokens and index < len(lines) - 1:
        index += 1
        oldest = joined(oldest, lines[index])
        size = count(oldest.text(zone)) + 2
        newer -= sizes[index]
    for shorter in (replace(oldest, words="", sources=()), replace(oldest, words="", sources=(), dated=False)):
        if size + newer > limit_tokens:
            oldest, size = shorter, count(shorter.text(zone)) + 2
    return [oldest, *lines[index + 1 :]]


def joined(first: Line, last: Line) -> Line:
    """Join two neighbouring lines to one range. Of their words only a summary stays."""
    turns = first.turns + last.turns - (first.turn == last.turn)  # of a turn that left in two evictions
    words, sources = (first.words, first.sources) if first.turns > 1 else ("", ())
    return Line(first.first, last.last, last.turn, turns, first.from_at, last.to_at, words, sources=sources)
