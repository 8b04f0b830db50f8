"""Fit the directions to which pager.vectors.minilm projects the vectors of word pieces.

    python -m tests.data_tools.fit_token_basis ../shared/data pager/data/minilm_token_basis.f16

They are the principal directions of the word pieces of the shared data: what five people say in bfcl_memory and the
documents of tau2_banking (each its first 256 word pieces). Any English text serves. The last bits depend on the
machine, so a new file has another sha256: it belongs into `TOKEN_BASIS_SHA256`, and all token vectors are made anew.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

from pager.vectors.minilm import DIMENSION, MAX_CHARACTERS, MiniLM
from pager.vectors.quantized import TOKEN_DIMENSION
from tests.bench import question_sets


def main(data: str, target: str) -> None:
    loaded = MiniLM()._load()
    count, total, products = 0, np.zeros(DIMENSION), np.zeros((DIMENSION, DIMENSION))
    for asked in [*question_sets.by_message(Path(data)), *question_sets.documents(Path(data))]:
        for text in asked.texts:
            ids = np.array([loaded.tokenizer.encode(text[:MAX_CHARACTERS]).ids], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            rows = loaded.session.run(None, inputs)[0][0, 1:-1].astype(np.float64)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            count, total, products = count + len(rows), total + rows.sum(axis=0), products + rows.T @ rows
    mean = total / count
    variances, directions = np.linalg.eigh(products / count - np.outer(mean, mean))
    turned, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((TOKEN_DIMENSION, TOKEN_DIMENSION)))
    basis = directions[:, ::-1][:, :TOKEN_DIMENSION] @ turned
    content = np.vstack([mean, basis.T]).astype("<f2").tobytes()
    Path(target).write_bytes(content)
    kept = variances[::-1][:TOKEN_DIMENSION].sum() / variances.sum()
    sys.stdout.write(f"{target}: {count} word pieces, {kept:.0%} of their variance, ")
    sys.stdout.write(f"sha256 {hashlib.sha256(content).hexdigest()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
