"""Words, as the rehearsal compares them: without the small ones, and without their endings. Pure.

>>> topic("What is my favourite colour?"), stems("colours") == stems("color")
('favourite colour', True)
"""

from __future__ import annotations

import re

HEAD_CHARACTERS, TAIL_CHARACTERS = 4_000, 2_000  # of a long message only its ends are looked at
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")

_SMALL = """
a an the i me my mine you your we our us it its is am are was were be been do does did done have has had can could
will would shall should may might what which who whom whose where when why how that this these those there here in on
at of to for from by with about as and or but if then than so not no yes please now any some again ever still i'm
what's who's where's when's don't didn't exactly exact verbatim literally word words quote original before previously
earlier originally formerly first used back during until since last ago remember recall know show read page open fetch
bring forget everything anything something else more most very just many much tell told say said mention mentioned
talk talked discuss discussed write wrote ask asked date called january february march april june july august
september october november december year month week day yesterday
"""
_WEAK = "like prefer want love hate enjoy need get got go think kind sort"
_SMALL_WORDS = frozenset(_SMALL.split())
_SAME = {"favorite": "favourite", "color": "colour", "colors": "colour", "allergic": "allergy", "born": "birthday"}
_ENDINGS = (("ies", 4), ("ing", 6), ("ed", 5), ("s", 4), ("e", 4), ("y", 4), ("i", 4))  # and the shortest word


def plain_quotes(text: str) -> str:
    return text.replace("\u2019", "'")


def ends(text: str) -> str:
    """The text, or the two ends of a long one."""
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return text
    return f"{text[:HEAD_CHARACTERS]}\n{text[-TAIL_CHARACTERS:]}"


def stem(word: str) -> str:
    word = word.lower().removesuffix("'s")
    word = _SAME.get(word, word)
    for ending, least in _ENDINGS:
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)]
            if ending != "s":
                break
    return word


def stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, WORD.findall(plain_quotes(text))))


WEAK_STEMS = frozenset(map(stem, _WEAK.split()))


def british(text: str) -> str:
    """One spelling, so that what was kept under one is found under the other."""
    return re.sub(r"\b(favo|colo)r(?=(?:ite)?s?\b)", r"\1ur", text, flags=re.IGNORECASE)


def singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def topic(text: str, most: int = 6) -> str:
    """The words that carry a text, as they stand in it."""
    words = WORD.findall(plain_quotes(text[:HEAD_CHARACTERS]))
    return " ".join([word for word in words if word.lower() not in _SMALL_WORDS][:most])
