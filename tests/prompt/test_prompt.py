"""Law 3, call by call: whatever happens between two requests of an epoch, what was sent stays as it was sent.

And law 5: what matters is in the prompt after an eviction, and so is what the model has not seen.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from pager import BlockSpec, Memory
from tests.standin import GrowthWatch, call, thinking
from tests.support import Talk


def edit(memory: Memory) -> None:
    memory.core_append("human", "likes walnuts")


def pin(memory: Memory) -> None:
    memory.page_in(memory.archive("likes walnuts").id, pin=True)


def ask(talk: Talk) -> None:
    talk.ask("hello", "hello")
    talk.memory.append_user("and?")


def answer_call(talk: Talk) -> None:
    talk.ask("hello", "hello")
    talk.ask("look", call("weather", {"city": "Porto"}))
    talk.answer()


@pytest.mark.parametrize("change", [edit, pin])
@pytest.mark.parametrize("speak", [ask, answer_call])
def test_a_change_waits_for_the_next_message_and_stands_in_no_earlier_one(
    tmp_path: Path, speak: Callable[[Talk], None], change: Callable[[Memory], None]
) -> None:
    talk = Talk(tmp_path, core={"human": BlockSpec()})
    speak(talk)
    before = talk.memory.request()
    change(talk.memory)
    assert talk.memory.request() == before, "a message that was sent has grown"
    talk.reply("yes")
    assert "walnuts" not in str(talk.last)
    talk.memory.append_user("go on")
    for _ in range(2):  # from memory, and from the disk
        after = talk.memory.request()
        assert after.epoch == before.epoch
        assert "walnuts" in str(after.messages[-1])
        assert "walnuts" not in str(after.messages[:-1])
        watch = GrowthWatch()
        watch.see({"model": "m", **before.params}, before.epoch)
        watch.see({"model": "m", **after.params}, after.epoch)
        talk.reopen()


def test_a_notice_waits_for_the_next_message_and_stands_in_no_earlier_one(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    while not talk.memory.ledger(events=["notice"]):
        talk.fill(1)
    talk.memory.append_user("and?")
    talk.reopen(instructions="Be long.")  # a new epoch begins above notify_at, and its first request has no notice
    before = talk.memory.request()
    assert talk.memory.limits.notify_tokens < before.tokens < talk.memory.limits.evict_tokens
    assert talk.memory.request() == before, "a message that was sent has grown"
    talk.reply("yes")
    talk.ask("go on")
    assert talk.last
    assert talk.last.epoch == before.epoch
    notice, said = talk.last.messages[-1]["content"]  # a person's question comes last
    assert notice["text"].startswith("<notice>")
    assert said["text"] == "go on"
    assert "<notice>" not in str(talk.last.messages[:-1])


@pytest.mark.parametrize("calls", [True, False])
def test_what_the_model_has_not_seen_stays_whatever_comes_behind_it(tmp_path: Path, calls: bool) -> None:
    talk = Talk(tmp_path, window=10_000)
    talk.fill(1_500)
    if calls:
        talk.ask("look", call("weather", {"city": "Porto"}))
        talk.answer("it rains and it pours " * 80)
    for number in range(8):
        talk.memory.append_user(f"message {number}: " + "and so we went on and on " * 90)
    shown = talk.text
    assert talk.memory.ledger(events=["evict"])
    assert all(f"message {number}" in shown for number in range(8))
    assert ("it rains and it pours" in shown) == calls, "the model called a tool and never sees what it answered"
    talk.reply("I see")


def test_after_an_eviction_what_matters_is_there_and_what_left_is_found(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000, core={"human": BlockSpec()})
    first = talk.memory.append_user("the harbour was grey")
    talk.reply(thinking("hm"), "Yes.")
    talk.memory.page_in(talk.memory.archive("lives in Porto").id, pin=True)
    talk.ask("so?")
    request = talk.memory.append_user("find the hats")
    edit(talk.memory)
    while request not in {move.page_id for move in talk.memory.ledger(events=["evict"])}:
        talk.reply(thinking("where?"), call("weather", {"city": "Porto"}))
        talk.answer("it rains and it pours " * 20)
        talk.memory.request()
    renewed = talk.memory.request()
    core, digest, pinned, _, asked = renewed.messages[0]["content"]
    assert "likes walnuts" in core["text"]
    assert digest["text"].startswith("<digest>")
    assert "the harbour was grey" in digest["text"]
    assert '<pinned page_id="f1">' in pinned["text"]
    assert "lives in Porto" in pinned["text"]
    assert asked["text"] == "find the hats"
    assert not [text for text in ("<core_update", "thinking", "Yes.") if text in str(renewed.messages)]
    assert talk.memory.page_in(first).text == "the harbour was grey"
    assert talk.memory.search_recall("harbour")[0].page_id == first
    talk.reply("Here.")
