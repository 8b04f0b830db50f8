"""vectors/chroma."""
