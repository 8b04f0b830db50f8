"""Finds facts and parts by meaning. SQLite is the truth; whatever fails here costs a search no more than its meaning.

- `embedder`: the protocol of an embedder. `minilm` is the default one, `chroma_embedder` any of Chroma's.
- `embedding`: calls an embedder, survives its failures, and drops what another embedder made.
- `facts`, `said`: store vectors and compare them with a question. `int8_matrix` holds them in memory.
- `index`: the words of the vector index; `indexing` says when it is built and asked; `chroma` holds it.

The tiers and upkeep call `facts`, `said` and `embedding`; `Tiers.open` in `pager.tiers` puts them together.
"""

import os

# onnxruntime looks its telemetry's host up as soon as it is imported, here or by Chroma: its own function is too late.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
