"""Checklists: what counts as an item, and that finished items make room instead of an error."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import Block, BlockSpec, Checklist, Memory, Prefetch, RejectedError
from pager.checklist import without_finished
from tests.standin import call

ITEMS = st.lists(st.tuples(st.booleans(), st.text("abc [x]", min_size=1).filter(str.strip)), max_size=8)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", None),
        ("no list\n- [link](x)\n- [y] no", None),
        ("- [ ] a\n- [x] b", Checklist(1, 2, "a")),
        ("  * [X] a\n\t2. [x] b\n[] c", Checklist(2, 3, "c")),
        ("- [x] a", Checklist(1, 1)),
        ("- [x] (12 finished before, in the archive)\n- [x] a\n- [ ] b", Checklist(13, 14, "b")),
        ("- [ ]\n- [x]  \n", None),
    ],
)
def test_what_is_read(text: str, read: Checklist | None) -> None:
    assert Checklist.read(text) == read


@given(ITEMS)
def test_taking_finished_items_out_changes_no_progress(items: list[tuple[bool, str]]) -> None:
    text = "Plan:\n" + "\n".join(f"- [{'x' if done else ' '}] {each}" for done, each in items)
    before = Checklist.read(text)
    text, _ = without_finished(text)
    assert Checklist.read(text) == before
    assert without_finished(text) == (text, [])


PLAN = {"plan": BlockSpec(limit_tokens=60), "notes": BlockSpec(limit_tokens=200)}


def opened(directory: Path) -> Memory:
    return Memory.open(directory, core=PLAN, embedder=None)


def fill(memory: Memory, **options: Any) -> Block:
    """Append finished items until they have left."""
    for number in range(30):
        block = memory.core_append("plan", f"- [x] read report {number}", **options)
        if memory.inspect.facts().total:
            return block
    raise AssertionError("it is never full")


def test_finished_items_leave_a_full_block_for_the_archive(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append_user("work")
        memory.request()
        calls = {"content": [call("core_append", call_id="c1")], "stop_reason": "tool_use"}
        memory.append_assistant(calls)
        memory.core_append("plan", "- [ ] compare", actor="agent")
        block = fill(memory, actor="agent")
        memory.append_result("c1", "Added.", memory_tool=True)
        count = memory.inspect.facts().total
        assert block.value == f"- [ ] compare\n- [x] ({count} finished before, in the archive)"
        assert Checklist.read(block.value) == Checklist(count, count + 1, "compare")
        facts = memory.inspect.newest_facts()[::-1]
        assert [fact.text for fact in facts] == [f"[x] read report {number}" for number in range(count)]
        assert {(fact.tags, fact.key) for fact in facts} == {(("plan",), None)}
        assert [row.reason for row in memory.ledger(events=["page_out"])] == count * ["from the core block plan"]
        assert "finished before" in str(memory.request().messages[-1])  # the agent is shown what it did not write
        assert memory.check() == []


def test_what_is_still_full_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        before = memory.core_append("plan", "- [x] a\n- [ ] b").value
        with pytest.raises(RejectedError, match="of 60 tokens"):
            memory.core_append("plan", "- [ ] c d e f\n" * 30)
        assert memory.core()[0].value == before
        assert memory.inspect.facts().total == 0


def test_a_finished_item_has_the_sources_of_its_block(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.core_append("plan", "- [x] asked the page", source="web:example.org")
        fill(memory)
        assert {fact.via for fact in memory.inspect.newest_facts()} == {("web:example.org",)}


def test_a_purged_item_is_gone_from_the_block_that_it_stood_in(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.core_append("plan", "- [ ] visit the secret garden")
        memory.core_replace("plan", "[ ] visit", "[x] visit")
        fill(memory)
        memory.purge("f1")
        assert memory.check() == []
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"secret garden" in file.read_bytes()]


@pytest.mark.parametrize("seen", [False, True])
def test_what_memory_has_is_put_behind_a_result_that_the_model_has_not_seen(tmp_path: Path, seen: bool) -> None:
    with Memory.open(tmp_path, core=PLAN, embedder=None, prefetch=Prefetch(k=3)) as memory:
        fact = memory.archive("the red hat costs twelve florins", source="web:example.org")
        memory.append_user("work")
        memory.request()
        memory.append_assistant({"content": [call("look", {}, call_id="c1")], "stop_reason": "tool_use"})
        assert memory.recall("the price of the red hat") is None  # its call is open
        memory.append_result("c1", "a box")
        if seen:
            memory.request()
            memory.append_assistant("I see.")
            memory.append_user("go on")
            memory.request()
            assert memory.recall("the price of the red hat") is None
            return
        assert memory.recall("the price of the red hat") == [fact.id]
        assert memory.recall("the price of the red hat") == []  # it is there
        [result] = memory.request().messages[-1]["content"]
        assert [block["text"].split()[0] for block in result["content"]] == ["a", "<recalled>"]
        assert "f1 [via web:example.org]: the red hat" in result["content"][1]["text"]
        [row] = memory.ledger(events=["recall"])
        assert (row.page_id, row.step) == ("f1", "s2")
        last = memory.append_assistant("Twelve.")
        assert "<recalled>" in str(memory.history.rebuild(last))
        assert memory.inspect.step(last).via == ("web:example.org",)
