"""The vector index on Chroma: generations that are built once, and then only read.

`index.ChromaIndex` is what the tiers make. `build` writes a generation, and `client` alone knows Chroma's index.
"""
