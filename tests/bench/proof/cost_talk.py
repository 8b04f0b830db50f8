"""The conversation whose cost is measured: the same words for every policy, by the turn's number alone.

Most messages are a few sentences, every twelfth brings a page of text. In every tenth turn the model edits core (or in
more of them: `OFTENER`), so that turn takes two requests. Between turns a minute passes; after every fortieth an hour,
in which the cache goes cold.
"""

import re

from pager.types import Json
from tests.bench.texts import Texts
from tests.standin import Reply, call

EDIT_EVERY, PAGE_EVERY, PAUSE_EVERY = 10, 12, 40
OFTENER = (3, 1)  # core is edited in every third turn, in every turn
TURN_MINUTES, PAUSE_MINUTES = 1.0, 60.0
BLOCK = "now"


def asked(number: int) -> str:
    sentences = 40 if number % PAGE_EVERY == 0 else 1 + number % 4
    return f"turn {number}: {Texts(number).said(sentences)}"


def pause(number: int) -> float:
    """Return the minutes until the next turn."""
    return PAUSE_MINUTES if number % PAUSE_EVERY == 0 else TURN_MINUTES


def state(number: int) -> str:
    """Return what core says from turn `number` on."""
    return f"state {number}: {Texts(number + 1_000_000).said(3)}"


def initial_core() -> str:
    return f"{Texts(3).said(10)}\n{state(0)}"


def reply(params: Json, every: int = EDIT_EVERY) -> Reply:
    """Say some sentences, whoever asks, and edit core in every so many turns."""
    content = params["messages"][-1]["content"]
    texts = [content] if isinstance(content, str) else [each["text"] for each in content if each["type"] == "text"]
    number = next((int(found[1]) for text in texts if (found := re.match(r"turn (\d+):", text))), 0)
    if number and number % every == 0:
        return Reply(call("core_replace", {"block": BLOCK, **edit(number, every)}))
    return Reply(Texts(number + 2_000_000).said(3 + number % 9))


def edit(number: int, every: int = EDIT_EVERY) -> dict[str, str]:
    return {"old_text": state(number - every), "new_text": state(number)}
