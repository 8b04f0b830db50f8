"""How the rehearsal finds an answer: step by step, each step from what the request shows. Pure.

`pursue` gives either the next call or the answer. What is in core or was recalled needs no call; else the archive is
searched, then what was said; an answer quotes what was found with its page id, or says honestly that nothing was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from agents.rehearsal.phrases import LONGEST_SAID, Question, is_question, sentences
from agents.rehearsal.reading import Done, Found, Said, Scene, found
from agents.rehearsal.script import call
from agents.rehearsal.wire import Json
from agents.rehearsal.words import stems

NOT_ABOUT_PEOPLE = ("persona", "plan")  # core blocks that do not answer questions
_PAGE_ID = re.compile(r"\b[fsx]\d{1,18}\b")
_SUPERSEDES = re.compile(r"\bsupersedes (f\d{1,18}): ?(.+)")
_LENGTHS = re.compile(r"^[fsx]\d+, characters \d+ to \d+ of \d+[^\n]*:\n")


def pursue(question: Question, scene: Scene) -> Json | str:
    if question.kind == "page":
        return _page(question, scene)
    if question.kind == "forget":
        return _forget(question, scene)
    if question.kind == "before":
        return _before(question, scene)
    if question.kind in {"said", "exact"}:
        return _said(question, scene)
    return _fact(question, scene)


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_SAID else f"{line[:LONGEST_SAID].rsplit(' ', 1)[0]} …"


def first_page(text: str) -> str | None:
    match = _PAGE_ID.search(text)
    return match[0] if match else None


def superseded(done: Done) -> Found | None:
    """What a new fact has replaced, as `archive` says it."""
    match = _SUPERSEDES.search(done.result)
    return Found(match[1], match[2].strip()) if match else None


# searching


def _search(scene: Scene, name: str, question: Question, as_of: str | None = None) -> Json | list[Found]:
    """The call, while it has not been made; then what it found. Nothing, where there is no such tool."""
    if name not in scene.tools:
        return []
    arguments = {"query": question.query, **({"as_of": as_of} if as_of else {})}
    done = scene.did(name, arguments)
    if done is None:
        return call(name, **arguments)
    return [] if done.is_error else found(done.result)


def _fits(question: Question, text: str) -> float:
    """The share of the question's words that a text has."""
    return len(question.words & stems(text)) / len(question.words) if question.words else 0.0


def _best(question: Question, hits: Sequence[Found], least: float = 0.5) -> Found | None:
    ranked = sorted(hits, key=lambda hit: -_fits(question, f"{hit.text} {hit.heading}"))
    return ranked[0] if ranked and _fits(question, f"{ranked[0].text} {ranked[0].heading}") >= least else None


def _people_said(scene: Scene, hits: Sequence[Found]) -> list[Found]:
    """Steps in which somebody stated something: not the replies, not the questions, not this message itself."""
    own = " ".join(scene.said.split())
    return [
        hit for hit in hits if not _is_reply(hit) and not _is_asking(hit.text) and " ".join(hit.text.split()) != own
    ]


def _is_reply(hit: Found) -> bool:
    return hit.heading.endswith("assistant")


def _is_asking(text: str) -> bool:
    return all(is_question(each) for each in sentences(text))


# one kind of question each


def _fact(question: Question, scene: Scene) -> Json | str:
    if question.as_of is None and (known := _in_view(question, scene)):
        return known
    hits = _search(scene, "search_archive", question, question.as_of)
    if isinstance(hits, dict):
        return hits
    if hit := _best(question, hits):
        when = f"On {question.as_of} it was" if question.as_of else "I have in the archive"
        return f"{when} “{short(hit.text)}” ({hit.page_id})."
    steps = _search(scene, "search_recall", question)
    if isinstance(steps, dict):
        return steps
    if hit := _best(question, _people_said(scene, steps)):
        return f"Nothing in the archive says so, but you wrote “{short(hit.text)}” ({hit.page_id})."
    return _nothing(question, scene, hits)


def _in_view(question: Question, scene: Scene) -> str | None:
    for name, block in scene.core.items():
        if name in NOT_ABOUT_PEOPLE:
            continue
        for line in block.text.splitlines():
            if _fits(question, line) == 1:
                return f"It is in my core memory: “{short(line)}”."
    hit = _best(question, scene.recalled, least=1.0)
    return f"I recall “{short(hit.text)}” ({hit.page_id})." if hit else None


def _nothing(question: Question, scene: Scene, near: Sequence[Found]) -> str:
    if near:
        hit = near[0]
        return (
            f"I found nothing that says so about {question.about}; the closest is “{short(hit.text)}” ({hit.page_id})."
        )
    if not {"search_archive", "search_recall"} & scene.tools.keys():
        earlier = [Found("", said.text) for said in scene.items if isinstance(said, Said) and said.text != scene.said]
        hit = _best(question, [each for each in reversed(earlier) if not _is_asking(each.text)])
        return f"You wrote “{short(hit.text)}”." if hit else f"I have no tool to look for {question.about}."
    when = f" for {question.as_of}" if question.as_of else ""
    return f"I found nothing about {question.about}{when}."


def _before(question: Question, scene: Scene) -> Json | str:
    """What held until the present: what the present fact has replaced, or what was true the day before it began."""
    seen = [old for item in reversed(scene.items) if isinstance(item, Done) and (old := superseded(item))]
    if hit := _best(question, seen, least=1.0):
        return f"Before that it was “{short(hit.text)}” ({hit.page_id})."
    hits = _search(scene, "search_archive", question)
    if isinstance(hits, dict):
        return hits
    current = _best(question, hits)
    if current and current.since:
        day = date.fromisoformat(current.since) - timedelta(days=1)
        older = _search(scene, "search_archive", question, day.isoformat())
        if isinstance(older, dict):
            return older
        if hit := _best(question, older):
            return f"Until {current.since} it was “{short(hit.text)}” ({hit.page_id})."
    steps = _search(scene, "search_recall", question)
    if isinstance(steps, dict):
        return steps
    value = current.text if current else ""
    told = [hit for hit in _people_said(scene, steps) if not stems(value) <= stems(hit.text)]
    if hit := _best(question, told):
        return f"Before that you wrote “{short(hit.text)}” ({hit.page_id})."
    return f"I found nothing about {question.about} before the present." if current else _nothing(question, scene, [])


def _said(question: Question, scene: Scene) -> Json | str:
    steps = _search(scene, "search_recall", question)
    if isinstance(steps, dict):
        return steps
    hit = _best(question, _people_said(scene, steps))
    if hit is None:
        return _fact(question, scene)
    if question.kind == "exact" and "page_in" in scene.tools:
        page = scene.did("page_in", {"page_id": hit.page_id})
        if page is None:
            return call("page_in", page_id=hit.page_id)
        if not page.is_error:
            return f"Word for word ({hit.page_id}): “{_verbatim(page, hit, scene)}”"
    return f"You said “{short(hit.text)}” ({hit.page_id})."


def _verbatim(page: Done, hit: Found, scene: Scene) -> str:
    """The page's text. Of a page that is in view the tool says only that: then it is read there."""
    if _LENGTHS.match(page.result):
        return _LENGTHS.sub("", page.result).strip()
    start = hit.text.strip(" …")[:60]
    return next(_said_with(scene, start), hit.text).strip()


def _said_with(scene: Scene, start: str) -> Iterator[str]:
    return (item.text for item in scene.items if isinstance(item, Said) and start in item.text)


def _page(question: Question, scene: Scene) -> Json | str:
    if "page_in" not in scene.tools:
        return f"I have no tool to read {question.page_id}."
    page = scene.did("page_in", {"page_id": question.page_id})
    if page is None:
        return call("page_in", page_id=question.page_id)
    if page.is_error:
        return f"I cannot read {question.page_id}: {short(page.result)}"
    return f"{question.page_id} reads: “{short(_LENGTHS.sub('', page.result))}”"


def _forget(question: Question, scene: Scene) -> Json | str:
    if "forget" not in scene.tools:
        return "I have no tool to forget."
    hits = _search(scene, "search_archive", question)
    if isinstance(hits, dict):
        return hits
    hit = _best(question, hits)
    if hit is None:
        return f"I found nothing about {question.about} to forget."
    arguments = {"page_id": hit.page_id, "reason": "asked to forget it"}
    done = scene.did("forget", arguments)
    if done is None:
        return call("forget", **arguments)
    return (
        f"I could not: {short(done.result)}"
        if done.is_error
        else f"“{short(hit.text)}” ({hit.page_id}) no longer holds."
    )
