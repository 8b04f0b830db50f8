"""What a process said before it died, held against what its memory says afterwards.

witness = Witness()
witness.hear(life.said)
witness.judge(memory)       # nothing acknowledged is lost, nothing is half done, nothing happened twice
goes_on(memory)             # and the next request is valid
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from pager import Fact, Memory
from pager.types import Json, number_of
from tests.crash.load import open_memory, standin
from tests.standin import Reply
from tests.support.talk import database_of

Line = list[Any]


class Witness:
    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self.replies: dict[str, list[str]] = {}
        self.results: dict[str, str] = {}
        self._by_id: dict[str, dict[str, Any]] = {
            "page": self.pages, "fact": self.facts, "reply": self.replies, "result": self.results,
        }  # fmt: skip
        self.said: dict[str, set[str]] = defaultdict(set)  # begun, forgotten, core, dropping, moving, pinned
        self.left: list[tuple[str, str]] = []
        self._judged = 0  # facts up to here were looked for

    def hear(self, lines: list[Line]) -> None:
        for kind, *what in lines:
            if kind in self._by_id:
                self._by_id[kind][what[0]] = what[1]
            elif kind == "unpinning":
                self.said["pinned"].discard(what[0])
            elif kind == "left":
                self.left.append((what[1], what[2]))
            elif what and isinstance(what[0], str):
                self.said[kind].add(what[0])

    # judging

    def judge(self, memory: Memory) -> None:
        assert memory.check() == []
        self._judge_conversation(memory)
        self._judge_core(memory)
        self._judge_facts(memory)
        while memory.embed_pending():
            pass
        assert memory.count_unembedded() == 0
        memory.process_inbox()
        if not memory.open_calls:
            self._judge_inbox(memory)

    def _judge_conversation(self, memory: Memory) -> None:
        for page, text in self.pages.items():
            assert memory.page_text(page) == text
        open_calls = {each.id: each for each in memory.open_calls}
        assert len({each.step for each in open_calls.values()}) <= 1, "calls are open in two steps"
        calls, results = _blocks(memory, "tool_use"), _results(memory)
        for page, ids in self.replies.items():
            assert [block["id"] for block in memory.history.blocks_of(page) if block["type"] == "tool_use"] == ids
        for block in calls:
            assert (block["id"] in open_calls) != (block["id"] in results), (
                f"{block['id']} is neither open nor answered"
            )
        for each in self.said["begun"] & open_calls.keys():
            assert open_calls[each].begun
        for each, text in self.results.items():
            assert results[each].startswith(text)
        facts = {fact.text for fact in _all_facts(memory)}
        for block in calls:
            if block["name"] == "archive":  # exactly once: the effect is there if and only if the result is
                assert (block["input"]["text"] in facts) != (block["id"] in open_calls)

    def _judge_core(self, memory: Memory) -> None:
        lines = "\n".join(block.value for block in memory.core()).splitlines()
        facts = {fact.text for fact in _all_facts(memory)}
        for line in self.said["core"]:
            places = lines.count(line) + (line in facts)
            assert places == 1 or (places == 0 and line in self.said["dropping"]), f"{line!r} stands in {places} places"
            assert line in lines or line in self.said["moving"] | self.said["dropping"]

    def _judge_facts(self, memory: Memory) -> None:
        """Acknowledged or not: what is committed is found, by meaning and by words, when it was true."""
        for page, text in self.facts.items():
            assert memory.fact(page).text == text
        for page in self.said["forgotten"]:
            assert memory.fact(page).forgotten is not None
        for page in self.said["pinned"]:
            assert page in [pin.page_id for pin in memory._store.prompt.pins()]
        facts = _all_facts(memory)
        assert len({fact.text for fact in facts}) == len(facts), "a fact was stored twice"
        for fact in facts:
            if number_of(fact.id) > self._judged:
                assert_found(memory, fact)
        self._judged = max((number_of(fact.id) for fact in facts), default=0)

    def _judge_inbox(self, memory: Memory) -> None:
        facts = [fact.text for fact in _all_facts(memory)]
        notes = "\n".join(block.value for block in memory.core()).splitlines()
        refused = [each for each in memory.ledger(events=["command"]) if each.reason.startswith("refused")]
        for kind, text in self.left:
            if kind == "message":
                exact = [hit for hit in memory.search_recall(text.split()[0], limit=3) if hit.text == text]
                assert len(exact) == 1
            elif kind == "archive":
                assert facts.count(text) == 1
            else:
                assert notes.count(text) == 1 or (refused and text not in notes)  # the block is full at last
        assert not list((database_of(memory).path.parent / "inbox").glob("*.json"))


def assert_found(memory: Memory, fact: Fact) -> None:
    hits = memory.search_archive(fact.text, as_of=fact.valid_from, limit=3)
    (found,) = [hit for hit in hits if hit.page_id == fact.id]
    assert found.parts.get("words", 0) > 0, f"{fact.id} is not found by its words"
    if memory._tiers.archive.vectors is not None:
        assert (found.cosine or 0) > 0, f"{fact.id} is not found by its meaning"


def _all_facts(memory: Memory) -> list[Fact]:
    return [fact for fact in memory.inspect.newest_facts(100_000) if not fact.purged]


def _blocks(memory: Memory, kind: str) -> list[Json]:
    rows = database_of(memory).rows("SELECT block FROM parts WHERE kind = 'said' ORDER BY id")
    return [block for block in (json.loads(row["block"]) for row in rows) if block["type"] == kind]


def _results(memory: Memory) -> dict[str, str]:
    blocks = _blocks(memory, "tool_result")
    found = {each["tool_use_id"]: "".join(inner["text"] for inner in each.get("content", [])) for each in blocks}
    assert len(found) == len(blocks), "a call was answered twice"
    return found


def goes_on(memory: Memory) -> None:
    """Go on as an agent does: calls that had begun are answered, and every request is valid."""
    begun = [each.id for each in memory.open_calls if each.begun]
    assert memory.answer_interrupted() == begun
    for each in memory.open_calls:
        assert not each.begun
        with memory.transaction():
            if each.name == "archive":
                memory.archive(each.input["text"], key=each.input["key"])
            memory.append_result(each.id, "run after the crash")
    if not memory.turn_is_open:
        memory.append_user("go on")
    message = standin().create({"model": "m", **memory.request().params}, Reply("I am back."))
    memory.append_assistant(message)
    assert memory.check() == []
    memory.append_user("and on")
    memory.append_assistant(standin().create({"model": "m", **memory.request().params}))


def judge_after_death(directory: Path, witness: Witness, *, life: int, **changes: Any) -> None:
    with open_memory(directory, life=life, **changes) as memory:
        witness.judge(memory)
        goes_on(memory)
        witness.judge(memory)
