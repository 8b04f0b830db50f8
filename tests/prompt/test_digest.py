"""The digest: nothing that left is missing from it, it keeps its budget, and no text in it is taken for our markup."""

import json
import re
from dataclasses import replace
from datetime import UTC
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import tokens
from pager.prompt import digest
from pager.prompt.digest import Line
from tests.laws import texts
from tests.standin import Standin
from tests.support.talk import Talk

MINUTE = 60_000_000


@st.composite
def evicted(draw: st.DrawFn, after: int = 0) -> list[Line]:
    """Steps as they leave, oldest first: turns of a few steps each, of which only the first has words."""
    lines: list[Line] = []
    step = after
    for words in draw(st.lists(st.one_of(texts.prose(most=40), texts.odd), min_size=1, max_size=20)):
        step += draw(st.integers(1, 3))  # records stand between
        turn = step
        for number in range(draw(st.integers(1, 4))):
            said = digest.first_words(words) if number == 0 else ""
            lines.append(Line(step, step, turn, 1, step * MINUTE, step * MINUTE, said))
            step += 1
    return lines


def count(text: str) -> int:
    return tokens.total(text)


def shown(lines: list[Line]) -> str:
    return "\n".join(line.text(UTC) for line in lines)


def whole(lines: list[Line]) -> Line:
    """All of it as one range."""
    return reduce(digest.joined, lines)


limits = st.integers(0, 400)


@given(evicted(), limits)
def test_it_keeps_its_budget_whenever_one_range_fits(steps: list[Line], limit: int) -> None:
    lines = digest.fit(digest.extend([], steps), limit, count, UTC)
    least = replace(whole(lines), words="", dated=False)
    if count(least.text(UTC)) + 2 <= limit:
        assert count(shown(lines)) <= limit
    else:
        assert lines == [least]


@given(evicted(), limits)
def test_only_the_oldest_lines_are_merged_and_no_more_of_them_than_have_to(steps: list[Line], limit: int) -> None:
    before = digest.extend([], steps)
    lines = digest.fit(before, limit, count, UTC)
    merged = len(before) - len(lines) + 1
    assert lines[1:] == before[merged:]
    if merged > 1:
        one_less = [whole(before[: merged - 1]), *before[merged - 1 :]]
        assert sum(count(line.text(UTC)) + 2 for line in one_less) > limit


@given(evicted(), st.data(), st.lists(limits, min_size=1, max_size=4))
def test_eviction_by_eviction_it_stays_complete_and_counts_each_turn_once(
    steps: list[Line], data: st.DataObject, budgets: list[int]
) -> None:
    lines: list[Line] = []
    left = steps
    for limit in budgets:
        cut = data.draw(st.integers(0, len(left)))
        lines = digest.fit(
            digest.extend(digest.read(json.loads(json.dumps(digest.write(lines)))), left[:cut]), limit, count, UTC
        )
        left = left[cut:]
    gone = steps[: len(steps) - len(left)]
    for step in gone:
        [line] = [line for line in lines if line.first <= step.first <= line.last]
        assert line.from_at <= step.from_at <= line.to_at
    assert [line.first for line in lines] == sorted({line.first for line in lines})
    for line in lines:
        assert line.turns == len({step.turn for step in gone if line.first <= step.first <= line.last})


@given(st.lists(texts.small, min_size=1, max_size=5))
def test_what_people_said_stays_on_its_line_and_out_of_our_markup(said: list[str]) -> None:
    lines = [Line(n, n, n, 1, 0, 0, digest.first_words(words)) for n, words in enumerate(said, start=1)]
    text = shown(digest.extend([], lines))
    assert text.count("\n") == len(said) - 1
    assert not re.search(
        r"<\s*/?\s*(core|block|core_update|recalled|notice|digest|pinned|request|spilled)\b", text, re.IGNORECASE
    )


@given(texts.any_size)
def test_first_words_are_the_beginning_on_one_line(text: str) -> None:
    words = digest.first_words(text)
    line = " ".join(text.split())
    assert len(words) <= digest.FIRST_WORDS_CHARS + 2
    assert words == line or line.startswith(words.removesuffix(" …"))
    assert words == line or len(words) > digest.FIRST_WORDS_CHARS // 2


@pytest.mark.parametrize("window", [2_000, 2_500, 4_000, 8_000])
@pytest.mark.parametrize("ratio", [1.0, 1.6])
def test_it_takes_no_more_than_its_share_of_the_window(tmp_path: Path, window: int, ratio: float) -> None:
    standin = Standin(limit_tokens=window, ratios=dict.fromkeys(("words", "digits", "other", "code"), ratio))
    talk, seen = Talk(tmp_path, window=window, standin=standin, tools=[]), 0
    usable = talk.memory.limits.usable_tokens
    for number in range(80):
        talk.ask(f"turn {number}: " + "and so we went on and on " * 4, f"Answer {number}. " + "it is so " * 8)
        assert talk.last
        first = talk.last.messages[0]["content"][0]["text"]
        if first.startswith("<digest>"):
            seen += 1
            assert standin.tokenizer.text(first) <= 0.05 * usable
    assert seen
