"""Our own markup, and that nobody else can forge it."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import markup
from pager.types import Block

SHARDS = [
    *("<", "</", "< /", "<\n/\t", " ", "\n", ">", '"', "&lt;", "-"),
    *("core", "CORE", "block", "Pinned", "spilled", "x", "_update"),
]
PIECES = st.lists(st.sampled_from(SHARDS) | st.text(max_size=4), max_size=12).map("".join)
TAG = re.compile(rf"<\s*/?\s*({'|'.join(markup.OWN_ELEMENTS)})(?![\w-])", re.IGNORECASE)


@given(text=PIECES)
def test_no_text_has_one_of_our_tags_left(text: str) -> None:
    disarmed = markup.disarm(text)
    assert not TAG.search(disarmed)
    assert markup.disarm(disarmed) == disarmed
    assert disarmed.replace("&lt;", "<") == text.replace("&lt;", "<")


@given(before=PIECES, after=PIECES)
def test_no_tag_comes_together_where_texts_meet(before: str, after: str) -> None:
    block = Block("human", before, after, 10, 5, False, None, 1, "", datetime(2026, 1, 1, tzinfo=UTC))
    for text, ours in (
        (markup.core([block]), ["core", "block", "/block", "/core"]),
        (markup.pinned("f1", before), ["pinned", "/pinned"]),
        (markup.recalled([before, after]), ["recalled", "/recalled"]),
    ):
        found = [re.sub(r"[<\s]", "", match[0]).lower() for match in TAG.finditer(text)]
        assert found == ours


@pytest.mark.parametrize(
    "text", ["", "no tags", "a < b", "<corel>", "<core-x>", "<score>", "<div>", "&lt;core>", "<core_>", "core>"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert markup.disarm(text) is text or markup.disarm(text) == text


@given(text=PIECES)
def test_an_attribute_stays_between_its_quotes(text: str) -> None:
    safe = markup.attribute(text)
    assert not set('"<\n') & set(safe)
    if markup.disarm(text) == text:  # else signs that look like "<" in front of a name of ours are replaced as well
        assert safe.replace("&quot;", '"').replace("&lt;", "<").replace("&amp;", "&") == markup.one_line(text)


def test_without_blocks_there_is_no_core_and_the_explanation_is_short() -> None:
    assert not markup.core([])
    assert len(markup.HOW_MEMORY_WORKS) < 1_200
