"""Finds facts and turns by meaning. SQLite is the truth; whatever fails here costs a search no more than its meaning.

- `embedder`: the protocol of an embedder. `minilm` is the default one, `chroma_embedder` any of Chroma's.
- `embedding`: calls an embedder, survives its failures, and drops what another embedder made.
- `facts`, `turns`: store vectors and compare them with a question. `int8_matrix` holds them in memory.
- `index`: what a vector index is built from, `indexing` when it is opened and built; `chroma` holds it.

The tiers and upkeep call `facts`, `turns` and `embedding`; `Tiers.open` in `pager.tiers` puts them together.
"""
