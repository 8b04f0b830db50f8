"""The story of `make bench-story`: what is said, what is asked, and which answers count.

It was fixed before a model first read it, but for one thing: "June 14th" is a right answer, too. Any other change makes
figures that cannot be compared with earlier ones.
"""

import re
from dataclasses import dataclass

FACTS = (
    "My dog is called Biscuit, he is a beagle.",
    "I earn my money as a piano tuner.",
    "My sister Elin gets married on 14 June.",
    "I am allergic to walnuts.",
    "The code of the bicycle shed is 5823.",
    "My next appointment with the dentist, Dr. Okafor, is on Tuesday.",
    "I have bought train tickets to Lisbon for September.",
    "My neighbour Tomas waters the plants while I am away.",
)
CORRECTION = "The appointment with Dr. Okafor was moved: it is on Friday now."
_MORNINGS = (
    "It rained until ten and the gutter dripped on the window sill.",
    "The sky was clear, with frost on the roofs across the street.",
    "A delivery van blocked the lane and two drivers argued about it.",
    "The radio played old songs, and I let the tea go cold again.",
    "There was fog over the canal, so thick that the bridge was gone.",
    "I slept badly and got up late, the kitchen was still dark.",
    "The heating knocked all morning, then it was quiet at last.",
)
_DAYS = (
    "I sorted the books on the long shelf by colour and gave four of them away.",
    "I repaired the lamp in the hall; it was only the switch, a small brown one.",
    "I walked to the market and came back with leeks, bread and a jar of honey.",
    "I read thirty pages of a novel about a lighthouse and two quarrelling brothers.",
    "I washed the curtains, which took far longer than I had thought.",
)
_EVENINGS = (
    "In the evening I made soup and listened to the wind.",
    "Later a film about glaciers was on, slow and beautiful.",
    "Before bed I wrote two letters and found only one stamp.",
)


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    right: re.Pattern[str]
    in_other_words: bool = False

    def is_answered(self, answer: str) -> bool:
        return bool(self.right.search(answer))


def _question(text: str, right: str, *, in_other_words: bool = False) -> Question:
    return Question(text, re.compile(right, re.IGNORECASE | re.DOTALL), in_other_words)


QUESTIONS = (
    _question("What is the name of my dog?", r"\bbiscuit\b"),
    _question("What is the code of the bicycle shed?", r"\b5823\b"),
    _question("On which day is my appointment with Dr. Okafor?", r"\bfriday\b(?!.*\btuesday\b)"),  # the corrected one
    _question("What is the name of my sister?", r"\belin\b"),
    _question("What am I allergic to?", r"\bwalnuts?\b"),
    _question("What do I do for a living?", r"\bpianos?\b", in_other_words=True),
    _question("Which city will I travel to after the summer?", r"\blisbon\b", in_other_words=True),
    _question("Who takes care of my flowers during my holidays?", r"\btomas\b", in_other_words=True),
    _question("When is there a wedding in my family?", r"\b14(th)?( of)? june\b|\bjune 14(th)?\b", in_other_words=True),
    _question("Which nuts must a cake for me not contain?", r"\bwalnuts?\b", in_other_words=True),
)


def diary(day: int) -> str:
    """Return the entry of a day; nothing in it has to do with a question."""
    texts = (_MORNINGS[day % len(_MORNINGS)], _DAYS[day % len(_DAYS)], _EVENINGS[day % len(_EVENINGS)])
    return f"My diary, day {day + 1}. {' '.join(texts)}"
