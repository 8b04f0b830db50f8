"""Ranks what a search may find. Pure: the caller loads what is ranked. No SQL, no clock.

- `words`: split texts and questions into words, in any script; judge how telling a word is.
- `neighbours`: every searchable part with its neighbours, and what they lend each other.
- `ranking`: scores parts as answers to a question, by words, neighbours, speakers, times and meaning.
- `dates`: the times that an English question names.
- `growing_array`: arrays that grow at their end.

The tiers call it. `vectors` uses its arrays and its table of parts, conversation and upkeep use `words` to index texts.
"""
