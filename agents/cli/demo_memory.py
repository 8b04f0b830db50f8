"""The demo's first two chapters: facts over restarts, a contradiction, answers from memory and from the past."""

from __future__ import annotations

from agents.cli.demo_page import Page
from agents.demo.stage import Process, Stage, Turn

WHO = "Dana"
FIRST_SESSION = (
    "Hi! My name is Dana. I live in Lisbon since 2019, and I prefer window seats.",
    "Remember that Mara is allergic to nuts.",
)
SECOND_SESSION = (
    "Who am I, and which seat do I prefer?",
    "Correction: I moved to Porto in May 2024, and I prefer aisle seats since my knee operation.",
)
THIRD_SESSION = (
    "Where do I live?",
    "Where did I live in March 2022?",
    "Which seat do I prefer, and what is Mara allergic to?",
    "Which seat did I prefer before?",
)
OPENING = (*FIRST_SESSION, *SECOND_SESSION, *THIRD_SESSION)
MOVED = "2024-05-01"


def facts_over_restarts(stage: Stage, page: Page) -> None:
    page.heading("1  Facts over two sessions, and a contradiction")
    _, first_pid = _session(stage, page, FIRST_SESSION)
    with stage.reading("guide") as memory:
        facts = memory.inspect.newest_facts()
        page.check(
            len(facts) == 4 and {fact.actor for fact in facts} == {"agent"},
            f"{len(facts)} facts are on disk, archived by the agent itself with its tool",
        )
    page.quiet("\nThe process is gone. A new one knows only what is on disk.\n")
    second, second_pid = _session(stage, page, SECOND_SESSION)
    page.check(first_pid != second_pid, f"two processes, {first_pid} and {second_pid}")
    with stage.reading("guide") as memory:
        human = memory.core()[0].value
        page.check(
            human in second[0].answer and "Dana" in human and _brought(second[0], "window seats"),
            "the second one knew the name, from core, and the seat, from the archive",
        )
        old, new = memory.history.fact_versions("home")
        page.check(
            old.superseded_by == new.number and str(old.valid_until).startswith(MOVED),
            f"{old.id} “{old.text}” holds until {MOVED}, {new.id} “{new.text}” since then: nothing was overwritten",
        )


def answers(page: Page, stage: Stage, talk: Process) -> list[Turn]:
    """The third session, in which the demo goes on to talk."""
    page.heading("2  Answers from memory, and from the past")
    page.command("selfpager chat guide.yaml", f"process {talk.pid}, the third one")
    turns = [_said(page, talk, text) for text in THIRD_SESSION]
    now, then, seat, before = turns
    with stage.reading("guide") as memory:
        old, new = memory.history.fact_versions("home")
        page.check(
            _brought(now, new.id) and new.text in now.answer,
            f"today's answer was found by search_archive: {new.id}",
        )
        asked = [call.input["as_of"] for call in then.calls if "as_of" in call.input]
        page.check(
            asked and _brought(then, old.id) and old.text in then.answer,
            f"of {asked[0] if asked else '?'} it found what was true then: {old.id}, by as_of",
        )
        window, aisle = memory.history.fact_versions("seat")
        page.check(
            aisle.text in seat.answer and "nuts" in seat.answer and window.text in before.answer,
            f"one seat holds ({aisle.id}), the earlier one is still there ({window.id})",
        )
    return turns


def _session(stage: Stage, page: Page, texts: tuple[str, ...]) -> tuple[list[Turn], int]:
    with stage.chat("guide") as talk:
        page.command("selfpager chat guide.yaml", f"process {talk.pid}")
        return [_said(page, talk, text) for text in texts], talk.pid


def _said(page: Page, talk: Process, text: str) -> Turn:
    turn = talk.say(text)
    page.turn(WHO, turn)
    return turn


def _brought(turn: Turn, words: str) -> bool:
    """Whether a search of the archive has brought it."""
    return any(call.name == "search_archive" and words in call.result for call in turn.calls)
