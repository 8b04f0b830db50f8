"""Skills: instructions for one kind of work, each a page that the agent reads when it needs it.

The prompt names every skill in a line. A name keeps its page id for good, so that what was said of `k3` stays true. The
text is stored when the memory is opened: a page never changes while the agent works.
"""

from collections.abc import Sequence

from pager.arguments import require_text
from pager.blocks import clean
from pager.errors import RejectedError, brief
from pager.store import Store
from pager.types import SkillSpec, number_of


def store_skills(store: Store, specs: Sequence[SkillSpec]) -> list[str]:
    """Give the agent exactly these skills, in a transaction of the caller. Return the ids of those that it had and that
    are changed or gone."""
    names = set[str]()
    for spec in specs:
        for part in ("name", "description", "text"):
            require_text(getattr(spec, part), f"the {part} of a skill")
        if fault := spec.fault:
            raise RejectedError(f"the skill {brief(spec.name, 80)} cannot be used: {fault[1]}")
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
