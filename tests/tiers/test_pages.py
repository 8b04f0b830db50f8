"""Pages by their id: read verbatim in pieces that fit, kept in the prompt by pins, moved out of core."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import BlockSpec, Limits, Memory, NotFoundError, PageText, RejectedError, tokens
from tests.standin import Standin, call, thinking
from tests.support import Talk
from tests.support.messages import image

LONG = " ".join(f"word{number} and so on, über {number * 37};" for number in range(900))
TEXTS = st.text(min_size=1, max_size=400).flatmap(
    lambda some: st.integers(1, 60).map(lambda times: some * times)
) | st.sampled_from([LONG, "日本語の文章です。" * 300, "👩‍👩‍👧‍👦" * 400, "a" * 9_000, "\0\n <core>" * 500])  # fmt: skip


def read_on(memory: Memory, page_id: str) -> list[PageText]:
    pieces = [memory.page_in(page_id)]
    while pieces[-1].next_offset is not None:
        pieces.append(memory.page_in(page_id, offset=pieces[-1].next_offset))
    return pieces


@pytest.mark.slow
@given(text=TEXTS)
@settings(max_examples=25)
def test_pieces_put_together_are_the_page_and_none_is_larger_than_a_part(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    with Memory.open(tmp_path_factory.mktemp("m"), embedder=None, limits=Limits.for_window(6_000)) as memory:
        step = memory.record("user", text)
        pieces = read_on(memory, step)
        assert "".join(piece.text for piece in pieces) == text == memory.page_text(step)
        limit = memory.limits.max_part_tokens
        for piece in pieces:
            assert memory._window.counter.tokens(tokens.count(piece.text)) <= limit
            assert (piece.page_id, piece.length) == (step, len(text))
        assert [piece.offset for piece in pieces[1:]] == [piece.next_offset for piece in pieces[:-1]]


def test_a_spilled_part_is_read_verbatim_from_where_it_was_cut(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    talk.memory.append_user(LONG)
    talk.reply("Long.")
    page = talk.memory.ledger(events=["spill"])[-1].page_id
    assert page
    assert "".join(piece.text for piece in read_on(talk.memory, page)) == LONG
    shown = talk.standin.requests[-1]["messages"][0]["content"][0]["text"]
    offset = int(shown.split("offset ")[1].split(".")[0])
    assert shown.startswith(LONG[:offset] + "\n<spilled ")
    assert talk.memory.page_in(page, offset=offset).text in LONG[offset:]


def test_a_step_reads_as_its_texts_and_calls_and_results(talk: Talk) -> None:
    step = talk.ask("look", thinking("private"), "I look.", call("weather", {"city": "Évora"}))
    talk.answer("sunny")
    page = talk.memory.page_in(step).text
    assert page.startswith('I look.\nweather {"city": "Évora"}\nsunny (toolu_')
    assert "private" not in page


def test_what_a_memory_tool_answers_is_never_spilled(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    fact = talk.memory.archive(LONG)
    talk.ask("read", call("page_in", {"page_id": fact.id}))
    piece = talk.memory.page_in(fact.id, actor="agent")
    talk.memory.append_result(talk.memory.open_calls[0].id, piece.text, memory_tool=True)
    talk.reply("Long.")
    assert piece.text in talk.standin.requests[-1]["messages"][-1]["content"][0]["content"][0]["text"]
    assert not talk.memory.ledger(events=["spill"])


@pytest.mark.parametrize(
    ("page_id", "why"),
    [("f9", "no fact 'f9'"), ("s9", "no step 's9'"), ("x9", "no page 'x9'"), ("q1", "f fact, s step"),
     ("", "not a page id"), ("f", "not a page id"), ("f-1", "not a page id"), ("f1.5", "not a page id"),
     ("f²", "not a page id"), ("f" + "9" * 30, "not a page id")],
)  # fmt: skip
def test_a_page_that_does_not_exist_is_refused_with_the_forms_that_do(memory: Memory, page_id: str, why: str) -> None:
    for act in (memory.page_in, memory.page_text):
        with pytest.raises(NotFoundError, match=why):
            act(page_id)


@pytest.mark.parametrize("offset", [-1, 6, 10**9])
def test_an_offset_outside_of_the_page_is_refused_with_its_length(memory: Memory, offset: int) -> None:
    fact = memory.archive("apple")
    with pytest.raises(RejectedError, match=rf"offset {offset} is outside of f1, which has 5 characters"):
        memory.page_in(fact.id, offset=offset)
    assert memory.page_in(fact.id, offset=5).text == ""


def test_a_page_that_is_resident_is_answered_with_its_place(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    step = talk.memory.append_user("good day")
    talk.reply("good day")
    fact = talk.memory.archive("has two cats")
    assert "as a step" in talk.memory.page_in(step).where
    assert talk.memory.page_in(fact.id).where == ""
    talk.memory.page_in(fact.id, pin=True)
    assert "pinned" in talk.memory.page_in(fact.id).where
    talk.memory.page_in(step, pin=True)
    assert talk.memory.page_in(step).where
    talk.fill(9_000)
    assert "pinned" in talk.memory.page_in(step).where
    talk.memory.page_out(step)
    talk.memory.page_out(fact.id)
    assert talk.memory.page_in(step).where == talk.memory.page_in(fact.id).where == ""


def test_the_open_request_that_was_evicted_is_still_in_view(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    step = talk.memory.append_user("good day")
    while not any(stay.how == "request" for stay in talk.memory.history.resident()):
        talk.reply(call("weather", {"city": "Porto"}))
        talk.answer("it rains and it pours " * 20)
        talk.memory.request()
    assert "the request that opens" in talk.memory.page_in(step).where
    talk.reply("Done.")


# pins


def _blocks(talk: Talk) -> list[str]:
    return [str(b.get("text", "")) for message in talk.standin.requests[-1]["messages"] for b in message["content"]]


def test_pins_share_a_fifth_of_the_window(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)  # 1,200 tokens for pins, 750 for a part
    one, two = talk.memory.archive(LONG), talk.memory.archive(LONG[::-1])
    talk.memory.page_in(one.id, pin=True)
    share = r"pinned pages share 1200 and \d+ are taken by f1 \(\d+\)\. Page one out first"
    with pytest.raises(RejectedError, match=share):
        talk.memory.page_in(two.id, pin=True)
    assert [pin.page_id for pin in talk.memory._store.prompt.pins()] == [one.id]
    assert [move.event for move in talk.memory.ledger(page=two.id)] == ["archive"]
    talk.memory.page_in(one.id, pin=True)  # again: the same room
    talk.memory.page_in(one.id, pin=True, offset=5_000)
    talk.memory.page_out(one.id)
    talk.memory.page_in(two.id, pin=True)
    assert not talk.memory.check()


def test_one_pin_that_is_too_large_for_a_smaller_window_takes_no_other_along(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=60_000)
    for text in ("lives in Porto", "has two cats", "line of a long fact " * 500):
        talk.memory.page_in(talk.memory.archive(text).id, pin=True)
    talk.ask("hello")
    talk.reopen(limits=Limits.for_window(8_000))
    assert sorted(pinned(talk)) == ["f1", "f2", "f3"]
    talk.ask("hello")
    assert sorted(pinned(talk)) == ["f1", "f2"]
    assert "smaller window" in talk.memory.ledger(events=["unpin"])[0].reason


def test_a_pin_follows_its_fact(talk: Talk) -> None:
    old = talk.memory.archive("lives in Porto", key="home")
    talk.memory.page_in(old.id, pin=True)
    talk.ask("hello", "hello")
    new = talk.memory.archive("lives in Faro", key="home")
    assert [pin.page_id for pin in talk.memory._store.prompt.pins()] == [new.id]
    assert pinned(talk) == [old.id]  # its text stays in the prompt until an epoch opens
    talk.ask("and?", "yes")
    assert pinned(talk) == [old.id, new.id]
    assert "lives in Faro" in _blocks(talk)[-2]
    talk.memory.forget(new.id, "moved away")
    assert not talk.memory._store.prompt.pins()
    talk.reopen(instructions="Be long.")
    talk.ask("and?", "yes")
    assert pinned(talk) == []
    assert "superseded" in talk.memory.history.residencies(old.id)[-1].reason
    assert "forgotten" in talk.memory.history.residencies(new.id)[-1].reason
    assert not talk.memory.check()


def pinned(talk: Talk, at: str | None = None) -> list[str]:
    """What is in the prompt as a pin, which is not yet what waits and still what was paged out."""
    return [stay.page_id for stay in talk.memory.history.resident(at) if stay.how == "pinned"]


def test_a_page_that_is_paged_out_is_resident_while_its_text_stands_in_the_prompt(talk: Talk) -> None:
    fact = talk.memory.archive("lives in Porto")
    talk.memory.page_in(fact.id, pin=True)
    assert pinned(talk) == []
    talk.ask("hello", "hello")
    talk.memory.page_out(fact.id)
    assert not talk.memory.page_in(fact.id).where  # it is about to go
    talk.ask("and?", "yes")
    talk.reopen(instructions="Be long.")
    talk.ask("and now?", "yes")
    for step in ("s2", "s4", "s6"):
        shown = f'<pinned page_id=\\"{fact.id}\\">' in json.dumps(talk.memory.history.rebuild(step))
        assert (pinned(talk, step) == [fact.id]) == shown == (step != "s6")
    [stay] = talk.memory.history.residencies(fact.id)
    assert (stay.from_step, stay.until_step, stay.reason) == ("s1", "s5", "paged out")
    assert not talk.memory.check()


def test_a_pin_that_was_made_while_the_model_answered_counts_from_the_next_request(talk: Talk) -> None:
    fact = talk.memory.archive("lives in Porto")
    talk.memory.append_user("hello")
    talk.memory.request()
    talk.memory.page_in(fact.id, pin=True)
    assert not talk.memory.check()
    talk.memory.append_assistant("hello")
    assert pinned(talk, "s2") == pinned(talk) == []
    talk.ask("and?", "yes")
    assert (pinned(talk, "s2"), pinned(talk, "s4")) == ([], [fact.id])
    assert not talk.memory.check()


def test_a_fact_is_stored_also_when_its_pin_does_not_fit_any_more(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    for _ in range(2):
        talk.memory.page_in(talk.memory.archive(LONG).id, pin=True)
    short = talk.memory.archive("lives in Porto", key="home")
    talk.memory.page_in(short.id, pin=True)
    long = talk.memory.archive("lives in Faro. " + LONG, key="home")
    assert long.supersedes == short.id
    assert short.id not in {stay.page_id for stay in talk.memory.history.resident()}
    assert not talk.memory.check()
    talk.ask("hello", "hello")


def test_paging_out_what_is_not_pinned_is_refused_with_what_is(memory: Memory) -> None:
    fact = memory.archive("has two cats")
    with pytest.raises(NotFoundError, match="f1 is not pinned; nothing is pinned"):
        memory.page_out(fact.id)
    memory.page_in(fact.id, pin=True)
    with pytest.raises(NotFoundError, match="f7 is not pinned; pinned are f1"):
        memory.page_out("f7")
    with pytest.raises(NotFoundError, match="not a page id"):
        memory.page_out("human")


def test_a_pin_that_was_made_and_undone_before_anybody_saw_it_says_nothing(talk: Talk) -> None:
    fact = talk.memory.archive("has two cats")
    talk.ask("hello", "hello")
    talk.memory.page_in(fact.id, pin=True)
    talk.memory.page_out(fact.id)
    talk.ask("and?", "yes")
    assert "two cats" not in str(talk.standin.requests[-1])


def test_text_moves_from_core_to_the_archive_in_one_piece(tmp_path: Path) -> None:
    core = {"human": BlockSpec(), "rules": BlockSpec(value="be kind", read_only=True)}
    with Memory.open(tmp_path, embedder=None, core=core) as memory:
        memory.core_append("human", "has two cats")
        memory.core_append("human", "lives in Porto")
        fact = memory.move_to_archive("human", "has two cats", key="cats", tags=["pets"])
        assert (fact.text, fact.key, fact.tags) == ("has two cats", "cats", ("pets",))
        assert memory.core()[0].value == "lives in Porto"
        refused = {
            ("human", "a dog"): "is not in the block",
            ("rules", "be kind"): "read-only",
            ("x", "a"): "no core block",
        }
        for (block, text), why in refused.items():
            with pytest.raises(RejectedError, match=why):
                memory.move_to_archive(block, text)
        assert [each.id for each in memory.inspect.newest_facts()] == [fact.id]
        assert memory.core()[0].value == "lives in Porto"


@pytest.mark.slow
def test_an_image_stays_while_it_fits_and_is_paged_in_as_it_came(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=20_000, standin=Standin(limit_tokens=20_000, ratios={"media": 1.0}))
    shown = image(1_500)
    talk.memory.append_user([{"type": "text", "text": "look"}, shown])
    talk.reply("a harbour")
    assert talk.memory.limits.max_part_tokens < 3_000
    assert "image" in str(talk.last)
    talk.fill(20_000)
    page = talk.memory.page_in("s1")
    assert (page.text, page.media) == ("look\n", (shown,))
    assert talk.memory.page_in("s1", offset=1).media == ()


def test_of_an_image_that_the_window_cannot_hold_the_id_says_what_it_is(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=5_000)
    shown = image(2_500)
    talk.memory.append_user([{"type": "text", "text": "look"}, shown])
    assert '<spilled page_id="x2" characters="0" holds="image"/>' in talk.text
    assert talk.memory.page_in("x2").media == (shown,)
    talk.reply("I cannot see it")


def test_an_image_cannot_be_pinned(talk: Talk) -> None:
    talk.memory.append_user([image(1_000)])
    with pytest.raises(RejectedError, match="only text can be pinned"):
        talk.memory.page_in("x1", pin=True)


@pytest.mark.parametrize("inside", ["words and words " * 6_000, [{"type": "text", "text": "words and words " * 6_000}]])
def test_a_document_made_of_blocks_is_read_searched_and_spilled_like_a_text(tmp_path: Path, inside: object) -> None:
    talk = Talk(tmp_path, window=20_000)
    document = {"type": "document", "source": {"type": "content", "content": inside}, "title": "The hats"}
    talk.memory.append_user([document])
    talk.reply("I see")
    assert 'page_id="x1"' in str(talk.last)
    assert "words and words" in talk.memory.page_text("x1")
    assert talk.memory.search_recall("hats words")[0].page_id == "s1"


def test_an_image_inside_of_a_document_is_media_and_no_text(talk: Talk) -> None:
    shown = image(1_000)
    document = {"type": "document", "source": {"type": "content", "content": [text("a chart"), shown]}}
    talk.memory.append_user([document])
    talk.reply("I see")
    assert talk.memory.page_text("s1") == "a chart"
    assert talk.memory.page_in("s1").media == (shown,) or talk.memory.page_in("s1").where


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}
