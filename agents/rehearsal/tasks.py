"""How the rehearsal works on a task: the numbered lines of the request, one after the other. Pure.

A line that names one of the tools, as in "2. fetch_order(number=17)", is that call; of any other line the summary
says that nothing was done. What is done goes into the core block `plan`, where there is one, so that it is known after
an eviction. Then `task_done`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from agents.rehearsal import answers, phrases
from agents.rehearsal.reading import Done, Said, Scene
from agents.rehearsal.script import call
from agents.rehearsal.wire import Json

PLAN = "plan"
MARK_CHARACTERS = 60
_LINE = re.compile(r"^\s*(\d{1,3})[.)]\s+(\S.*)$", re.MULTILINE)
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(([^()]*)\)")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_ARGUMENT = re.compile(r"""\s*(\w+)\s*=\s*("[^"]*"|'[^']*'|\[[^\]]*\]|[^,]*?)\s*(?:,|$)""")
_STOP = re.compile(r"^\s*(?:please )?(?:stop|that is enough|that's enough|abort)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str

    @property
    def mark(self) -> str:
        """How a finished line stands in the plan."""
        return f"done {self.number}. {' '.join(self.text.split())[:MARK_CHARACTERS].strip()}"


@dataclass(frozen=True, slots=True)
class Progress:
    """`over` are the lines behind us, `idle` the numbers of those that name no tool; `results` are those in view."""

    over: tuple[Line, ...]
    idle: frozenset[int]
    results: Mapping[int, Done]
    next: Line | None


def lines(text: str) -> list[Line]:
    return [Line(int(number), line.strip()) for number, line in _LINE.findall(text)]


def step(scene: Scene, today: date, aside: Sequence[Json]) -> tuple[list[Json], str]:
    """The next blocks and why; `aside` are calls that go along with them."""
    task, place = _task(scene)
    progress = _progress(scene, task, place)
    final = next((item for item in scene.items[place:] if isinstance(item, Done) and _ends(item)), None)
    if final is not None and not aside:
        return [_text(f"Done. {_summary(progress)}")], "the task was marked as done"
    answered = _tell(scene, today)
    if isinstance(answered, dict):
        return [*aside, answered], "look for what was asked in between"
    words = [_text(answered)] if answered else []
    if final is not None:
        return [*words, *aside], "keep what was stated"
    marks = _marks(scene, progress)
    if progress.next is None or _STOP.match(scene.said):
        ending = call("task_done", **{_summary_argument(scene.tools["task_done"]): _summary(progress)})
        return [*words, *aside, *_cleared(scene, progress, marks), ending], "no line is left"
    line = progress.next
    named = _named_call(line, scene.tools)
    assert named is not None
    return [*words, _text(f"{line.number}. {line.text}"), *aside, *marks, named], "the next line of the task"


def gist(scene: Scene) -> str:
    """Where a task stands, for the archive."""
    if "task_done" not in scene.tools:
        return ""
    task, place = _task(scene)
    progress = _progress(scene, task, place)
    done = ", ".join(str(line.number) for line in progress.over if line.number not in progress.idle) or "nothing"
    ahead = f"next is {progress.next.number}. {progress.next.text}" if progress.next else "nothing is left"
    return f"of the task {done} is done, {ahead}"


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _task(scene: Scene) -> tuple[list[Line], int]:
    """The last enumerated request, and where in the scene it stands."""
    for place in range(len(scene.items) - 1, -1, -1):
        item = scene.items[place]
        if isinstance(item, Said) and (found := lines(item.text)):
            return found, place
    return [], 0


def _progress(scene: Scene, task: Sequence[Line], place: int) -> Progress:
    """Each line takes the first call of its kind since the request; a line without a call is over by itself."""
    made = [item for item in scene.items[place:] if isinstance(item, Done)]
    plan = scene.core[PLAN].text.splitlines() if PLAN in scene.core else []
    over: list[Line] = []
    idle = frozenset(line.number for line in task if _named_call(line, scene.tools) is None)
    results: dict[int, Done] = {}
    for line in task:
        named = _named_call(line, scene.tools)
        match = next(
            (done for done in made if named and (done.name, done.input) == (named["name"], named["input"])), None
        )
        if match is not None:
            made.remove(match)
            results[line.number] = match
        if named and match is None and line.mark not in plan:
            return Progress(tuple(over), idle, results, line)
        over.append(line)
    return Progress(tuple(over), idle, results, None)


def _marks(scene: Scene, progress: Progress) -> list[Json]:
    """The plan is told what is finished since it was last told."""
    plan = scene.core.get(PLAN)
    if plan is None or plan.read_only or "core_append" not in scene.tools:
        return []
    known = plan.text.splitlines()
    new = [line.mark for line in progress.over if line.number not in progress.idle and line.mark not in known]
    arguments = {"block": PLAN, "text": "\n".join(new)}
    return [call("core_append", **arguments)] if new and not scene.did("core_append", arguments) else []


def _cleared(scene: Scene, progress: Progress, marks: Sequence[Json]) -> list[Json]:
    """At the end the marks leave the plan again, or the same task could not be given twice."""
    plan = scene.core.get(PLAN)
    old = "\n".join(line.mark for line in progress.over if plan and line.mark in plan.text.splitlines())
    if not plan or not old or plan.text.count(old) != 1 or "core_replace" not in scene.tools:
        return list(marks) if plan and not old and not progress.over else []
    return [call("core_replace", block=PLAN, old_text=old, new_text="")]


def _summary(progress: Progress) -> str:
    if not progress.over:
        return "There was no numbered line to work on."
    parts = [_outcome(line, progress) for line in progress.over]
    left = f" Not done: {progress.next.number} and what follows." if progress.next else ""
    return f"{'; '.join(parts)}.{left}"


def _outcome(line: Line, progress: Progress) -> str:
    if line.number in progress.idle:
        return f"{line.number} names no tool, nothing was done"
    done = progress.results.get(line.number)
    if done is None:  # its result has left the window, and the plan says that it is done
        return f"{line.number} done"
    said = answers.short(done.result)[:MARK_CHARACTERS]
    return f"{line.number} {'failed' if done.is_error else 'done'}: {said}"


def _ends(done: Done) -> bool:
    return done.name == "task_done" and not done.is_error and "step" not in done.input


def _tell(scene: Scene, today: date) -> Json | str:
    """The answer to a question that came in between, or the call that it needs."""
    if lines(scene.said):
        return ""
    pursued = [answers.pursue(each, scene) for each in phrases.questions(scene.said, today)]
    calls = [each for each in pursued if isinstance(each, dict)]
    if calls:
        return calls[0]
    # Said once: with the first reply that does not search.
    said = [each for each in pursued if isinstance(each, str)]
    searched = all(done.name in {"search_archive", "search_recall", "page_in", "forget"} for done in scene.done)
    return " ".join(said) if searched else ""


# calls


def _named_call(line: Line, tools: Mapping[str, Json]) -> Json | None:
    """The call that a line names, with its arguments as the tool's schema wants them."""
    for name, arguments in _CALL.findall(line.text):
        if name in tools and name != "task_done":
            properties = _properties(tools[name])
            values = {key: _value(raw, properties.get(key) or {}) for key, raw in _ARGUMENT.findall(arguments)}
            return call(name, **values)
    named = next((name for name in _NAME.findall(line.text) if name in tools and name != "task_done"), None)
    return call(named) if named and "_" in named else None


def _properties(tool: Json) -> dict[str, Json]:
    schema = cast(Json, tool.get("input_schema") or {})
    return cast("dict[str, Json]", schema.get("properties") or {})


def _value(raw: str, schema: Json) -> Any:
    kind = schema.get("type")
    if raw[:1] in "\"'" and raw[:1]:
        return raw[1:-1]
    if kind == "string":
        return raw
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def _summary_argument(tool: Json) -> str:
    properties = _properties(tool)
    if "summary" in properties or not properties:
        return "summary"
    required = [name for name in tool["input_schema"].get("required") or () if name in properties]
    return next(iter([*required, *properties]))
