"""Law 1 where it was once broken: images without a provider's count, and replies that cost more than they show."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pager import Limits, Memory
from tests.standin import Reply, Standin, call, thinking
from tests.standin.tokenizer import Tokenizer
from tests.support.messages import image
from tests.support.talk import Talk

Json = dict[str, Any]
RATIOS = {"words": 1.6, "digits": 1.6, "other": 1.6, "code": 1.6}


def count(standin: Standin, params: Json) -> int:
    return standin.count_tokens({"model": "m", **{name: params[name] for name in params if name != "max_tokens"}})


def talk_with(directory: Path, window: int, ratio: float, *, counts: bool = False) -> Talk:
    """Open a talk whose provider counts that much more than tiktoken, and may be asked for its count."""
    standin = Standin(limit_tokens=window, ratios=dict.fromkeys(RATIOS, ratio))
    return Talk(directory, window=window, standin=standin, count_tokens=partial(count, standin) if counts else None)


def whole_input(reply: Json) -> int:
    said = reply["usage"]
    return said["input_tokens"] + said["cache_read_input_tokens"] + said["cache_creation_input_tokens"]


@pytest.mark.parametrize(("window", "count"), [(100_000, 18), (100_000, 24), (60_000, 12), (200_000, 45)])
def test_many_images_fit_without_a_provider_that_counts(tmp_path: Path, window: int, count: int) -> None:
    standin = Standin(limit_tokens=window, ratios=dict.fromkeys(RATIOS, 1.0) | {"media": 1.2})
    with Memory.open(tmp_path, embedder=None, limits=Limits.for_window(window)) as memory:
        memory.append_user([{"type": "text", "text": "look"}, *(image(2000) for _ in range(count))])
        reply = standin.create({"model": "m", **memory.request().params}, Reply("seen"))
    assert whole_input(reply) > 0.2 * window, "as many stay in view as fit"


@pytest.mark.parametrize("odd", [thinking("", tokens=900), thinking("hm", tokens=400)])
def test_what_was_thought_and_not_shown_teaches_no_wrong_ratio(tmp_path: Path, odd: Json) -> None:
    window = 6000
    standin = Standin(limit_tokens=window, ratios=RATIOS)
    with Memory.open(tmp_path, embedder=None, limits=Limits.for_window(window)) as memory:
        for number in range(40):
            memory.append_user(f"{number}: " + "the harbour was quiet and grey that morning " * 8)
            size = memory.request()
            reply = standin.create({"model": "m", **size.params}, Reply(odd) if number % 2 else Reply(odd, "Yes."))
            assert whole_input(reply) <= size.tokens + size.margin
            memory.append_assistant(reply)


@pytest.mark.slow
def test_five_thousand_small_blocks_are_no_large_message(memory: Memory) -> None:
    memory.append_user([{"type": "text", "text": "hi"}] * 5000)
    standin = Standin(limit_tokens=100_000, ratios=RATIOS)
    standin.create({"model": "m", **memory.request().params}, Reply("hi"))


@pytest.mark.parametrize("said", ["", "prompt is too long: 250000 tokens > 20000 maximum"])
def test_a_small_prompt_that_is_called_too_long_keeps_its_request(tmp_path: Path, said: str) -> None:
    talk = Talk(tmp_path, window=20_000)
    for number in range(6):
        talk.ask(f"hello {number}", "fine")
    talk.memory.append_user("Book seat 4A.")
    before = talk.memory.request().tokens
    for _ in range(2):
        talk.memory.report_too_long(said)
        assert "Book seat 4A." in talk.text
        assert "<spilled" not in talk.text
    assert len(talk.memory.request().messages) < 12
    assert before < 1_000


def test_a_document_that_nobody_has_seen_is_counted_by_the_provider(tmp_path: Path) -> None:
    def counted(params: Json) -> int:
        return 500 + 132_000 * str(params).count("report.pdf")

    talk = Talk(tmp_path, window=100_000, count_tokens=counted)
    for number in range(4):
        talk.ask(f"hello {number} " * 30, "fine " * 30)
    report = {"type": "document", "source": {"type": "url", "url": "https://example.org/report.pdf"}}
    talk.memory.append_user([{"type": "text", "text": "summarize"}, report])
    request = talk.memory.request()
    assert counted(request.params) <= talk.memory.limits.usable_tokens
    assert 'holds="document"' in talk.text


def test_images_of_unknown_size_say_nothing_of_those_whose_size_is_known(tmp_path: Path) -> None:
    standin = Standin(limit_tokens=60_000, ratios=dict.fromkeys(RATIOS, 1.1) | {"media": 1.0})
    talk = Talk(tmp_path, window=60_000, standin=standin, instructions="You are careful. " * 200)
    for number in range(4):
        talk.ask(f"hello {number} " * 30, "fine " * 30)
    for source in [{"type": "url", "url": "https://example.org/a.png"}] * 4 + [image(1500)["source"]] * 3:
        talk.memory.append_user([{"type": "text", "text": "look"}, {"type": "image", "source": source}])
        talk.reply("seen")
    standin.limit_tokens = 8_000
    talk.reopen(limits=Limits.for_window(8_000))
    talk.ask("go on", "fine")


@pytest.mark.parametrize("answered", [True, False])
def test_without_tools_any_more_the_calls_of_earlier_days_are_valid(talk: Talk, answered: bool) -> None:
    talk.ask("look", call("weather", {"city": "Porto"}))
    if answered:
        talk.answer()
        talk.reply("sunny")
    talk.reopen(tools=[])
    if answered:
        talk.memory.append_user("and now?")
    else:
        talk.answer()
    talk.reply("sunny")
    talk.ask("and then?", "sunny")
    epoch = talk.last and talk.last.epoch
    talk.ask("and then?", "sunny")
    assert talk.last
    assert talk.last.epoch == epoch


def blocks_of(text: str, count: int) -> list[Json]:
    return [{"type": "text", "text": text}] * count


@pytest.mark.parametrize("count", [7, 8, 9, 10, 11])
def test_before_anything_is_learned_a_bound_from_the_bytes_holds(tmp_path: Path, count: int) -> None:
    standin = Standin(limit_tokens=8_000, ratios=dict.fromkeys(RATIOS, 1.15))
    with Memory.open(tmp_path, embedder=None, limits=Limits.for_window(8_000)) as memory:
        memory.append_user(blocks_of("www.a.com/" * 100, count))
        standin.create({"model": "m", **memory.request().params}, Reply("hm"))


def test_what_blocks_cost_beside_their_text_is_in_the_bound(tmp_path: Path) -> None:
    talk = talk_with(tmp_path, 8_000, 1.6)
    talk.memory.append_user("look everywhere")
    for number in range(6):
        reply = talk.send(Reply(*[call("weather", {})] * 50))
        talk.memory.append_assistant({**reply, "usage": None})
        for each in talk.memory.open_calls:
            talk.memory.append_result(each.id, str(number))
    talk.reply("done")


@pytest.mark.parametrize("count", [7, 8, 9, 10, 11])
def test_where_the_provider_counts_a_surprising_text_is_counted_before_it_leaves(tmp_path: Path, count: int) -> None:
    talk = talk_with(tmp_path, 8_000, 1.6, counts=True)
    for number in range(5):
        talk.ask(f"hello {number} " * 20, "fine " * 20)
    talk.memory.append_user(blocks_of("www.a.com/" * 100, count))
    talk.reply("hm")


@pytest.mark.parametrize("count", range(10, 18))
def test_the_margin_covers_a_tokenizer_that_wavers(tmp_path: Path, count: int) -> None:
    talk = talk_with(tmp_path, 8_000, 1.0)
    for number in range(10):
        talk.ask(f"hello {number}: " + "we went on and on and on " * 20, "so it was and so it is " * 10)
    talk.standin.tokenizer = Tokenizer(ratios=dict.fromkeys(RATIOS, 1.1))
    talk.reopen(instructions="Be long.")
    talk.memory.append_user(blocks_of("we went on and on and on " * 60, count))
    talk.reply("hm")


def test_a_usage_far_from_the_estimate_is_believed_of_documents(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=200_000)
    report = {"type": "document", "source": {"type": "url", "url": "https://example.org/report.pdf"}}
    talk.memory.append_user([{"type": "text", "text": "summarize"}, report])
    reply = talk.send(Reply("a report"))
    talk.memory.append_assistant({**reply, "usage": {"input_tokens": 160_000, "output_tokens": 5}})
    talk.memory.append_user("and?")
    assert talk.memory.request().tokens > 160_000


def test_what_was_counted_is_not_counted_again(tmp_path: Path) -> None:
    talk = talk_with(tmp_path, 10_000, 1.0, counts=True)
    talk.fill(3_000)
    talk.ask("look", *[call("weather", {"city": str(number)}) for number in range(4)])
    for each in talk.memory.open_calls:
        talk.memory.append_result(each.id, "it rains and it pours " * 60)
    talk.memory.append_user("one more thing")
    sizes = [talk.memory.request() for _ in range(3)]
    true = count(talk.standin, sizes[-1].params)
    assert {size.epoch for size in sizes} == {sizes[0].epoch}
    assert all(abs(size.tokens - true) <= 0.02 * true for size in sizes)


@pytest.mark.parametrize("said", [0, -5, True, "many", None, ZeroDivisionError("no")])
def test_a_count_that_is_none_or_fails_is_done_without(tmp_path: Path, said: Any) -> None:
    def counted(_: Json) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    talk = Talk(tmp_path, window=6_000, count_tokens=counted)
    talk.fill(6_000)
    assert bool(talk.memory.ledger(events=["error"])) == isinstance(said, Exception)


def test_an_epoch_that_was_not_answered_yet_is_measured_alone_in_the_next_process(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    talk.ask("hello")
    while talk.memory.append_user("and so we went on and on " * 8) and talk.memory.request().epoch == 1:
        talk.reply("it is so " * 15)
    tokens = talk.memory.request().tokens
    assert tokens < 0.6 * 6_000  # much has left
    talk.reopen()
    assert talk.memory.request().tokens == pytest.approx(tokens, rel=0.05)
