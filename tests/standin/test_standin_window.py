"""The stand-in: the window, its tokenizer, and the prompt cache."""

from __future__ import annotations

import base64
import copy
import struct

import pytest

from tests.standin import Rejected, Reply, Standin, call, thinking
from tests.standin.tokenizer import IMAGE_TOKENS, PAGE_TOKENS, Tokenizer, count_block
from tests.support.params import HOUR, MARK, TOOL, Params, assistant, refused, request, said, standin, text, user

# ---- the window


def test_the_window_holds_input_and_max_tokens() -> None:
    params = request(user("word " * 500))
    size = standin().count_tokens({name: value for name, value in params.items() if name != "max_tokens"})
    Standin(limit_tokens=size + 1_000).create(params)
    refused(params, f"exceed context limit: {size} + 1000 > {size + 999}", limit_tokens=size + 999)
    refused(params, f"prompt is too long: {size} tokens > {size - 1} maximum", limit_tokens=size - 1)


@pytest.mark.parametrize(
    "reply", [Reply("word " * 3_000), Reply(thinking("word " * 3_000)), Reply("a", call("look", {"at": "b " * 3_000}))]
)
def test_a_reply_is_cut_at_max_tokens(reply: Reply) -> None:
    message = standin().create(request(user("x")), reply)
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] <= 1_000
    assert message["content"]


def test_counting_takes_other_fields_than_creating() -> None:
    with pytest.raises(Rejected, match="max_tokens: Extra inputs are not permitted"):
        standin().count_tokens(request(user("x")))


def test_the_size_is_what_creating_bills_and_thinking_counts_as_it_was_thought() -> None:
    api = standin()
    message = api.create(request(user("x")), Reply(thinking(tokens=700), "y"))
    assert message["usage"]["output_tokens"] > 700
    with_it = request(user("x"), said(message), user("z"))
    without = request(user("x"), assistant("y"), user("z"))
    sizes = [api.create(params)["usage"]["input_tokens"] for params in (with_it, without)]
    assert sizes[0] - sizes[1] == 700
    del with_it["max_tokens"]
    assert api.count_tokens(with_it) == sizes[0]


def test_the_tokenizer_is_its_seeds_own() -> None:
    kinds = ("plain words", "1234567890" * 5, "日本語のテキスト", '{"a": [1, 2]}\n\t<b>')
    counts = [[Tokenizer(seed=seed).text(kind * 40) for kind in kinds] for seed in (1, 1, 2)]
    assert counts[0] == counts[1] != counts[2]
    for seed in range(20):
        ratios = Tokenizer(seed=seed).ratios
        assert all(1.0 <= ratio <= 1.6 for ratio in ratios.values())
    assert Tokenizer(ratios={"other": 9.0}).text("é" * 50) == 100  # never more than there are bytes
    double = Tokenizer(ratios={"digits": 2.0}).text(kinds[1])
    assert double == 2 * Tokenizer(ratios={"digits": 1.0}).text(kinds[1])
    with pytest.raises(ValueError, match="no kind of text"):
        Tokenizer(ratios={"verse": 1.0})


def test_images_count_by_size_and_documents_by_pages() -> None:
    def counted(kind: str, media_type: str, data: bytes) -> int:
        source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
        return count_block({"type": kind, "source": source})[4]

    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 750, 400) + bytes(40)
    assert counted("image", "image/png", png) == 400
    assert counted("image", "image/jpeg", b"\xff\xd8\xff" + bytes(80)) == IMAGE_TOKENS
    pdf = b"%PDF-1.7 /Type /Pages " + b"<</Type /Page /Parent 1 0 R>>" * 3
    assert counted("document", "application/pdf", pdf) == 3 * PAGE_TOKENS


# ---- the prompt cache


def bill(api: Standin, params: Params) -> tuple[int, int, int]:
    usage = api.create(params)["usage"]
    whole = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    del params["max_tokens"]
    assert whole == api.count_tokens(params)
    assert sum(usage["cache_creation"].values()) == usage["cache_creation_input_tokens"]
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["input_tokens"]


def test_a_request_can_be_marked_as_a_whole() -> None:
    api = standin()
    _, written, plain = bill(api, request(user("a"), cache_control=MARK))
    assert plain == 0
    assert bill(api, request(user("a"), user(text("b", cache_control=MARK))))[0] == written


@pytest.mark.parametrize(
    "change", [{"model": "n"}, {"tools": [TOOL]}, {"system": "s"}, {"thinking": {"type": "adaptive"}}]
)
def test_another_prefix_is_not_found(change: Params) -> None:
    api = standin()
    bill(api, request(user(text(cache_control=MARK))))
    assert bill(api, {**request(user(text(cache_control=MARK))), **change})[0] == 0


def test_tools_and_system_are_found_when_messages_differ() -> None:
    api = standin()
    fixed = {"tools": [{**TOOL, "cache_control": MARK}], "system": [text("s" * 40, cache_control=MARK)]}
    _, written, _ = bill(api, request(user("a"), **fixed))
    assert bill(api, request(user("b"), **fixed))[0] == written
    other = {**fixed, "system": [text("t", cache_control=MARK)]}
    read, written_now, _ = bill(api, request(user("b"), **other))
    assert 0 < read < written
    assert written_now > 0


def test_a_mark_looks_back_twenty_blocks() -> None:
    for between, found in ((19, True), (20, False)):
        api = standin()
        bill(api, request(user(text(cache_control=MARK))))
        later = user(*["more"] * (between - 1), text("last", cache_control=MARK))
        assert (bill(api, request(user("x"), later))[0] > 0) is found, between
        both = request(user(text(cache_control=MARK)), later)
        assert bill(api, both)[0] > 0


def test_entries_last_as_long_as_their_ttl_and_reading_renews_them() -> None:
    now = [0.0]
    for mark, lasts in ((MARK, 5), (HOUR, 60)):
        api = standin(minutes=lambda: now[0])

        def read(api: Standin = api, mark: Params = mark) -> int:
            return bill(api, request(user(text(cache_control=mark))))[0]

        assert read() == 0
        now[0] += lasts - 1
        assert read() > 0
        now[0] += lasts - 1
        assert read() > 0
        now[0] += lasts
        assert read() == 0


def test_a_prefix_under_the_minimum_is_silently_not_cached() -> None:
    api = standin(cache_min_tokens=1_024)
    small = request(user(text(cache_control=MARK)))
    assert bill(api, copy.deepcopy(small))[:2] == (0, 0)
    assert bill(api, small)[:2] == (0, 0)
    large = request(user(text("word " * 1_500, cache_control=MARK)))
    assert bill(api, large)[1] > 1_024


def test_a_refused_request_leaves_no_trace() -> None:
    api = standin()
    with pytest.raises(Rejected):
        api.create(request(user(text(cache_control=MARK)), max_tokens=200_000))
    assert bill(api, request(user(text(cache_control=MARK))))[0] == 0
