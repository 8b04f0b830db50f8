"""Whether a page, named by its id, was in a request, and why not: as the residency of pages and the ledger say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.explain.trace import trace
from tests.standin import call
from tests.support import Talk, Words


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path / "agent", window=6_000, embedder=Words())
    yield talk
    talk.memory.close()


def push_out(talk: Talk) -> None:
    talk.fill(6_000)


def test_where_it_stands_is_told_in_a_few_places_and_how_many_more(talk: Talk) -> None:
    for _ in range(5):
        talk.ask("cork", "cork")
    verdict = trace(talk.memory, "cork").verdict
    assert (len(verdict.places), verdict.more_places) == (6, 4)
    assert trace(talk.memory, "s1").verdict.more_places == 0


def test_a_page_by_its_id_is_there_as_long_as_it_is_carried_in_any_way(talk: Talk) -> None:
    """Read by a tool, pinned, behind a message: what `resident` says, `trace` says."""
    talk.memory.archive("a fact about corks " + "in the park " * 700, actor="agent")
    talk.ask("the cork shop", "ok")
    talk.ask("the ferry " + "and on " * 900, "ok")
    push_out(talk)
    part = talk.memory.ledger(events=["spill"])[0].page_id
    assert part
    replies: list[str] = []
    for page, pin in (("s1", False), ("f1", False), (part, False), ("s2", True)):
        talk.ask(f"what was {page}?", call("page_in", {"page_id": page}))
        text = talk.memory.page_in(page, pin=pin, actor="agent").text
        talk.memory.append_result(talk.memory.open_calls[0].id, text, memory_tool=True)
        replies.append(talk.reply("That."))
    talk.memory.page_in("s4", pin=True)
    replies.append(talk.reply("Pinned.") if talk.memory.turn_is_open else talk.ask("and now?", "Yes."))
    push_out(talk)
    replies.append(talk.ask("and then?", "Yes."))
    seen: set[tuple[str, bool]] = set()
    for at in (*replies, None):
        held = {stay.page_id for stay in talk.memory.history.resident(at)}
        for page in ("s1", "s2", "s4", "f1", part):
            verdict = trace(talk.memory, page, at).verdict
            assert verdict.present == (page in held), (page, at, verdict)
            assert bool(verdict.reasons) != verdict.present
            seen.add((page, verdict.present))
    assert {("s1", True), ("s1", False), ("f1", True), ("f1", False), (part, True), (part, False)} <= seen


def test_a_part_of_which_only_the_ends_stay_is_not_there_by_its_id(talk: Talk) -> None:
    talk.ask("what is it?", call("weather", {}))
    talk.answer("and so on " * 2_000)
    reply = talk.reply("Sunny.")
    part = talk.memory.ledger(events=["spill"])[0].page_id
    assert part
    found = trace(talk.memory, part, at=reply).verdict
    assert not found.present
    assert "only its ends stay" in found.reasons[0]
    assert trace(talk.memory, "s2", at=reply).verdict.present


def test_what_looked_at_a_page_before_it_left_did_not_do_so_since(talk: Talk) -> None:
    talk.ask("the cork shop", "ok")
    talk.memory.search_recall("cork shop", actor="agent")
    push_out(talk)
    (why,) = trace(talk.memory, "s1").verdict.reasons
    assert why.endswith("; since then no search has met it, and nothing paged it in.")
    talk.memory.search_recall("cork shop", actor="agent")
    (why,) = trace(talk.memory, "s1").verdict.reasons
    assert "the last search that met it came after" in why


def test_a_search_before_a_fact_was_there_did_not_miss_it(talk: Talk) -> None:
    talk.ask("hello", "hello")
    talk.memory.search_archive("cork shop", actor="agent")
    talk.memory.archive("the cork shop is in Porto", actor="agent")
    assert trace(talk.memory, "f1").verdict.reasons == ("f1 was in the archive, and nothing has asked for it.",)


def test_a_purge_does_not_change_what_a_request_before_it_held(talk: Talk) -> None:
    before = talk.ask("hello", "hello")
    talk.memory.archive("a second secret")
    talk.ask("the secret word", "ok")
    held = talk.ask("and now?", "ok")
    talk.memory.purge("s3")
    talk.memory.purge("f1")
    talk.ask("go on", "ok")
    was = trace(talk.memory, "s3", at=held).verdict
    assert [(place.title, place.page_id) for place in was.places] == [
        ("a step of the conversation, purged since", "s3")
    ]
    assert trace(talk.memory, "s3", at=before).verdict.reasons == ("s3 was only said after that request.",)
    assert trace(talk.memory, "f1", at=held).verdict.reasons == (
        "f1 did not stand there as a page; it was purged since, so its words cannot be looked for.",
    )
    assert trace(talk.memory, "s3").verdict.reasons == ("s3 was purged: its text is gone for good.",)
