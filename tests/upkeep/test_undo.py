"""`undo`: for the prompt, the current facts and core the last turn was never said; on disk it stays."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import BlockSpec, Limits, MemoryReader, Prefetch, RejectedError
from pager.types import Json
from tests.standin import call, thinking
from tests.support.embedders import Words
from tests.support.talk import Talk, strings

CORE = {"human": BlockSpec(value="Dana", limit_tokens=200), "notes": BlockSpec(limit_tokens=200)}
KEYS = ["seat", "city", None]
PAGE_IDS = re.compile(r"\b[fsx]\d+\b")


class Act(NamedTuple):
    """What the agent does with a tool, or a person beside it."""

    what: str
    which: int
    by: str = "agent"


acts = st.builds(
    Act,
    st.sampled_from(
        ["archive", "archive", "repeat", "renew", "forget", "core", "core", "replace", "pin", "unpin", "move"]
    ),
    st.integers(0, 5),
    st.just("agent"),
)
turns = st.lists(st.lists(acts, max_size=4), min_size=1, max_size=3)


def talk(folder: Path, **opening: Any) -> Talk:
    return Talk(folder, core=CORE, **opening)


def act(memory: Any, each: Act) -> None:
    """Do it, if it can be done; a refusal is an answer like any other."""
    number, by = each.which, {"actor": each.by}
    facts = sorted(_current(memory), key=lambda fact: fact.text)
    fact = facts[number % len(facts)] if facts else None
    try:
        if each.what == "archive":
            memory.archive(f"fact number {number}", key=KEYS[number % 3], tags=["travel"], **by)
        elif each.what == "repeat" and fact:
            memory.archive(fact.text, key=fact.key, tags=fact.tags, **by)
        elif each.what == "renew" and fact:
            memory.archive(fact.text, key=fact.key, tags=fact.tags, valid_until=f"2030-01-0{number + 1}", **by)
        elif each.what == "forget" and fact:
            memory.forget(fact.id, "it is over", **by)
        elif each.what == "core":
            memory.core_append("notes", f"line {number}", **by)
        elif each.what == "replace":
            memory.core_replace("notes", f"line {number}", f"note {number}", **by)
        elif each.what == "move":
            memory.move_to_archive("notes", f"line {number}", **by)
        elif each.what == "pin" and fact:
            memory.page_in(fact.id, pin=True, **by)
        elif each.what == "unpin" and fact:
            memory.page_out(fact.id, **by)
    except RejectedError:
        pass


def say(there: Talk, text: str, does: Sequence[Act], *, result: str = "done") -> None:
    """One turn: the agent calls a tool of ours for each act, and one from elsewhere, then it answers."""
    there.memory.append_user(text)
    for number, each in enumerate(does):
        there.reply(thinking("hm"), call("weather", {"city": f"{text} {number}"}))
        act(there.memory, each)
        there.answer(result)
    there.reply(f"Answer to {text}.")


def _current(memory: Any) -> list[Any]:
    return [use.fact for use in memory.inspect.facts("current", limit=1000).rows]


def seen(there: Talk) -> Json:
    """What counts: facts that are true, core, what is pinned, and the messages of the next request."""
    memory = there.memory
    facts = {(fact.text, fact.key, fact.tags, fact.expires, tuple(map(str, fact.sources))) for fact in _current(memory)}
    core = {block.name: (block.value, block.via) for block in memory.core()}
    pinned = {memory.page_text(pin.page_id) for pin in memory._store.prompt.pins()}
    there.reopen(instructions="Be briefer.")  # both begin an epoch
    memory = there.memory
    memory.append_user("And now?")
    said = [PAGE_IDS.sub("#", text) for text in strings(memory.request().messages)]
    pages = iter(sorted(text for text in said if text.startswith("<pinned")))  # one that came back may be the last one
    said = [next(pages) if text.startswith("<pinned") else text for text in said]
    there.reply("Now.")
    there.reopen(instructions="Be brief.")
    return {"facts": facts, "core": core, "pinned": pinned, "said": said}


def sent(there: Talk) -> str:
    """All that the last request said."""
    assert there.last
    return "\n".join(strings(there.last.messages))


@pytest.mark.slow
@settings(max_examples=25)
@given(before=turns, last=turns, data=st.data())
def test_what_was_said_and_withdrawn_was_never_said(
    tmp_path_factory: pytest.TempPathFactory, before: Any, last: Any, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("undo")
    one, other = talk(folder / "one"), talk(folder / "other")
    for there in (one, other):
        for number, does in enumerate(before):
            say(there, f"question {number}", does)
    for number, does in enumerate(last):
        say(one, f"secret {number}", does, result="secret")
    undone = data.draw(st.permutations(["undo"] * len(last) + ["reopen"]))
    for each in undone:
        if each == "reopen":
            one.reopen()
        else:
            one.memory.undo()
    left, never = seen(one), seen(other)
    assert left == never
    assert "secret" not in str(left)
    assert one.memory.check() == []
    one.memory.close()
    other.memory.close()


def test_a_turn_that_is_open_is_withdrawn_and_what_ran_in_it_is_named(tmp_path: Path) -> None:
    there = talk(tmp_path)
    there.ask("Hello", "Hello Dana.")
    there.memory.append_user("Book it")
    there.reply(call("weather", {"city": "Porto"}), call("weather", {"city": "Rome"}))
    begun = there.memory.open_calls[0]
    there.memory.begin_call(begun.id)
    undone = there.memory.undo()
    assert (undone.text, undone.steps, undone.tools) == ("Book it", ("s3", "s4"), ("weather",))
    assert not there.memory.turn_is_open
    assert there.memory.check() == []
    answers = [block["content"] for block in there.memory.history.blocks_of("s4") if block["type"] == "tool_result"]
    assert "may have run" in str(answers[0])
    assert "was withdrawn before this call was run" in str(answers[1])
    there.ask("Bye", "Bye.")
    assert "Book it" not in sent(there)


def test_it_stays_on_disk_but_neither_a_search_nor_a_message_brings_it_back(tmp_path: Path) -> None:
    there = talk(tmp_path, embedder=Words(), prefetch=Prefetch(k=4))
    there.ask("The wedding of Zora is in Porto", "In Porto.")
    there.fill(500)
    there.ask("The wedding of Zora is in Lisbon", "In Lisbon.")
    page = there.memory.undo().steps[0]
    there.reopen(limits=Limits.for_window(4_000))
    there.fill(3_000)
    assert not there.memory.inspect.step("s1").resident
    found = [hit.text for hit in there.memory.search_recall("where is the wedding of Zora?", actor="agent")]
    assert "The wedding of Zora is in Porto" in found
    assert not any("Lisbon" in text for text in found)
    assert not any("Lisbon" in hit.text for hit in there.memory.search_recall("", limit=1000))
    there.memory.append_user("Where is the wedding of Zora?")
    assert "in Porto" in there.text
    assert "Lisbon" not in there.text
    assert there.memory.page_text(page) == "The wedding of Zora is in Lisbon"
    with MemoryReader.open(tmp_path, embedder=None) as reader:
        assert not any("Lisbon" in hit.text for hit in reader.search("wedding Zora Lisbon"))
    assert [row.page_id for row in there.memory.ledger(events=["withdraw"])] == [page, f"s{int(page[1:]) + 1}"]


def test_a_turn_that_has_left_the_window_leaves_the_digest_too(tmp_path: Path) -> None:
    there = talk(tmp_path, window=4_000)
    there.ask("Good morning", "Good morning.")
    there.memory.append_user("Read the secret files")
    for number in range(12):
        there.reply(f"Reading {number}: " + "it is so " * 60, call("weather", {"city": f"secret {number}"}))
        there.answer("secret " * 60)
    there.reply("Read.")
    assert "Read the secret files" in sent(there)
    assert there.memory.ledger(events=["evict"])
    there.memory.undo()
    there.memory.append_user("And now?")
    assert "secret" not in there.text
    assert "Good morning" in there.text


def test_what_a_person_changed_since_stays_and_is_named(tmp_path: Path) -> None:
    there = talk(tmp_path)
    there.memory.archive("window seats", key="seat")
    say(there, "Remember", [Act("core", 1)])
    there.memory.append_user("More")
    there.reply(call("weather", {"city": "Porto"}))
    mine = there.memory.archive("aisle seats", key="seat", actor="agent")
    both = there.memory.archive("lives in Porto", actor="agent")
    there.memory.core_append("notes", "line 2", actor="agent")
    there.memory.core_append("human", "likes trains", actor="agent")
    there.answer()
    there.reply("Done.")
    there.memory.core_append("notes", "line 3")
    there.memory.archive("no seat at all", key="seat")
    there.memory.archive("lives in Porto")
    undone = there.memory.undo()
    assert (undone.facts, undone.restored) == ((mine.id,), ())
    assert (undone.blocks, undone.kept) == (("human",), ("notes",))
    assert {fact.text: tuple(map(str, fact.sources)) for fact in _current(there.memory)} == {
        "no seat at all": ("program",), "lives in Porto": ("program",)
    }  # fmt: skip
    assert there.memory.fact(both.id).forgotten is None
    assert [block.value for block in there.memory.core()] == ["Dana", "line 1\nline 2\nline 3"]


def test_a_fact_ends_again_when_it_did_before_unless_somebody_has_renewed_its_end_since(tmp_path: Path) -> None:
    there = talk(tmp_path)
    there.memory.archive("the pass is 4711", valid_until="2029-05-04")
    there.memory.archive("the wifi is sunflower", key="wifi", valid_until="2029-05-04")
    there.memory.archive("the door is blue")
    before = {fact.id: fact.valid_until for fact in _current(there.memory)}
    for month in ("06", "07"):
        there.memory.append_user(f"They are true until {month}")
        there.reply(call("weather", {"city": "Porto"}))
        for fact in _current(there.memory):
            there.memory.archive(fact.text, key=fact.key, valid_until=f"2029-{month}-01", actor="agent")
        there.answer()
        there.reply("Noted.")
    there.memory.archive("the wifi is rose", key="wifi", actor="agent")
    there.memory.undo()
    june = {fact.id: f"{fact.expires:%m-%d}" for fact in _current(there.memory) if fact.expires}
    assert june == {"f1": "06-02", "f3": "06-02", "f5": "06-02"}  # f5 says again what f2 said
    there.memory.archive("the door is blue", valid_until="2029-12-31")
    there.memory.undo()
    assert there.memory.fact("f1").valid_until == there.memory.fact("f1").expires == before["f1"]
    assert there.memory.fact("f5").expires == before["f2"]
    assert f"{there.memory.fact('f3').expires:%Y-%m-%d}" == "2030-01-01"
    assert [row.page_id for row in there.memory.ledger(page="f1", events=["end"])] == ["f1", "f1"]
    assert there.memory.check() == []


def test_where_nothing_was_said_there_is_nothing_to_withdraw(tmp_path: Path) -> None:
    there = talk(tmp_path)
    there.memory.record("user", "from elsewhere")
    with pytest.raises(RejectedError, match="there is no turn to withdraw"):
        there.memory.undo()
    there.ask("Hello", "Hello.")
    assert there.memory.undo().text == "Hello"
    with pytest.raises(RejectedError, match="there is no turn to withdraw"):
        there.memory.undo()
    there.ask("Good day", "Good day.")
    assert "Hello" not in sent(there)


def test_the_reply_to_a_withdrawn_question_comes_too_late(tmp_path: Path) -> None:
    there = talk(tmp_path)
    there.memory.append_user("Hello")
    there.memory.request()
    there.memory.undo()
    with pytest.raises(RejectedError, match="nothing to send"):
        there.memory.append_assistant("Hello Dana.")
