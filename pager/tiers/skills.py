"""Skills: instructions for one kind of work, each a page that the agent reads when it needs it.

The prompt names every skill in a line. A name keeps its page id for good, so that what was said of `k3` stays true. The
text is stored when the memory is opened: a page never changes while the agent works.
"""

import re
from collections.abc import Sequence

from pager.arguments import require_text
from pager.blocks import clean
from pager.errors import NotFoundError, RejectedError
from pager.store import Store
from pager.types import Skill, SkillSpec, number_of, read_page_id

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
MAX_DESCRIPTION_CHARS = 1024
MAX_TEXT_CHARS = 100_000


def fault_of(spec: SkillSpec) -> tuple[str, str] | None:
    """Return what of a skill cannot be used (name, description or text), and why; None if all can."""
    if not NAME.fullmatch(spec.name):
        return "name", f"{spec.name!r:.80} is no name for a skill: letters, digits, _ and -, at most 64."
    if _reads_as_page_id(spec.name):
        return "name", f"{spec.name!r} reads like the id of a page, so it cannot name a skill. Give it another name."
    if not spec.description.strip():
        return "description", "a skill needs a description: what it is for, and when. The agent chooses by it."
    for part, length, limit in (
        ("description", len(spec.description), MAX_DESCRIPTION_CHARS), ("text", len(spec.text), MAX_TEXT_CHARS),
    ):  # fmt: skip
        if length > limit:
            way = "Shorten it" if part == "description" else "Move parts of it to files beside it"
            return part, f"the {part} has {length:,} characters, and at most {limit:,} are allowed. {way}."
    return None if spec.text.strip() else ("text", "the skill says nothing. Write what the agent has to do.")


def store_skills(store: Store, specs: Sequence[SkillSpec]) -> list[str]:
    """Give the agent exactly these skills, in a transaction of the caller. Return the ids of those that it had and that
    are changed or gone."""
    names = set[str]()
    for spec in specs:
        for part in ("name", "description", "text"):
            require_text(getattr(spec, part), f"the {part} of a skill")
        if fault := fault_of(spec):
            raise RejectedError(f"the skill {spec.name!r:.80} cannot be used: {fault[1]}")
        if spec.name in names:
            raise RejectedError(f"two skills are called {spec.name!r}; give each a name of its own.")
        names.add(spec.name)
    before = {skill: store.skills.text(number_of(skill.id)) for skill in store.skills.active()}
    stored = {(skill.name, skill.description): text for skill, text in before.items()}
    for skill in before:
        if skill.name not in names:
            store.skills.remove(number_of(skill.id))
    for spec in specs:
        cleaned = SkillSpec(*(str(clean(text)) for text in (spec.name, spec.description, spec.text)))
        if stored.get((cleaned.name, cleaned.description)) != cleaned.text:
            store.skills.put(cleaned)
    return [skill.id for skill, text in before.items() if store.skills.text(number_of(skill.id)) != text]


def named(store: Store, name: str) -> Skill:
    """Return the skill of a name. Raises NotFoundError, which lists the names."""
    skills = store.skills.active()
    found = next((skill for skill in skills if skill.name == name), None)
    if found is None:
        which = f"there are {', '.join(skill.name for skill in skills)}." if skills else "there is none."
        raise NotFoundError(f"there is no skill {name!r:.80}; {which}")
    return found


def _reads_as_page_id(name: str) -> bool:
    try:
        return bool(read_page_id(name))
    except NotFoundError:
        return False
