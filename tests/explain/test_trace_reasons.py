"""Whether a text or a page was in a request, and why not: as the request, the residencies and the ledger say."""

import json
from collections import Counter

import pytest

from agents.explain.trace import trace
from pager.inspect import normalize_text
from tests.standin import call, thinking
from tests.support import Talk


@pytest.mark.slow
def test_the_verdict_is_what_the_request_holds(talk: Talk) -> None:
    markers = [f"marker {number:03d} x" for number in range(90)]
    replies: list[str] = []
    for number, marker in enumerate(markers):
        replies.append(talk.ask(f"{marker} and so on " + "and on and on " * 12, "ok"))
        if number % 7 == 3:
            talk.memory.core_append("human", f"of {marker}")
    assert len(talk.memory.ledger(events=["epoch"])) > 2
    seen = Counter[bool]()
    for reply in replies[::9]:
        request = normalize_text(json.dumps(talk.memory.history.rebuild(reply)).replace("\\n", " "))
        for marker in markers[::7]:
            verdict = trace(talk.memory, marker, at=reply).verdict
            assert verdict.present == (marker in request), (reply, marker)
            assert bool(verdict.reasons) != verdict.present
            seen[verdict.present] += 1
    assert min(seen[True], seen[False]) > 10


def test_what_came_later_was_not_there_yet(talk: Talk) -> None:
    first = talk.ask("a", "b")
    talk.ask("the cork shop", "ok")
    talk.memory.archive("cork shop in Porto")
    talk.memory.core_append("human", "the cork shop")
    assert trace(talk.memory, "cork shop", at=first).verdict.reasons == (
        "It was only written into the core block \u201chuman\u201d after that request.",
        "f1 was only archived after that request.",
        "s3 was only said after that request.",
    )


def test_a_recorded_message_is_never_in_the_prompt_by_itself(talk: Talk) -> None:
    talk.memory.record("user", "I moved to Porto.", name="Dana", at="2024-05-03T10:00Z")
    found = trace(talk.memory, "moved to Porto")
    assert found.pages[0].events[0].text.startswith("s1 was recorded from elsewhere: Dana said it")
    assert "recorded from elsewhere" in found.verdict.reasons[0]


def test_a_part_that_was_spilled_is_not_in_view_but_its_step_is(talk: Talk) -> None:
    reply = talk.ask("begin " * 600 + "needle " + "end " * 600, "Long.")
    part = talk.memory.ledger(events=["spill"])[0].page_id
    assert part
    for text in ("needle", part):
        verdict = trace(talk.memory, text, at=reply).verdict
        assert not verdict.present
        assert "only its ends stay" in verdict.reasons[0]
        assert part in verdict.reasons[0]
    assert trace(talk.memory, "s1", at=reply).verdict.present


def test_thinking_that_a_new_epoch_dropped_says_so(talk: Talk) -> None:
    reply = talk.ask("which way?", thinking("the cork road is shorter"), "The cork road.")
    assert trace(talk.memory, "road is shorter").verdict.present
    talk.reopen(instructions="Be kind.")
    talk.ask("and now?", "Go on.")
    opened = talk.memory.ledger(events=["epoch"])[-1]
    assert trace(talk.memory, "road is shorter").verdict.reasons == (
        f"{reply} is in the prompt, but without its thinking: the epoch that began after {opened.step} dropped it "
        f"({opened.reason}).",
    )


def test_where_it_stands_is_told_in_a_few_places_and_how_many_more(talk: Talk) -> None:
    for _ in range(5):
        talk.ask("cork", "cork")
    verdict = trace(talk.memory, "cork").verdict
    assert (len(verdict.places), verdict.more_places) == (6, 4)
    assert trace(talk.memory, "s1").verdict.more_places == 0


@pytest.mark.slow
def test_a_page_by_its_id_is_there_as_long_as_it_is_carried_in_any_way(talk: Talk) -> None:
    """Read by a tool, pinned, behind a message: what `resident` says, `trace` says."""
    talk.memory.archive("a fact about corks " + "in the park " * 700, actor="agent")
    talk.ask("the cork shop", "ok")
    talk.ask("the ferry " + "and on " * 900, "ok")
    talk.fill(6_000)
    part = talk.memory.ledger(events=["spill"])[0].page_id
    assert part
    replies: list[str] = []
    for page, pin in (("s1", False), ("f1", False), (part, False), ("s2", True)):
        talk.ask(f"what was {page}?", call("page_in", {"page_id": page}))
        text = talk.memory.page_in(page, pin=pin, actor="agent").text
        talk.memory.append_result(talk.memory.open_calls[0].id, text, memory_tool=True)
        replies.append(talk.reply("That."))
    talk.memory.page_in("s4", pin=True)
    replies.append(talk.ask("and now?", "Yes."))
    talk.fill(6_000)
    replies.append(talk.ask("and then?", "Yes."))
    seen: set[tuple[str, bool]] = set()
    for at in (*replies, None):
        resident = {stay.page_id for stay in talk.memory.history.resident(at)}
        for page in ("s1", "s2", "s4", "f1", part):
            verdict = trace(talk.memory, page, at).verdict
            assert verdict.present == (page in resident), (page, at, verdict)
            assert bool(verdict.reasons) != verdict.present
            seen.add((page, verdict.present))
    assert {(page, present) for page in ("s1", "f1", part) for present in (True, False)} <= seen


def test_what_looked_at_a_page_before_it_left_did_not_do_so_since(talk: Talk) -> None:
    talk.ask("the cork shop", "ok")
    talk.memory.search_recall("cork shop", actor="agent")
    talk.fill(6_000)
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
    after = talk.ask("and now?", "ok")
    for page in ("s3", "f1"):
        talk.memory.purge(page)
    talk.ask("go on", "ok")
    [place] = trace(talk.memory, "s3", at=after).verdict.places
    assert (place.title, place.page_id) == ("a step of the conversation, purged since", "s3")
    assert trace(talk.memory, "s3", at=before).verdict.reasons == ("s3 was only said after that request.",)
    unknown = "f1 did not stand there as a page; it was purged since, so its words cannot be looked for."
    assert trace(talk.memory, "f1", at=after).verdict.reasons == (unknown,)
