"""Long lists, histories and searches for places that hold a text: what views ask of a memory, whatever its age.

A facade has `inspect` (lists in pieces, newest first, and every place that holds a text) and `history` (versions, days,
earlier prompts and requests). Programs use them through a facade; nothing here writes.
"""
