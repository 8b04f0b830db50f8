"""One question to facts and turns: what both say is compared in the same units, also where there are few of them."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pager import Memory, MemoryReader
from tests.support.embedders import Letters, Pieces, Words

pytestmark = pytest.mark.slow  # a law over many small memories

EMBEDDERS: list[Callable[[], Any]] = [lambda: None, Words, Pieces, Letters]
ORDINARY = ("few", "old", "friends", "met", "uncle", "Tomas", "by", "flat", "lake", "rain", "fine", "tea", "Monday")
texts = st.lists(st.sampled_from(ORDINARY), min_size=1, max_size=40).map(" ".join)
kinds = st.sampled_from(["fact", "user", "assistant"])
entries = st.lists(st.tuples(kinds, texts), max_size=7)
FEW = [("fact", "few friends"), ("user", "fine tea"), ("assistant", "rain")]


def store(memory: Memory, kind: str, text: str) -> str:
    return memory.archive(text).id if kind == "fact" else memory.record(kind, text)


@pytest.mark.parametrize("embedder", EMBEDDERS, ids=["none", "words", "pieces", "letters"])
@given(
    before=entries, kind=kinds, words=texts, behind=texts, after=entries,
    question=st.sampled_from(["ferry", "What about the ferry?", "When does our ferry leave, and from where?"]),
)  # fmt: skip
@example(before=[], kind="fact", words="old", behind="lake", after=FEW, question="ferry")
def test_among_a_handful_the_only_entry_that_holds_the_word_comes_first(
    embedder: Callable[[], Any], before: Any, kind: str, words: str, behind: str, after: Any, question: str
) -> None:
    with TemporaryDirectory() as place, Memory.open(place, embedder=embedder()) as memory:
        for each in before[: 7 - len(after)]:
            store(memory, *each)
        wanted = store(memory, kind, f"{words} ferry {behind}")
        for each in after:
            store(memory, *each)
        memory.embed_pending()
        hits = memory.search(question)
        assert hits[0].page_id == wanted
        assert all(hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-5) for hit in hits)  # no rounding
        alone = memory.search_archive(question) if kind == "fact" else memory.search_recall(question)
        assert alone[0].page_id == wanted
        with MemoryReader.open(Path(place), embedder=embedder()) as reader:
            assert reader.search(question) == hits


@pytest.mark.parametrize("embedder", EMBEDDERS, ids=["none", "words", "pieces", "letters"])
@pytest.mark.parametrize(("kind", "other"), [("fact", "user"), ("user", "fact"), ("fact", "fact"), ("user", "user")])
def test_a_word_is_as_rare_as_it_is_among_facts_and_turns(
    embedder: Callable[[], Any], kind: str, other: str, tmp_path: Path
) -> None:
    with Memory.open(tmp_path, embedder=embedder()) as memory:
        for number in range(100):
            store(memory, other, f"{ORDINARY[number % 13]} {ORDINARY[number % 11]} number {number}")
        wanted = store(memory, kind, "old boat and its ferry")
        memory.embed_pending()
        assert memory.search("ferry")[0].page_id == wanted
