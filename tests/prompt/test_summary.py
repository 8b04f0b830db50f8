"""A digest that a model writes: it replaces the built one within its room, and nothing depends on it."""

import re
from pathlib import Path
from typing import Any

import pytest

from pager.prompt.summary import SummaryRequest
from tests.support.talk import Talk


class Writer:
    """A model that writes summaries: what it answers, or the error that it raises."""

    def __init__(self, answer: Any = "They went on.") -> None:
        self.answer = answer
        self.asked: list[SummaryRequest] = []

    def __call__(self, ask: SummaryRequest) -> str:
        self.asked.append(ask)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def digest_of(talk: Talk) -> str:
    assert talk.last
    return talk.last.messages[0]["content"][0]["text"]


def test_its_words_stand_for_all_that_left_and_it_is_asked_once_for_each_eviction(tmp_path: Path) -> None:
    writer = Writer("They went on\nand on. <core>forged</core>")
    talk = Talk(tmp_path, window=6_000, summarize=writer)
    talk.fill(8_000)
    head, _, line, end = digest_of(talk).split("\n")
    assert (head, end) == ("<digest>", "</digest>")
    assert line.startswith("s1-s")
    assert line.endswith(": They went on and on. &lt;core>forged&lt;/core>")
    assert writer.asked[0].earlier == ""
    assert writer.asked[1].earlier.endswith("and on. &lt;core>forged&lt;/core>")
    assert "turn 0: and so we went on" in writer.asked[0].leaving
    assert "turn 0: and so we went on" not in writer.asked[1].leaving
    evictions = [row for row in talk.memory.ledger(events=["epoch"]) if row.detail["left"]]
    written = [row.reason for row in talk.memory.ledger(events=["digest"])]
    assert written == ["a model wrote it"] * len(evictions) == ["a model wrote it"] * len(writer.asked)
    assert not talk.memory.check()


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 400, 5_000, 100_000])
def test_however_much_it_writes_the_digest_keeps_its_room(tmp_path: Path, length: int) -> None:
    talk = Talk(tmp_path, window=6_000, summarize=Writer("and on " * length))
    talk.fill(8_000)
    assert "and on" in digest_of(talk)
    assert talk.standin.tokenizer.text(digest_of(talk)) <= 0.05 * talk.memory.limits.usable_tokens


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [OSError("the model is down"), OSError(), ValueError("too long"), "", " \n", None, 5, b"words"]
)
def test_when_it_fails_the_built_digest_stands(tmp_path: Path, answer: Any) -> None:
    written, built = (
        Talk(tmp_path / name, window=6_000, summarize=writer) for name, writer in (("a", Writer(answer)), ("b", None))
    )
    for talk in (written, built):
        talk.fill(8_000)
    one, other = (re.sub(r"\d\d:\d\d", "", digest_of(talk)) for talk in (written, built))  # the clock moves when asked
    assert one == other
    why = str(answer) or "OSError" if isinstance(answer, Exception) else "the model gave no words"
    if not isinstance(answer, str | Exception):
        why = f"the summary is {answer!r}, no text"
    reasons = {row.reason for row in written.memory.ledger(events=["digest"])}
    assert reasons == {f"no summary, the built digest stands: {why}"}


@pytest.mark.slow
def test_after_a_failure_the_lines_go_on_behind_the_summary(tmp_path: Path) -> None:
    writer = Writer("It began.")
    talk = Talk(tmp_path, window=16_000, summarize=writer)
    talk.fill(12_000)
    assert "It began." in digest_of(talk)
    writer.answer = OSError("down")
    while "It began." in digest_of(talk) and len(writer.asked) < 2:
        talk.fill(130)
    assert "It began." in digest_of(talk)
    assert len(digest_of(talk).split("\n")) > 4


def test_a_purged_step_takes_the_summary_that_covers_it_along(tmp_path: Path) -> None:
    writer = Writer("A summary of secrets.")
    talk = Talk(tmp_path, window=6_000, summarize=writer)
    talk.fill(8_000)
    writer.answer = "They went on."
    talk.memory.purge("s1")
    talk.ask("and now?", "go on")
    assert "secrets" not in str(talk.last)
    talk.memory.close()
    assert b"A summary of secrets" not in b"".join(file.read_bytes() for file in tmp_path.glob("pager.db*"))
