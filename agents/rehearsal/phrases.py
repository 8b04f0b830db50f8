"""The forms of statement and question that the rehearsal recognises in English. Pure, and no more than it says here.

>>> statements("Hi! My name is Alice and I prefer window seats.", date(2026, 5, 3))[1]
Statement(text='prefers window seats', key='seat', tags=('preference',), valid_from=None)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from agents.rehearsal import dates
from agents.rehearsal.words import WEAK_STEMS, WORD, british, ends, plain_quotes, singular, stem, stems, topic

LONGEST_STATEMENT = 300
LONGEST_SAID = 160


@dataclass(frozen=True, slots=True)
class Statement:
    """Something to keep, as the arguments of `archive`."""

    text: str
    key: str | None
    tags: tuple[str, ...]
    valid_from: str | None = None

    @property
    def is_name(self) -> bool:
        return self.key == "name"


@dataclass(frozen=True, slots=True)
class Question:
    """Something to find. `words` are the stems that an answer should have; `about` is for people.

    fact: what holds (at `as_of`); before: what held until the present; said: what somebody said; exact: in which words;
    page: a page by its id; forget: a fact whose validity is to end.
    """

    kind: Literal["fact", "before", "said", "exact", "page", "forget"]
    about: str
    query: str
    words: frozenset[str]
    as_of: str | None = None
    page_id: str = ""


# sentences

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_JOINED = re.compile(r"(?:,|;)?\s+(?:and|but)\s+(?=(?:i|i'm|i've|my|what|where|which|who|when|how)\b)", re.IGNORECASE)
_FILLER = re.compile(
    r"^(?:(?:hi|hello|hey|well|okay|ok|oh|yes|actually|also|so|by the way|btw|please|now|and|but|sorry|correction|"
    r"from now on|just so you know|fyi|one more thing|no(?=,))\b[\s,:!.\u2013-]*)+",
    re.IGNORECASE,
)  # fmt: skip
_ENDING = re.compile(r"(?:,?\s+(?:now|these days|instead|please|by the way|actually|again))*[\s.!]*$", re.IGNORECASE)
_ASKS = re.compile(
    r"^(?:what|what's|which|who|who's|whom|where|where's|when|when's|how|why|quote)\b|^do (?:i|you|we|they)\b"
    r"|^(?:does|did|am|is|are|was|were|can|could|will|would) (?:i|you|we|they|he|she|it|my|our|the|there)\b",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    r"^(?:do you (?:still )?(?:know|remember)|(?:can|could) you (?:please )?(?:tell me|remember|remind me)"
    r"|tell me|remind me)\s+(?:of |about )?(?=\S)",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """Sentences without their opening fillers, questions with their question mark. Enumerated lines are for tasks."""
    result: list[str] = []
    for sentence in _SENTENCE.split(ends(plain_quotes(text))):
        mark = "?" if sentence.rstrip().endswith("?") else ""
        for part in _JOINED.split(sentence.strip().rstrip("?")):
            plain = _FILLER.sub("", part.strip()).strip()
            if plain:
                result.append(plain + mark)
    return result


def is_question(sentence: str) -> bool:
    return sentence.endswith("?") or bool(_ASKS.match(sentence) or _ASKED_FOR.match(sentence))


# statements


def statements(text: str, today: date) -> list[Statement]:
    found = [read for each in sentences(text) if not is_question(each) and (read := statement(each, today))]
    return list({each.text: each for each in found}.values())


def statement(sentence: str, today: date) -> Statement | None:
    plain = _ENDING.sub("", sentence).strip()
    if not plain or len(plain) > LONGEST_STATEMENT:
        return None
    for pattern, make in _FORMS:
        if match := pattern.match(plain):
            return make(match, today)
    return None


def _remembered(match: re.Match[str], today: date) -> Statement:
    inner = match[1].strip()
    known = statement(inner, today)
    if known:
        return known
    text = re.sub(r"^(?:i'm|i am|i)\s+", "", inner, flags=re.IGNORECASE)
    return Statement(re.sub(r"^my\s+", "", text, flags=re.IGNORECASE), None, ("note",))


def _of_name(match: re.Match[str], _: date) -> Statement | None:
    name = match[1].strip(" ,.\"'“”")
    return Statement(f"name is {name}", "name", ("person",)) if name and len(name.split()) <= 4 else None


def _since(text: str, today: date, words: str) -> tuple[str, str | None]:
    """A statement without its "since March", and the day on which that began."""
    match = re.search(rf",?\s+(?:{words})\s+({dates.DATE})$", text, re.IGNORECASE)
    span = dates.read(match[1], today) if match else None
    return (text[: match.start()], span.first.isoformat()) if match and span else (text, None)


def _home(match: re.Match[str], today: date) -> Statement:
    place, since = _since(match[1], today, "since|from|as of|in|on")
    return Statement(f"lives in {place}", "home", ("place",), since)


def _work(match: re.Match[str], today: date) -> Statement:
    where, since = _since(match[1], today, "since|from|as of")
    return Statement(f"works {where}", "work", ("work",), since)


_VERBS = {
    "prefer": "prefers", "like": "likes", "love": "loves", "enjoy": "enjoys", "hate": "hates", "dislike": "dislikes",
    "avoid": "avoids", "don't like": "does not like", "do not like": "does not like", "can't stand": "cannot stand",
    "cannot stand": "cannot stand", "don't eat": "does not eat", "do not eat": "does not eat",
}  # fmt: skip
_BEHIND_OBJECT = re.compile(
    r"\s(?:over|to|because|when|for|in|on|at|with|by|if|than|since|and|or|but)\s|[,;:(]", re.IGNORECASE
)


def _preference(match: re.Match[str], today: date) -> Statement:
    thing, since = _since(match[2], today, "since|as of")
    object_words = WORD.findall(_BEHIND_OBJECT.split(thing.removeprefix("to "))[0])
    key = singular(object_words[-1].lower()) if object_words else None
    return Statement(f"{_VERBS[match[1].lower()]} {thing}", key, ("preference",), since)


def _attribute(match: re.Match[str], today: date) -> Statement:
    name, value = british(match[1].lower()), match[2]
    value, since = _since(value, today, "since|as of")
    tag = "preference" if name.startswith("favourite") else "date" if _DATED.search(name) else "fact"
    return Statement(f"{name} is {value}", name, (tag,), since)


_DATED = re.compile(r"\b(?:deadline|due|meeting|birthday|appointment|flight|launch|date)\b")


def _is(prefix: str, key: str | None, tag: str) -> Callable[[re.Match[str], date], Statement]:
    def make(match: re.Match[str], _: date) -> Statement:
        return Statement(f"{prefix}{match[1]}", key, (tag,))

    return make


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_IS = r"(?:is|are|has changed to|have changed to|changed to|was changed to|(?:was |has )?moved to|will be|became)"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Statement | None]], ...] = (
    (
        _form(r"(?:remember|note|keep in mind|bear in mind|don't forget|do not forget)(?: that)?[:,]?\s+(.+)$"),
        _remembered,
    ),
    (_form(r"(?:my name is|my name's|i am called|i'm called|(?:people )?call me)(?: now)?\s+(.+)$"), _of_name),
    (_form(r"i(?: now)? work ((?:at|for|as|in|with)\s.+)$"), _work),
    (
        _form(
            r"(?:i|i'm|i am|i've|i have)(?: now| just)* "
            r"(?:live|living|moved|moving|relocated)(?: now)? (?:in|to)\s+(.+)$"
        ),
        _home,
    ),
    (
        _form(r"i(?: really| always| much| now| usually)* (" + "|".join(map(re.escape, _VERBS)) + r")\s+(.+)$"),
        _preference,
    ),
    (_form(r"(?:i'd|i would) (prefer)\s+(.+)$"), _preference),
    (_form(r"(?:i'm|i am) (allergic to .+)$"), _is("", "allergy", "health")),
    (_form(r"(?:i'm|i am) (?:an? )?(vegetarian|vegan|pescatarian)$"), _is("is ", "diet", "health")),
    (_form(r"(?:i'm|i am) (\d{1,3}(?: years old)?)$"), _is("is ", "age", "person")),
    (_form(r"(?:i'm|i am) from (.+)$"), _is("comes from ", "origin", "person")),
    (_form(r"(?:i'm|i am) (an? (?!bit|little|lot|question).+)$"), _is("is ", None, "person")),
    (
        _form(r"(?:i have|i've got|i own) (?!a question|an idea|a problem|to |been |\w+ed\b)(.+)$"),
        _is("has ", None, "person"),
    ),
    (_form(rf"my ([\w' -]{{1,40}}?) {_IS}(?: now| actually)*\s+(.+)$"), _attribute),
    (_form(rf"(?:the|our) ([a-z][\w'-]*(?: [\w'-]+){{0,3}}?) {_IS}(?: now| actually)*\s+(.+)$"), _attribute),
)

# questions

_PAGE = re.compile(
    r"\b(?:page|show|read|open|fetch|bring|what is in|what's in|what does)\b.*?\b([fsx]\d{1,18})\b", re.IGNORECASE
)
_FORGET = re.compile(r"^forget (?:that |about |everything about |what i said about )?(?!it\b)(.+)$", re.IGNORECASE)
_EXACT = re.compile(r"\b(?:exact(?:ly)?|verbatim|word for word|literally|quote|original words)\b", re.IGNORECASE)
_SAID = re.compile(
    r"\b(?:i|we|you)\b.*"
    r"\b(?:say|said|tell|told|mention(?:ed)?|talk(?:ed)? about|discuss(?:ed)?|write|wrote|ask(?:ed)?)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(?:before|previously|earlier|used to|originally|formerly|at first)\b", re.IGNORECASE)
_BEFORE_DATE = re.compile(rf"\bbefore {dates.DATE}", re.IGNORECASE)
_WHO = re.compile(r"^(?:who am i|what(?:'s| is| was) my name|my name|what am i called|who i am)\W*$", re.IGNORECASE)
_ABOUT_ME = re.compile(r"\babout me\b", re.IGNORECASE)
_TO_DO = re.compile(r"^(?:can|could|will|would) (?:you|we|i)\b", re.IGNORECASE)


def questions(text: str, today: date) -> list[Question]:
    return [read for each in sentences(text) if (read := question(each, today))]


def question(sentence: str, today: date) -> Question | None:
    if page := _PAGE.search(sentence):
        return Question("page", page[1].lower(), page[1], frozenset(), page_id=page[1].lower())
    if forget := _FORGET.match(_ENDING.sub("", sentence)):
        return _asked("forget", forget[1])
    if not is_question(sentence):
        return None
    plain = _ASKED_FOR.sub("", sentence).strip(" ?")
    if _TO_DO.match(plain):
        return None  # a request to do something, not a question about what is known
    if _WHO.match(plain):
        return Question("fact", "your name", "name", frozenset({stem("name")}))
    if _SAID.search(plain):
        return _asked("exact" if _EXACT.search(plain) else "said", plain)
    span = dates.find(plain, today)
    if span and _BEFORE_DATE.search(plain):
        return _asked("fact", plain, span.first - timedelta(days=1), today)
    if span:
        return _asked("fact", plain, span.middle, today)
    if _BEFORE.search(plain):
        return _asked("before", plain)
    return _asked("exact" if _EXACT.search(plain) else "fact", plain)


def _asked(
    kind: Literal["fact", "before", "said", "exact", "forget"],
    plain: str,
    day: date | None = None,
    today: date | None = None,
) -> Question:
    named = re.sub(rf"\b{dates.DATE}\b", " ", plain, flags=re.IGNORECASE)
    about = topic(named, most=8) or ("you" if _ABOUT_ME.search(plain) else plain[:60])
    words = stems(about)
    strong = words - WEAK_STEMS or words
    query = [word for word in british(about).split() if stem(word) in strong or "-" in word]
    if stem("live") in words:
        query.append("lives in")
    as_of = day.isoformat() if day and today and day < today else None
    return Question(kind, about, " ".join(query), strong, as_of)
