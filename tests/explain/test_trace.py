"""The life of a text: its events in order, what a search meant for it, and what there is in place of what is not."""

import io
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from rich.console import Console

from agents.cli.drawing import drawn_trace
from agents.explain.trace import Trace, trace
from agents.explain.trace_events import TraceEvent
from pager import Prefetch, SkillSpec
from tests.standin import call
from tests.support import Broken, Talk, Words

Form = Literal["NFC", "NFD"]


def told(found: Trace) -> list[TraceEvent]:
    """All its events, oldest first."""
    events = [event for life in found.pages for event in life.events]
    return sorted([*events, *found.searches[::-1]], key=lambda event: event.at)


def events(found: Trace) -> list[tuple[str, str | None]]:
    return [(event.event, event.page_id) for event in told(found)]


def pages(found: Trace) -> list[str | None]:
    return [life.page_id or life.block for life in found.pages]


def sentence(found: Trace, event: str) -> str:
    return next(each.text for each in told(found) if each.event == event)


def test_what_was_said_and_evicted_says_by_whom_when_and_why(talk: Talk) -> None:
    talk.memory.append_user("The cork shop is\nin Porto.", name="Dana")
    reply = talk.reply("Noted.")
    talk.fill(6_000)
    found = trace(talk.memory, "CORK  shop is in porto")
    evicted = talk.memory.ledger(page="s1", events=["evict"])[0]
    assert pages(found) == ["s1"]
    assert events(found)[:2] == [("said", "s1"), ("evict", "s1")]
    assert sentence(found, "said") == "Dana said it, in s1: \u201cThe cork shop is in Porto.\u201d"
    assert sentence(found, "evict") == f"s1 left the prompt with {evicted.tokens} tokens, because {evicted.reason}."
    assert (told(found)[1].step, found.verdict.present) == (evicted.step, False)
    assert f"s1 had left the prompt after {evicted.step}, because {evicted.reason}" in found.verdict.reasons[0]
    assert trace(talk.memory, "cork shop", at=reply).verdict.present


def test_a_page_that_was_paged_in_again_is_there_again(talk: Talk) -> None:
    talk.ask("the cork shop", "ok")
    talk.fill(6_000)
    talk.ask("what did I say?", call("page_in", {"page_id": "s1"}))
    page = talk.memory.page_in("s1", actor="agent")
    talk.memory.append_result(talk.memory.open_calls[0].id, page.text, memory_tool=True)
    reply = talk.reply("The cork shop.")
    found = trace(talk.memory, "the cork shop", at=reply)
    assert [(place.part, place.title) for place in found.verdict.places][-1] == ("steps", "result of page_in")
    assert sentence(found, "page_in").startswith("The agent paged s1 in")
    others = [event.page_id for event in told(found) if event.event == "said" and event.page_id != "s1"]
    assert others == [reply], "the result of our own tool is no place of its own"


def test_a_fact_is_archived_superseded_and_forgotten(talk: Talk) -> None:
    talk.ask("hello", "hello")
    talk.memory.archive("prefers window seats", key="seat", actor="agent")
    talk.memory.archive("prefers aisle seats", key="seat", actor="agent")
    old, new = trace(talk.memory, "window seats"), trace(talk.memory, "f2")
    assert events(old) == [("archive", "f1"), ("supersede", "f1")]
    assert "superseded by f2, which says \u201cprefers aisle seats\u201d" in sentence(old, "supersede")
    assert old.verdict.reasons == ("f1 had been superseded by f2 after s2.",)
    assert "it superseded f1" in sentence(new, "archive")
    talk.memory.forget("f2", "the operation is over")
    new = trace(talk.memory, "aisle seats")
    assert sentence(new, "forget") == "A person ended the fact f2: the operation is over."
    assert "f2 had ended: a person said after s2: the operation is over" in new.verdict.reasons[0]


def test_a_text_enters_and_leaves_a_core_block(talk: Talk) -> None:
    talk.ask("hello", "hello")
    talk.memory.core_append("human", "lives in Porto", actor="agent")
    talk.ask("and?", "so")
    talk.memory.core_replace("human", "lives in Porto", "lives in Lisbon")
    found = trace(talk.memory, "lives in Porto")
    block = "the core block \u201chuman\u201d"
    assert [(life.page_id, life.block) for life in found.pages] == [(None, "human")]
    assert [(event.step, event.text) for event in told(found)] == [
        ("s2", f"The agent wrote it into {block} (version 2)."),
        ("s4", f"A person took it out of {block} (version 3)."),
    ]
    assert found.verdict.reasons == (f"It stood in {block} until a person changed that after s4.",)
    since = f"It stands in {block} since version 3, which the prompt has not shown yet."
    assert trace(talk.memory, "lives in Lisbon").verdict.reasons == (since,)
    shown = talk.ask("where?", "there")
    assert [place.part for place in trace(talk.memory, "lives in Lisbon", at=shown).verdict.places] == ["core"]


def test_a_search_tells_rank_score_and_by_how_much_it_missed(talk: Talk) -> None:
    for number in range(6):
        talk.memory.archive(f"seat {number} by the window")
    talk.memory.search_archive("window seat", limit=2, actor="agent")
    detail = talk.memory.ledger(events=["search"])[0].detail
    (best, *_), second, third = *detail["found"], detail["missed"][0]
    assert "came back 1st of 2 (score" in sentence(trace(talk.memory, best), "search")
    missed = trace(talk.memory, third[0])
    said = sentence(missed, "search")
    assert [event.found for event in missed.searches] == [False]
    assert f"{third[0]} was missed: 3rd, with 2 asked for, {second[1] - third[1]:.2f} below" in said
    assert f"(score {third[1]:.2f} = " in said
    assert said.removesuffix(".") in missed.verdict.reasons[0]


def test_a_search_without_its_embedder_says_so(tmp_path: Path) -> None:
    talk = Talk(tmp_path, embedder=Broken())
    talk.memory.archive("prefers window seats")
    talk.memory.search_archive("window", limit=2)
    said = sentence(trace(talk.memory, "prefers window seats"), "search")
    assert "came back 1st of 1" in said
    assert "words alone answered, for the embedder had failed (the weights are missing; install them)" in said


def test_a_search_in_its_words_that_brought_others_is_told(talk: Talk) -> None:
    for number in range(9):
        talk.memory.archive("the window seat", valid_from=f"2026-01-0{number + 1}")
    talk.memory.search_archive("window seat", limit=2)
    oldest = trace(talk.memory, "f1")
    assert "it was not among the 5 best" in sentence(oldest, "search")
    talk.memory.archive("the window seat is booked")
    assert trace(talk.memory, "f10").searches == (), "it came later"


def test_other_searches_are_not_told(talk: Talk) -> None:
    talk.memory.archive("two cats")
    for query in ("window seat", "cats", "weather in Porto"):
        talk.memory.search_recall(query)
    searched = [event.text for event in trace(talk.memory, "two cats").searches]
    assert searched == ["A person searched the conversation for \u201ccats\u201d: nothing came back."]


def test_a_recalled_fact_says_so(tmp_path: Path) -> None:
    talk = Talk(tmp_path, embedder=Words(), prefetch=Prefetch(k=1))
    talk.memory.archive("prefers window seats")
    reply = talk.ask("which window seats do I like?", "These.")
    found = trace(talk.memory, "prefers window seats", at=reply)
    assert sentence(found, "recall").startswith(
        "f1 was put behind the user's message unasked, for s1: the nearest page has a "
    )
    row = talk.memory.ledger(events=["recall"])[0].detail
    assert row["value"] >= row["needed"]
    assert round(sum(row["parts"].values()), 3) == round(row["score"], 3)
    assert [place.part for place in found.verdict.places] == ["recalled"]


def test_what_nothing_holds_says_so_and_names_what_is_near(talk: Talk) -> None:
    talk.memory.archive("two cats")
    found = trace(talk.memory, "cats and dogs")
    assert not found.known
    assert found.verdict.reasons == ("Nothing holds these words: nobody has said them, and no tool brought them.",)
    assert [near.page_id for near in found.near] == ["f1"]


def test_a_page_that_there_is_not_says_which_there_are(talk: Talk) -> None:
    def reason(text: str) -> str:
        found = trace(talk.memory, text)
        assert (found.known, found.near) == (False, ())
        return " ".join(found.verdict.reasons)

    assert reason("f9") == "There is no fact \u201cf9\u201d: there are none yet."
    assert reason("x9") == "There is no part \u201cx9\u201d; of those that were too large none was spilled yet."
    talk.memory.archive("two cats")
    assert reason("f9") == "There is no fact \u201cf9\u201d: the last one is f1."
    talk.ask("begin " * 900, "Long.")
    spilled = talk.memory.ledger(events=["spill"])[0].page_id
    assert reason(" s9 ") == "There is no step \u201cs9\u201d: the last one is s2."
    assert reason("x9") == f"There is no part \u201cx9\u201d; of those that were too large the last ones are {spilled}."
    talk.memory.append_user("flight f9 is late")
    assert trace(talk.memory, "f9").pages[0].page_id == "s3"


def test_a_purged_page_keeps_its_tombstone_and_nothing_else(talk: Talk) -> None:
    talk.memory.archive("the secret word")
    talk.memory.append_user("the other secret")
    for page in ("f1", "s1"):
        talk.memory.purge(page)
        found = trace(talk.memory, page)
        assert ("purge", page) in events(found)
        assert "secret" not in str(found)
        assert found.verdict.reasons == (f"{page} was purged: its text is gone for good.",)


@pytest.mark.parametrize(
    "text",
    [
        'quote " and \\ back', "İSTANBUL'DA ğ", "日本の旅", "100% of_it", "a\tb\nc", "<script>", "café São", "가나다",
        "がっこう", "ẹ̀kọ́", "ÉCOLE",
    ],
)  # fmt: skip
@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_any_text_is_found_however_it_was_typed(talk: Talk, text: str, forms: tuple[Form, Form]) -> None:
    written, asked = (unicodedata.normalize(form, text) for form in forms)
    talk.memory.append_user(f"x {written} y")
    talk.memory.archive(f"x {written} y")
    talk.memory.core_append("human", f"x {written} y")
    found = trace(talk.memory, asked)
    assert pages(found) == ["s1", "human", "f1"], "first what is in the prompt"
    shown = " ".join(f"x {text} y".split())
    assert unicodedata.normalize(forms[0], shown) in unicodedata.normalize(forms[0], sentence(found, "said"))
    for other in (f"{asked}z", unicodedata.normalize("NFC", text)[:-1] + "q"):
        assert trace(talk.memory, other).known is False


@pytest.mark.parametrize("text", ['return "forty two"', "def f(): return", "C:\\new"])
def test_what_stands_in_the_input_of_a_call_is_found_as_it_reads(talk: Talk, text: str) -> None:
    talk.ask("go", call("write", {"code": 'def f():\n    return "forty two"\n# C:\\new\n'}))
    found = trace(talk.memory, text)
    assert (found.verdict.present, pages(found)) == (True, ["s2"])


def test_a_search_for_something_else_did_not_miss_what_it_ranked_low(talk: Talk) -> None:
    for fact in ("the cork shop has a green door", "the ferry leaves at nine", "the weather was fine in May"):
        talk.memory.archive(fact)
    talk.memory.search_archive("when does the ferry leave?", limit=1, actor="agent")
    assert "f1" in {page for page, *_ in talk.memory.ledger(events=["search"])[0].detail["missed"]}
    assert trace(talk.memory, "green door").searches == ()
    assert trace(talk.memory, "f1").verdict.reasons == ("f1 was in the archive, and nothing has asked for it.",)


def test_pages_come_in_the_prompt_first_then_the_newest_each_with_its_own_life(talk: Talk) -> None:
    talk.memory.archive("the cork shop is closed", key="shop")
    talk.ask("the cork shop", "ok")
    talk.fill(6_000)
    talk.ask("the cork shop again", "ok")
    talk.memory.archive("the cork shop is open", key="shop")
    newest = talk.memory.inspect.steps(1, 1).rows[0].page_id
    found = trace(talk.memory, "cork shop")
    assert pages(found) == [newest, "f2", "s1", "f1"]
    assert [life.present for life in found.pages] == [True, False, False, False]
    assert all(event.page_id == life.page_id for life in found.pages for event in life.events)
    some = trace(talk.memory, "cork shop", limit=2)
    assert (pages(some), some.more_pages) == ([newest, "f2"], 2)


def test_a_phrase_that_stands_everywhere_is_told_on_two_screens(talk: Talk) -> None:
    with talk.memory.transaction():
        talk.memory.record_many({"role": "user", "text": f"on day {number} we met Dora"} for number in range(5_000))
    for number in range(30):
        talk.ask(f"where did we meet Dora on day {number}?", "In Porto. " * 40)
        talk.memory.search_recall("met Dora", limit=3, actor="agent")
    found = trace(talk.memory, "Dora")
    assert found.verdict.present
    assert (found.more_pages, found.uncounted, len(found.searches)) == (95, True, 5)
    assert found.more_searches == 25
    lines = io.StringIO()
    Console(file=lines, width=100).print(drawn_trace(found))
    assert len(lines.getvalue().splitlines()) <= 2 * 24


def test_a_skill_is_a_page_like_others(talk: Talk) -> None:
    talk.reopen(skills=(SkillSpec("trips", "Plan a trip.", "Ask for the dates first."),))
    found = trace(talk.memory, "k1")
    assert (pages(found), found.known, found.near) == (["k1"], True, ())
    assert found.verdict.reasons == (
        "k1 is a skill whose text no tool has read, or whose reading has left the prompt.",
    )
    talk.ask("plan it", call("page_in", {"page_id": "k1"}))
    text = talk.memory.page_in("k1", actor="agent").text
    talk.memory.append_result(talk.memory.open_calls[0].id, text, memory_tool=True)
    found = trace(talk.memory, "k1", at=talk.reply("When?"))
    assert (found.verdict.present, events(found)[0]) == (True, ("page_in", "k1"))
    assert trace(talk.memory, "k9").verdict.reasons[0].startswith("There is no skill")
