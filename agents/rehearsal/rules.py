"""What the rehearsal says to a request. Pure: the same request on the same day gets the same reply.

    >>> hello = {"messages": [{"role": "user", "content": "My name is Alice."}], "tools": [{"name": "archive"}]}
    >>> reply(hello, date(2026, 5, 3)).blocks[0]["input"]
    {'text': 'name is Alice', 'key': 'name', 'tags': ['person']}

In this order: a notice about the window is answered by archiving the open point; a task (there is a tool `task_done`)
is worked off line by line; what is stated is archived, a name also goes into the core block `human`; what is asked is
looked for in core, then in what was recalled, then with the search tools; everything else is acknowledged. Only tools
that the request offers are called, and no call is made twice for the same message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import cast

from agents.rehearsal import answers, phrases, tasks
from agents.rehearsal.phrases import Statement
from agents.rehearsal.reading import Done, Notice, Scene, read
from agents.rehearsal.script import call, thinking
from agents.rehearsal.wire import Json
from agents.rehearsal.words import topic

OPEN_POINT = "open point"
HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Ruling:
    """A reply, and why: the names of the rules that made it."""

    blocks: tuple[Json, ...]
    stop_reason: str
    why: str


def reply(params: Json, today: date) -> Ruling:
    scene = read(params)
    ruling = _decide(scene, today)
    mode = cast(Json, params.get("thinking") or {})
    if mode.get("type") in {"adaptive", "enabled"}:
        shown = "" if mode.get("display") == "omitted" else f"Rule: {ruling.why}."
        return Ruling((thinking(shown), *ruling.blocks), ruling.stop_reason, ruling.why)
    return ruling


def _decide(scene: Scene, today: date) -> Ruling:
    if scene.paused:
        return _say("That was all.", "a paused reply is ended")
    saving = _save_open_point(scene)
    if "task_done" in scene.tools:
        blocks, why = tasks.step(scene, today, [*saving, *_keep_all(scene, _stated(scene, today))])
    else:
        blocks, why = _converse(scene, today, saving)
    calls = any(block["type"] == "tool_use" for block in blocks)
    return Ruling(tuple(blocks), "tool_use" if calls else "end_turn", why)


def _say(text: str, why: str) -> Ruling:
    return Ruling(({"type": "text", "text": text},), "end_turn", why)


def _converse(scene: Scene, today: date, saving: list[Json]) -> tuple[list[Json], str]:
    stated = _stated(scene, today)
    asked = phrases.questions(scene.said, today)
    pursued = [answers.pursue(question, scene) for question in asked]
    calls = [*saving, *_keep_all(scene, stated), *(each for each in pursued if isinstance(each, dict))]
    if calls:
        return _unique(calls), "keep what was stated, look for what was asked"
    said = [_kept(scene, each) for each in stated] + [each for each in pursued if isinstance(each, str)]
    if said:
        return [{"type": "text", "text": " ".join(said)}], "say what was kept and found"
    about = topic(scene.said)
    text = f"You wrote about {about}. I have nothing to add to that." if about else "I am listening."
    return [{"type": "text", "text": text}], "nothing was stated or asked"


def _unique(calls: Sequence[Json]) -> list[Json]:
    return [each for place, each in enumerate(calls) if each not in calls[:place]]


# what is stated


def _stated(scene: Scene, today: date) -> list[Statement]:
    return [] if tasks.lines(scene.said) else phrases.statements(scene.said, today)


def _keep_all(scene: Scene, stated: Sequence[Statement]) -> list[Json]:
    return [call for each in stated for call in _keep(scene, each)]


def _arguments(statement: Statement) -> Json:
    more: Json = {"key": statement.key} if statement.key else {}
    more |= {"tags": list(statement.tags)}
    return {"text": statement.text, **more, **({"valid_from": statement.valid_from} if statement.valid_from else {})}


def _keep(scene: Scene, statement: Statement) -> list[Json]:
    """The calls that a statement still needs."""
    calls: list[Json] = []
    arguments = _arguments(statement)
    if "archive" in scene.tools and not scene.did("archive", arguments):
        calls.append(call("archive", **arguments))
    human = scene.core.get(HUMAN)
    if statement.is_name and human and not human.read_only and statement.text not in human.text:
        lines = human.text.splitlines()
        old = next((line for line in lines if line.lower().startswith("name")), None)
        if old and lines.count(old) == 1:
            edit = call("core_replace", block=HUMAN, old_text=old, new_text=statement.text)
        else:
            edit = call("core_append", block=HUMAN, text=statement.text)
        if edit["name"] in scene.tools and not scene.did(edit["name"], edit["input"]):
            calls.append(edit)
    return calls


def _kept(scene: Scene, statement: Statement) -> str:
    done = scene.did("archive", _arguments(statement))
    if done is None:
        return f"I read “{statement.text}”, but I have no tool to keep it."
    if done.is_error:
        return f"I could not keep “{statement.text}”: {answers.short(done.result)}"
    page_id = answers.first_page(done.result)
    replaced = answers.superseded(done)
    old = f" It replaces “{replaced.text}” ({replaced.page_id})." if replaced else ""
    return f"Noted: “{statement.text}”{f' ({page_id})' if page_id else ''}.{old}"


# a notice about the window


def _save_open_point(scene: Scene) -> list[Json]:
    """Once per notice: what is being worked on, before the oldest steps leave."""
    notices = [place for place, item in enumerate(scene.items) if isinstance(item, Notice)]
    if not notices or "archive" not in scene.tools:
        return []
    since = scene.items[notices[-1] :]
    if any(isinstance(item, Done) and item.input.get("key") == OPEN_POINT for item in since):
        return []
    about = tasks.gist(scene) or topic(scene.said, most=12) or "nothing in particular"
    return [call("archive", text=f"open point: {about}", key=OPEN_POINT, tags=["plan"])]
