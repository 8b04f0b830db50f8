"""Which texts say the same, and what a text says that another one does not. Pure: the word index is handed in.

Cosines alone do not tell: "the sofa is red" and "the sofa is blue" are nearer than many a repeat. So the words that
tell texts apart have to agree: numbers, names, negations, and the stems of all words that carry meaning.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pager.search.words import folded

Terms = Callable[[Sequence[str]], list[list[str]]]  # the stems of folded texts, as the word index has them

LEAST_CLAUSE = 2  # words that carry meaning: single ones may have changed their roles
AT_ONCE = 500  # texts in one statement

# Words without which a text says the same. Their stems are added to those of the common words.
_LIGHT = """
    a about actually also am an and any are as at be been being by did do does doing during ever for from
    generally had has have having he her here hers him his how i if in into is it its itself just kind lot make makes
    many me mentioned mine my myself note noted now of often on or our ours own per please quite rather really
    said say says she since so some something sort such than that the their theirs them then there these they thing
    things this those through to told too upon us user users usually very was we well were what when where which
    while who whom whose why will with would yes you your yours according remember remembered fact
    re s t ve ll d m don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn not
"""
# Of these, the ones that say nothing at all, and those that say the same. Any other may come or go, but none may stand
# in the place of another: "his" is not "my", "to" is not "from".
_EMPTY = """
    a about actually also an any at ever generally it its itself just kind lot note noted now often please quite rather
    really s since so some something sort such t than that the then there these this those thing things too upon usually
    very well what when where which while who whom whose why
"""
_ALIKE = {
    word: words.split()[0]
    for words in (
        "i me my mine myself user users", "we us our ours", "you your yours", "he him his", "she her hers",
        "they them their theirs", "is are am m re be been being isn aren", "was were wasn weren", "has have having ve "
        "hasn haven", "had hadn", "does do doing doesn don", "did didn", "will ll won", "would d wouldn", "in into",
        "makes make", "says say said told mentioned",
    )
    for word in words.split()
}  # fmt: skip
_OPENING = re.compile(
    r"(?:(?:note|fact|remember|reminder)\b(?: that\b|:)?|(?:the user|i|you|he|she|they) "
    r"(?:said|says|mentioned|noted|told (?:me|us|you|the agent))\b(?: that\b|:)?|according to the user,?)\s+",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not?|never|nobody|none|nothing|neither|nor|without|cannot|stopped|quit|former(?:ly)?)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:now|no longer|not any ?more|anymore|instead|actually|corrections?|wrong|used to|from now on|by now|meanwhile"
    r"|new|(?:was|is|been|has|have|had|were|are|got) (?:\w+ )?"
    r"(?:moved|changed|renamed|replaced|postponed|cancell?ed|shifted|switched|updated|corrected))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_SYMBOLS = re.compile(r"(?<!\w)[$\u20ac\u00a3+-]\d|\w[+#]{1,2}(?!\w)|\d ?[%\u00b0]")  # $5, -5, C++, C#, 5 %
_SPELLED = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fifteen": "15", "twenty": "20", "thirty": "30",
    "forty": "40", "fifty": "50", "sixty": "60", "hundred": "100", "thousand": "1000", "million": "1000000",
    "first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5", "once": "1", "twice": "2", "half": "0.5",
    "double": "2",
}  # fmt: skip
_COUNTS = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'\u2019-]*")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = frozenset(
    [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        *MONTHS,
        "i",
        "i'm",
        "i've",
        "i'd",
        "i'll",
    ]
)
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")


@dataclass(frozen=True, slots=True)
class Signs:
    """What tells a text apart from others."""

    content: tuple[str, ...]  # stems of the words that carry meaning, as they follow each other
    light: frozenset[str]  # words that carry little, one of those that say the same
    numbers: tuple[str, ...]
    negated: int


class Reader:
    """Reads texts for their signs."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        [light] = terms([" ".join([*_LIGHT.split(), *_SPELLED])])
        self._light = frozenset(light)
        self._words = frozenset([*_LIGHT.split(), *_ALIKE]) - frozenset(_EMPTY.split())

    def stems(self, texts: Sequence[str]) -> list[frozenset[str]]:
        """Return the stems of the words that carry meaning, without numbers; of a text without such words all stems."""
        return list(map(frozenset, self._in_order(texts)))

    def _in_order(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        plain = [folded(text.replace("_", " ")) for text in texts]
        batches = [self._terms(plain[start : start + AT_ONCE]) for start in range(0, len(plain), AT_ONCE)]
        found = [each for batch in batches for each in batch]
        telling = [tuple(stem for stem in each if stem not in self._light and not stem.isdigit()) for each in found]
        return [some or tuple(each) for some, each in zip(telling, found, strict=True)]

    def all_stems(self, text: str) -> frozenset[str]:
        """Return the stems of all words of a text."""
        [found] = self._terms([folded(text)])
        return frozenset(found)

    def read(self, texts: Sequence[str]) -> list[Signs]:
        """Return the signs of each text."""
        said = [_opened(text) for text in texts]
        content = self._in_order(said)
        return [
            Signs(each, self._lights(text), numbers_of(text), negations_of(text))
            for text, each in zip(said, content, strict=True)
        ]

    def _lights(self, text: str) -> frozenset[str]:
        found = self._words.intersection(_WORD.findall(folded(text)))
        return frozenset(_ALIKE.get(word, word) for word in found)


def _opened(text: str) -> str:
    """Return a text without an opening that only says that somebody said it."""
    opening = _OPENING.match(text)
    return text[opening.end() :] if opening and text[opening.end() :].strip() else text


def numbers_of(text: str) -> tuple[str, ...]:
    """Return the numbers of a text in their order, in digits, and the signs that make another word or number of one."""
    digits = _COUNTS.sub(lambda found: _SPELLED[found[0].lower()], text)
    return (*_NUMBER.findall(digits), *(each.replace(" ", "").lower() for each in _SYMBOLS.findall(text)))


def negations_of(text: str) -> int:
    """Return the number of words that deny something."""
    return len(_NEGATION.findall(text))


def names_of(text: str) -> tuple[str, ...]:
    """Return the capitalized words that do not begin a sentence, but for days and months, in their order."""
    found = (each.lower().removesuffix("'s").removesuffix("\u2019s") for each in _NAME.findall(text))
    return tuple(each for each in found if each not in _DAYS)


def says_that_it_changed(text: str) -> bool:
    """Return True for a text that says of itself that something is otherwise than before."""
    return bool(_CHANGED.search(text))


def may_replace(old: Signs, new: Signs) -> bool:
    """Return True for texts about the same thing: two of their words, and not all, or all but one of the shorter."""
    shared = set(old.content) & set(new.content)
    fewest = min(len(set(old.content)), len(set(new.content)))
    return len(shared) >= max(1, min(2, fewest - 1)) and old.content != new.content


def may_mean_the_same(one: Signs, other: Signs) -> bool:
    """Return True for texts with the same numbers and negations: what else differs may be other words for it."""
    return (
        one.negated % 2 == other.negated % 2
        and sorted(set(one.numbers)) == sorted(set(other.numbers))
        and not set(one.content).isdisjoint(other.content)
    )


def agree(one: Signs, other: Signs) -> bool:
    """Return True for texts with the same words, numbers and negations. Their order may only be turned, as where two
    clauses change places: "Anna lent Bob 5" is not "Bob lent Anna 5"."""
    return (
        one.negated == other.negated
        and bool(one.content)
        and not (one.light - other.light and other.light - one.light)
        and _is_turned(one.content, other.content)
        and (
            one.numbers == other.numbers
            or (one.content != other.content and sorted(one.numbers) == sorted(other.numbers))
        )
    )


def _is_turned(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if len(one) != len(other):
        return False
    turns = range(LEAST_CLAUSE, len(one) - LEAST_CLAUSE + 1)
    return one == other or any(one[place:] + one[:place] == other for place in turns)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a text begins and ends."""
    begin = 0
    for gap in _SENTENCE.finditer(text):
        if text[begin : gap.start()].strip():
            yield begin, gap.start()
        begin = gap.end()
    if text[begin:].strip():
        yield begin, len(text)
