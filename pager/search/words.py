"""Words of texts and questions: how the word index splits them, which of them are telling, and how much.

Texts are folded before they are indexed, and so are questions. Letters that look or mean the same get one form without
accents and points. Scripts without spaces between words come in pieces of one and two letters. Each emoji is a word.

    >>> folded("Stra\u00dfe \uff21\uff22 \u6771\u4eac\u90fd"), words("Where is the STRASSE?")
    ('strasse ab  \u6771 \u4eac \u90fd \u6771\u4eac \u4eac\u90fd ', ['strasse'])
"""

import json
import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from pager.arguments import normalize

_WORD = re.compile(r"\w+", re.UNICODE)
# Thai, Lao, Burmese, Khmer; kana, bopomofo, Chinese characters, and Hangul, whose words carry their particles along.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Marks that a word is also written without: accents, Hebrew points, Arabic and Syriac vowels, variants of one letter.
# Not those that make another word or that are a vowel: kana's voicing, the signs of Indic scripts and of Thai.
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u08d3-\u08e1\u08e3-\u08ff"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]+"
)
# Emoji and other pictures, which no index takes for words; without what only changes their colour.
_PICTURE = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
# Letters that are written without their stroke or dot where a keyboard has none, and that Unicode does not take apart.
_STROKED = str.maketrans(
    {**dict(zip("\u0131\u0142\u00f8\u0111\u0127\u0167", "ilodht", strict=True)), "\u00e6": "ae", "\u0153": "oe"}
)
FULL_QUESTION = 12  # telling words; a longer question says several things, and no text is about all of them
LEAST_FOCUS = 0.1  # it is compared as a whole only
MANY = 64  # texts whose scores have a spread that says something
_LONE_KANA = re.compile("(?<!\\S)[\u3041-\u309f\u30fc](?!\\S)")  # what is left of an ending
MOST_WORDS = 256  # a question may be a page long
# Words that nearly every text holds. They cost time and say nothing, unless a question has no others.
_COMMON = frozenset(
    _WORD.findall(
        """
        a about all also am an and any are as at be been but by can could did do does for from had has have he her him
        his how i if in into is it its just me my no not of on or our out she so some than that the their them then
        there these they this to up us was we were what when where which who why will with would you your
        aren couldn d didn doesn don hadn hasn haven isn ll m re s shouldn t ve wasn weren won wouldn
        """
    )
)
# Words that only hold a sentence together: of those no vector is stored.
FUNCTION_WORDS = frozenset(
    _WORD.findall(
        """
        a an and are as at be been but by did do does for from had has have he her him his i if in is it its me my of
        on or our she so that the their them they this to us was we were with you your d ll m re s t ve
        """
    )
)
# "What do I ...?" is about the person who asks; "can you help me?" and "what should I say?" are about the talk itself.
OF_SELF = frozenset({"i", "me", "my", "mine"})
ASKING = frozenset({"what", "which", "who", "whose", "whom", "when", "where", "how"})
OF_TALK = frozenset({"you", "your", "should", "shall", "can", "could", "may", "might", "would"})
SMALL_TALK = Path(__file__).parent.parent / "data" / "small_talk.json"


class Language(NamedTuple):
    """What is said in a language without being about anything: its function words, and its small talk."""

    letters: re.Pattern[str]
    empty_words: frozenset[str]
    empty_runs: re.Pattern[str]  # the same for a script without spaces
    sentences: tuple[str, ...]


def folded(text: str) -> str:
    """Return a text in the form in which its words are indexed."""
    if text.isascii():
        return text.lower()
    return _PICTURE.sub(lambda picture: f" picture{ord(picture[0])} ", _UNSPACED.sub(_in_pieces, _without_marks(text)))


def _without_marks(text: str) -> str:
    # Marks go before the case does: one of them has a letter for its lower case. What stays is composed again.
    bare = _MARKS.sub("", normalize("NFKD", text))
    return normalize("NFKC", bare.casefold()).translate(_STROKED)


def _in_pieces(run: re.Match[str]) -> str:
    """Return each letter and each pair of neighbours, without vowel signs: the index splits words at them."""
    letters = [letter for letter in run[0] if not unicodedata.category(letter).startswith("M")]
    pairs = (one + other for one, other in pairwise(letters))
    return f" {' '.join([*letters, *pairs])} "


def words(text: str) -> list[str]:
    """Return the distinct words of a text, without the common ones if there are others."""
    found = list(dict.fromkeys(_WORD.findall(folded(text).replace("\0", " "))))
    common = _unmarked(_COMMON, text)
    return ([word for word in found if word not in common] or found)[:MOST_WORDS]


@cache
def languages() -> list[Language]:
    """Load the languages whose small talk is known. One that has all letters of another comes behind it."""
    loaded: list[Language] = []
    for row in json.loads(SMALL_TALK.read_text(encoding="utf-8")):
        listed = _plain(" ".join([*row["function_words"], *row["small_talk_words"]])).split()
        runs = re.compile("|".join(map(re.escape, sorted(listed, key=len, reverse=True))))
        # People also write them without their accents.
        empty_words = frozenset([*listed, *map(_without_marks, listed)])
        loaded.append(Language(re.compile(f"[{row['letters']}]"), empty_words, runs, tuple(row["sentences"])))
    return loaded


def language_of(text: str) -> Language | None:
    """Return the language of a text by its letters and empty words, the first of several; None if none is known."""
    return next(iter(_languages_of(_plain(text))), None)


def _languages_of(plain: str) -> list[Language]:
    spoken = _WORD.findall(plain)
    scores = [
        (len(each.letters.findall(plain)), sum(word in each.empty_words for word in spoken)) for each in languages()
    ]
    best = max(scores)
    if best[0] < sum(map(str.isalpha, plain)) / 2:
        return []
    return [each for each, score in zip(languages(), scores, strict=True) if score == best]


def telling_words(text: str) -> list[str]:
    """Return the words that say what a message is about, in the form of `words`; none for a greeting."""
    plain = _plain(text)
    if found := _languages_of(plain):
        plain = _UNSPACED.sub(lambda run: _LONE_KANA.sub("", found[0].empty_runs.sub(" ", run[0])), plain)
        empty_words = frozenset[str]().union(*(each.empty_words for each in found))
        plain = " ".join(word for word in _WORD.findall(plain) if word not in empty_words)
    return list(dict.fromkeys(_WORD.findall(folded(plain))))[:MOST_WORDS]


def count_telling(telling: Sequence[str]) -> int:
    """Return how many words a reader would count: in a script without spaces, two letters make one."""
    letters = sum(len(word) == 1 and _UNSPACED.match(word) is not None for word in telling)
    pairs = sum(len(word) == 2 and _UNSPACED.match(word) is not None for word in telling)
    return len(telling) - letters - pairs + (letters + 1) // 2


def asks_of_self(text: str) -> bool:
    """Return True for a question, in English, about what the person who asks it is, has or does."""
    found = _WORD.findall(_plain(text)) if "?" in text else []
    return not (OF_SELF.isdisjoint(found) or ASKING.isdisjoint(found)) and OF_TALK.isdisjoint(found)


def _plain(text: str) -> str:
    return (text if text.isascii() else normalize("NFKC", text)).casefold()


def _unmarked(listed: frozenset[str], text: str) -> frozenset[str]:
    """Return the listed words that a text holds without a mark on them: French "th\u00e9" (tea) is no article."""
    return listed.intersection(_WORD.findall(_plain(text)))


def excerpt(text: str, asked: Sequence[str], characters: int = 400) -> str:
    """Return the piece of a long text around the first of these words."""
    if len(text) <= characters:
        return text
    start = max(0, _first_place(text, asked) - characters // 4)
    end = min(len(text), start + characters)
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")


def _first_place(text: str, asked: Sequence[str]) -> int:
    forms = {} if text.isascii() else {letter: _without_marks(letter) for letter in set(text)}
    searched = "".join([forms[letter] for letter in text]) if forms else text.lower()
    place = min((found for word in asked if (found := searched.find(word)) >= 0), default=0)
    if len(searched) == len(text) or not place:
        return place
    return bisect_right(list(accumulate(len(forms[letter]) for letter in text)), place)


def focus(telling: int) -> float:
    """Return how much single word pieces count in a question of so many telling words: 1 for most, 0 for a page."""
    share = min(1.0, FULL_QUESTION / max(1, telling)) ** 2
    return share if share >= LEAST_FOCUS else 0.0


def certainty(count: int) -> float:
    """Return how much evidence counts that is measured in units of a spread, by among how many: the spread of a
    handful says nothing, and whoever is alone in holding a word must not be outweighed by units of it."""
    return min(1.0, count / MANY) ** 2


def rarities(holding: Mapping[str, int], among: int) -> dict[str, float]:
    """Return the rarity of each term, by how many texts hold it."""
    return {term: rarity(count, among) for term, count in holding.items()}


def rarity(count: int, total: int) -> float:
    """Return the weight of a word that `count` of `total` texts hold (BM25's): high for few, near zero for all."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def index_text(text: str, name: str | None = None) -> str:
    """Return what is indexed for a text. The name of the speaker is one of its words."""
    return folded(f"{name} {text}" if name else text)
