import base64
import hashlib
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
import tiktoken_ext.openai_public
from hypothesis import example, given
from hypothesis import strategies as st

from pager.errors import PagerError
from pager.tokens import text as tokens
from pager.types import Counts

# What tiktoken itself expects of the table that it would download.
O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

SNIPPETS = [
    *("the quick brown fox ", "don't", " I", "Qj", "xqkq", "strengths", "ALL CAPS", "camelCase", " a b c "),
    *("1234567", " 12", "3.14", "\u0663", "東京都", "Ünïcödé", "привет ", "e\u0301", "👨\u200d👩\u200d👧", "👍🏽"),
    *(" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\x85", "\x1c", "\0", "\ufeff", "\u200d", "\U0010ffff"),
    *("!\n", "//\n", " {", "});", "<|endoftext|>", "aGVsbG8=", "=" * 40, "def f(self):\n    return 1\n"),
    *("\ud800", "\udc00", "\ud83d\ude00"),
]
any_text = st.text(st.characters(exclude_categories=[]))
texts = st.one_of(any_text, st.lists(st.sampled_from(SNIPPETS) | any_text, max_size=30).map("".join))
letters = st.text("abkqxjzQXJK ", max_size=60)


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PIECE_CHARACTERS", 16)
    monkeypatch.setattr(tokens, "NEAR_CHARACTERS", 12)


def whole(text: str) -> list[int]:
    """As tiktoken encodes it, without our pieces."""
    return tokens._encode(text)


def test_the_shipped_table_is_the_one_that_tiktoken_expects():
    table = zlib.decompress(tokens.TABLE.read_bytes())
    ranked = [token or b"\xff" for token in table.split(b"\xff")]
    original = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(ranked))
    assert hashlib.sha256(original).hexdigest() == O200K_SHA256


def test_the_pattern_is_the_one_of_tiktoken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", lambda *args, **kwargs: {})
    assert tiktoken_ext.openai_public.o200k_base()["pat_str"] == tokens.PATTERN


def test_a_damaged_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    damaged = tmp_path / "o200k_base.zlib"
    damaged.write_bytes(zlib.compress(b"a\xffb\xff\xffc"))
    monkeypatch.setattr(tokens, "TABLE", damaged)
    with pytest.raises(PagerError, match="install selfpager again"):
        tokens._load()


def test_nothing_is_loaded_before_the_first_count():
    check = (
        "import sys; from pager import tokens\n"
        "tokens.upper_bound('é'); tokens.total(''); tokens.exceeds('ab', 9)\n"
        "assert 'tiktoken' not in sys.modules; tokens.total('ab'); assert 'tiktoken' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.slow
def test_threads_share_one_table(monkeypatch: pytest.MonkeyPatch):
    loaded: list[tiktoken.Encoding] = []
    load = tokens._load
    monkeypatch.setattr(tokens, "_loaded", None)
    monkeypatch.setattr(tokens, "_load", lambda: loaded.append(load()) or loaded[-1])
    with ThreadPoolExecutor(4) as threads:
        totals = list(threads.map(tokens.total, ["one two three"] * 4))
    assert (len(loaded), totals) == (1, [3, 3, 3, 3])


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", Counts()),
        ("Please remember that", Counts(words=3)),
        ("don't", Counts(words=1)),
        ("1234567", Counts(digits=3)),
        ("naïve", Counts(words=2, other=1)),
        ("東京", Counts(other=1)),
        ("(self", Counts(code=1)),
        ("\n\n\t\t", Counts(code=2)),
        ("<|endoftext|>", Counts(words=3, code=4)),
    ],
)
def test_kinds(text: str, counts: Counts):
    assert tokens.count(text) == counts


@given(texts)
def test_every_token_has_one_kind(text: str):
    counts = tokens.count(text)
    assert counts.total == tokens.total(text) == len(whole(text))
    assert counts.media == 0


def test_a_lone_surrogate_counts_as_its_replacement():
    assert tokens.count("a\ud800b") == tokens.count("a\ufffdb")
    assert tokens.total("\ud83d\ude00") == tokens.total("😀")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=11), max_size=30).map(" ".join))
def test_pieces_cut_at_spaces_have_the_tokens_of_the_whole(text: str):
    # Words of at most eleven characters: there is always a space near enough.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "PIECE_CHARACTERS", 16)
        patch.setattr(tokens, "NEAR_CHARACTERS", 13)
        pieces = [text[start:end] for start, end in tokens._pieces(text)]
    assert "".join(pieces) == text
    cuts_inside = sum(not after.startswith(" ") for after in pieces[1:])
    difference = abs(sum(len(whole(piece)) for piece in pieces) - len(whole(text)))
    assert difference <= 2 * cuts_inside


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", " ", "\n", " \t", "😀", "e\u0301", "\0", "\ud800", "9", "!", "<|endoftext|>"])
def test_long_runs_are_counted(unit: str):
    # Encoded in one piece, the spaces make tiktoken panic.
    text = unit * (1_200_000 // len(unit)) if unit.isspace() else unit * 30_000
    assert 0 < tokens.total(text) <= tokens.upper_bound(text)
    assert tokens.exceeds(text, 1000) == (tokens.total(text) > 1000)
    assert 0 < tokens.total(tokens.head(text, 1000)) <= 1000
    assert 0 < tokens.total(tokens.tail(text, 1000)) <= 1000


@given(texts, st.integers(-2, 60))
@example("", 0)
@example("", -1)
@example("a", 0)
def test_exceeds_is_a_comparison_with_the_total(text: str, limit: int):
    assert tokens.exceeds(text, limit) == (tokens.total(text) > limit)


@given(texts, st.integers(-2, 60))
@example("00000:0:000000000000000000:00:0:0000\x810𐀀", 25)  # 26 tokens when cut from the start, 25 from the end
@pytest.mark.usefixtures("short_pieces")
def test_head_and_tail_fit(text: str, limit: int):
    head, tail = tokens.head(text, limit), tokens.tail(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert max(tokens.total(head), tokens.total(tail)) <= max(0, limit)
    assert tokens.head(text, tokens.total(text)) == tokens.tail(text, tokens.total(text)) == text


def test_head_and_tail_use_the_limit():
    text = " ".join(["word"] * 20_000)
    assert tokens.total(tokens.head(text, 9_999)) == tokens.total(tokens.tail(text, 9_999)) == 9_999
    assert tokens.head("one two three four", 2) == "one two"
    assert tokens.tail("one two three four", 2) == " three four"


@pytest.mark.parametrize("unit", ["e\u0301", "👨\u200d👩\u200d👧", "👍🏽", "\ud83d\ude00", "\r\n"])
def test_what_belongs_together_is_not_parted(unit: str):
    text = unit * 20
    for limit in range(60):
        assert len(tokens.head(text, limit)) % len(unit) == 0
        assert len(tokens.tail(text, limit)) % len(unit) == 0


def test_a_letter_with_a_thousand_accents_is_cut():
    text = "e" + "\u0301" * 1000
    assert tokens.total(tokens.head(text, 100)) == tokens.total(tokens.tail(text, 100)) == 100


@given(st.one_of(texts, letters))
@example("xqkqxqzj" * 9)
@example("1 2 3 4")
@example("a b c d e")
def test_bounds(text: str):
    assert tokens.total(text) <= tokens.byte_bound(text) <= tokens.upper_bound(text)


def test_the_byte_bound_follows_the_kind_of_text():
    assert tokens.byte_bound("plain words") == 5  # half of ten letters; the space belongs to its word
    assert tokens.byte_bound("x y") == 2
    assert tokens.byte_bound("2024-11-18") == 10
    assert tokens.byte_bound("東京") == 6
    assert tokens.byte_bound("bcdfgh") == 6
    assert tokens.byte_bound("a    b") == 5
