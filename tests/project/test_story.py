"""`make bench-story`, tried on a server that is always here: what it counts, and that recall alone brings nine of ten
answers into the prompt."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.testing import ScriptedServer
from pager.types import Json
from tests.bench.bench_story import EPOCHS_GONE, KINDS, tell
from tests.bench.story import QUESTIONS

pytestmark = pytest.mark.slow


def reads_well(params: Json) -> str:
    """Answer a question if the answer was recalled, and anything else in a word."""
    texts = [block["text"] for message in params["messages"] for block in message["content"] if "text" in block]
    recalled = " ".join(text for text in texts if text.startswith("<recalled>"))
    found = [each.right.search(recalled) for each in QUESTIONS if each.text == texts[-1]]
    return found[0][0] if found and found[0] else "Fine."


def knows_nothing(_: Json) -> str:
    return "I do not know. " * 12


@pytest.mark.parametrize(
    # The ticket to Lisbon is found for "after the summer", but its cosine of .32 is under the gate's floor.
    ("name", "answers", "most"),
    [("recall unasked", reads_well, 10), ("no recall", knows_nothing, 0)],
)
def test_the_story_is_told_and_scored(tmp_path: Path, name: str, answers: Callable[[Json], str], most: int) -> None:
    kind = next(kind for kind in KINDS if kind.tools == "none" and kind.name.endswith(name))
    with ScriptedServer() as server:
        server.otherwise(answers)
        story = tell(kind, tmp_path / "story", url=server.base_url, model="m", provider="anthropic", key="k")
    right = [question.is_answered(answer) for question, answer in zip(QUESTIONS, story.answers, strict=True)]
    assert story.epochs > EPOCHS_GONE
    assert len(story.answers) == len(QUESTIONS)
    assert sum(right) == most
    assert (story.calls, story.failed, story.silent) == (0, 0, 0)
    assert re.match(r"\n> My dog", (tmp_path / "story" / "transcript.txt").read_text(encoding="utf-8"))
