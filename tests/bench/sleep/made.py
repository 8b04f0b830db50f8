"""Repeats, contradictions and invented facts, made of other texts by program, the same way every time."""

import re
from collections.abc import Callable, Sequence
from random import Random

from pager.search.words import telling_words

WORD = re.compile(r"[A-Za-z][a-z]{3,}")
NUMBER = re.compile(r"\d+")
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
SENTENCE = re.compile(r"(?<=[.!?])\s+")
SWAPS = {"love": "hate", "like": "hate", "likes": "hates", "loves": "hates", "always": "never", "before": "after",
         "more": "less", "buy": "sell", "bought": "sold", "start": "stop", "early": "late", "left": "right",
         "good": "bad", "high": "low", "long": "short", "old": "new", "first": "last", "can": "cannot",
         "enjoy": "dislike", "prefer": "avoid"}  # fmt: skip
Change = Callable[[str, Random, Sequence[str]], str | None]


def _telling(text: str) -> list[str]:
    """The words that say something, by the list that judges messages, not by that of sleeps."""
    return [word for word in WORD.findall(text) if word.islower() and telling_words(word)]


def sentences(texts: Sequence[str], least: int = 5, most: int = 25) -> list[str]:
    """The sentences of texts that say something by themselves."""
    found = [each.strip() for text in texts for each in SENTENCE.split(text.replace("\n", " "))]
    return list(dict.fromkeys(each for each in found if least <= len(each.split()) <= most and not each.endswith("?")))


def _clauses(text: str, _: Random, __: Sequence[str]) -> str | None:
    first, comma, second = text.rstrip(".!").partition(", ")
    return f"{second[:1].upper()}{second[1:]}, {first}." if comma and len(second.split()) > 2 else None


def _replaced(text: str, old: str, new: str) -> str | None:
    changed = re.sub(rf"\b{re.escape(old)}\b", new, text)
    return changed if changed != text else None


def _contracted(text: str, _: Random, __: Sequence[str]) -> str | None:
    changed = text
    for long, short in ((" do not ", " don't "), (" I am ", " I'm "), ("I have ", "I've "), (" is not ", " isn't ")):
        changed = changed.replace(long, short) if long in text else changed.replace(short, long)
    return changed if changed != text else None


def _spelled(text: str, _: Random, __: Sequence[str]) -> str | None:
    names = {"2": "two", "3": "three", "4": "four", "5": "five", "10": "ten"}
    for old, new in [*names.items(), *((name, digit) for digit, name in names.items())]:
        changed = re.sub(rf"(?<![\w$.,:/-]){old}(?![\w%.,:/-])", new, text)
        if changed != text:
            return changed
    return None


REPEATS: dict[str, Change] = {
    "the same": lambda text, _, __: text,
    "case": lambda text, _, __: text.upper(),
    "full stop": lambda text, _, __: text.rstrip(".!") if text[-1] in ".!" else f"{text}.",
    "said that": lambda text, _, __: f"The user said that {text}",
    "note": lambda text, _, __: f"Note: {text}",
    "filler": lambda text, random, _: text.replace(" ", f" {random.choice(['really', 'actually', 'also'])} ", 1),
    "articles": lambda text, _, __: re.sub(r"\b(?:the|a|an) ", "", text),
    "contraction": _contracted,
    "clauses": _clauses,
    "plural": lambda text, random, _: _plural(text, random),
    "number as a word": _spelled,
}


def _plural(text: str, random: Random) -> str | None:
    words = [word for word in WORD.findall(text) if word.islower() and word[-1] not in "sy" and not word.endswith("ed")]
    return _replaced(text, chosen := random.choice(words), f"{chosen}s") if words else None


def _number(text: str, random: Random, _: Sequence[str]) -> str | None:
    found = NUMBER.findall(text)
    return text.replace(chosen := random.choice(found), str(int(chosen) + random.randint(1, 5)), 1) if found else None


def _name(text: str, random: Random, others: Sequence[str]) -> str | None:
    own = [name for name in NAME.findall(text) if telling_words(name)]
    names = [name for other in others for name in NAME.findall(other) if name not in text and telling_words(name)]
    return text.replace(random.choice(own), random.choice(names), 1) if own and names else None


def _negated(text: str, _: Random, __: Sequence[str]) -> str | None:
    for verb in (" is ", " am ", " are ", " was ", " have ", " will ", " can ", " do "):
        if verb in text:
            return text.replace(verb, f"{verb}not ", 1)
    return None


def _swapped(text: str, _: Random, __: Sequence[str]) -> str | None:
    for old, new in SWAPS.items():
        if changed := _replaced(text, old, new):
            return changed
    return None


def _word(text: str, random: Random, others: Sequence[str]) -> str | None:
    own, words = _telling(text), [word for word in _telling(random.choice(others)) if word not in text]
    return _replaced(text, random.choice(own), random.choice(words)) if own and words else None


def _roles(text: str, random: Random, _: Sequence[str]) -> str | None:
    """Two names change places."""
    own = sorted({word for word in NAME.findall(text) if telling_words(word)})
    if len(own) < 2:
        return None
    one, other = random.sample(own, 2)
    return re.sub(rf"\b(?:{one}|{other})\b", lambda found: other if found[0] == one else one, text)


def _appended(text: str, random: Random, others: Sequence[str]) -> str | None:
    words = random.choice(others).rstrip(".!").split()
    return f"{text.rstrip('.!')} and {' '.join(words[-4:])}." if len(words) > 6 else None


CONTRADICTIONS: dict[str, Change] = {
    "number": _number, "name": _name, "negation": _negated, "opposite": _swapped, "another word": _word,
    "roles": _roles,
}  # fmt: skip
INVENTED: dict[str, Change] = {
    **CONTRADICTIONS, "appended": _appended, "another memory's": lambda _, random, others: random.choice(others),
}  # fmt: skip


def changed(
    kinds: dict[str, Change], texts: Sequence[str], others: Sequence[str], seed: int = 7
) -> list[tuple[str, str, str]]:
    """One change of each kind of each text that allows it: kind, the text, and what was made of it."""
    random = Random(seed)
    made = [(kind, text, change(text, random, others)) for text in texts for kind, change in kinds.items()]
    return [(kind, text, new) for kind, text, new in made if new is not None and (new != text or kind == "the same")]
