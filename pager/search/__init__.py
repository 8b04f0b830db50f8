"""Ranks what a search may find. Pure, but for reading parts that the caller loaded from the store: no SQL, no clock.

- `words`: split texts and questions into words, in any script; judge how telling a word is; fuse two rankings.
- `neighbours`: every searchable part with its neighbours, and what they lend each other.
- `ranking`: ranks parts as answers to a question, by words, neighbours, speakers, times and meaning.
- `dates`: the times that an English question names.
- `growing_array`: arrays that grow at their end.

The tiers and the facades call it, `vectors` uses its arrays, and conversation and upkeep use `words` to index texts.
"""
