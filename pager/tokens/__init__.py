"""Counts tokens: exactly as tiktoken does, and estimated for a model whose tokenizer is not at hand.

- `count`, `total`, `exceeds`, `head`, `tail`, `upper_bound`, `byte_bound` (`text`): a text for tiktoken's table.
- `counter`: what such counts mean for a model, learned from the usage that its responses report.
- `media`: how many tokens an image or a document is likely to be.

Every room above may call it. It loads tiktoken at the first count, and uses no network.
"""

from pager.tokens.text import byte_bound, count, exceeds, head, tail, total, upper_bound

__all__ = ["byte_bound", "count", "exceeds", "head", "tail", "total", "upper_bound"]
