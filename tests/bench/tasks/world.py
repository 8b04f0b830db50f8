"""5,000 reports about 125 sites, and what is true of 40 of them.

A site's reports are spread over twelve months. One of them has the code of its gate, many say how many pallets came,
and a few name its foreman, each another one: the newest report counts. For ten sites a later file names another foreman
again. Everything follows from the seed.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random

SITES, TASKS, REPORTS_PER_SITE = 125, 40, 40
MONTHS = tuple(f"2026-{month:02d}" for month in range(1, 13))
FIRST, LAST = ("Ald", "Bren", "Cor", "Dun", "Esk", "Far", "Gren", "Hol", "Ing", "Kel", "Lor", "Mar", "Nor"), (
    "moor", "wick", "ford", "dale", "ham", "stead", "worth", "by", "ley", "combe"
)  # fmt: skip
PEOPLE = ("Abena", "Bruno", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Imani", "Jonas", "Kenji", "Lucia")
FILLING = (
    "The weather was fair in the morning and the road from the north was open.",
    "Two lorries waited at the weighbridge until the office had found the papers.",
    "The crane was greased and its cable was looked at, as every week.",
    "Somebody had left the light on in the small shed; it was switched off.",
    "The coffee machine is broken again and nobody wants to mend it.",
    "A fox was seen behind the containers; it took nothing.",
)
QUESTIONS = {
    "gate": "What is the code of the gate of {site}?",
    "pallets": "How many pallets were delivered to {site} in all?",
    "foreman": "Who is the foreman of {site}?",
    "changed": "Who is the foreman of {site}?",  # a later file names another one
}
KINDS = tuple(QUESTIONS)


@dataclass(frozen=True, slots=True)
class Site:
    """A site, the kind of its question, the answer, and all that is true of it in the end."""

    name: str
    kind: str
    answer: str
    gate: str
    pallets: int
    foreman: str

    @property
    def task(self) -> str:
        return (
            f"Find all reports about {self.name} with search_files, in each of the months {MONTHS[0]} to {MONTHS[-1]} "
            "below reports/, and read every one of them. Keep the code of its gate, how many pallets were delivered in "
            "all, and its foreman: where reports disagree, the newest counts."
        )

    @property
    def question(self) -> str:
        return QUESTIONS[self.kind].format(site=self.name)


UPDATE_TASK = "There are new files below updates/. Find them with search_files, read them, and correct what you know."


def build(root: Path, *, seed: int = 7, tasks: int = TASKS, sites: int = SITES) -> list[Site]:
    """Write all reports below `root`. Return the sites of the tasks."""
    random = Random(seed)
    names = [first + last for first, last in product(FIRST, LAST)]
    random.shuffle(names)
    for month in MONTHS:
        (root / "reports" / month).mkdir(parents=True)
    (root / "updates").mkdir()
    found, number = list[Site](), 0
    for index, name in enumerate(names[:sites]):
        days = sorted(
            random.sample([f"{month}-{day:02d}" for month in MONTHS for day in range(1, 29)], REPORTS_PER_SITE)
        )
        code, told = random.randrange(1000, 10_000), random.randrange(REPORTS_PER_SITE)
        foremen, pallets = random.sample(PEOPLE, 4), 0
        named = dict(zip(sorted(random.sample(range(REPORTS_PER_SITE), 3)), foremen, strict=False))
        for place, day in enumerate(days):
            number += 1
            count = random.randrange(2, 60) if place % 2 else 0
            pallets += count
            lines = [f"Report r{number:04d} of {day}, site {name}.", *random.sample(FILLING, 3)]
            lines += [f"Delivered to {name}: {count} pallets."] if count else []
            lines += [f"The code of the gate of {name} is {code}."] if place == told else []
            lines += [f"The foreman of {name} is {named[place]}, as of {day}."] if place in named else []
            (root / "reports" / day[:7] / f"r{number:04d}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        kind = KINDS[index % len(KINDS)]
        answers = {"gate": str(code), "pallets": str(pallets), "foreman": foremen[2], "changed": foremen[3]}
        foreman = answers["changed" if kind == "changed" else "foreman"]
        found.append(Site(name, kind, answers[kind], str(code), pallets, foreman))
    return found[:tasks]


def publish_updates(root: Path, sites: list[Site]) -> None:
    """Write what becomes known while the agent works."""
    for number, site in enumerate(site for site in sites if site.kind == "changed"):
        text = f"Notice u{number:02d}.\nThe foreman of {site.name} is {site.answer}, as of 2026-12-30.\n"
        (root / "updates" / f"u{number:02d}.md").write_text(text, encoding="utf-8")
