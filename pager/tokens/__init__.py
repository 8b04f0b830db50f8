"""Count tokens: tiktoken's count of a text, and what it means for a model whose tokenizer is not at hand."""

from __future__ import annotations

from pager.tokens.text import byte_bound, count, exceeds, head, tail, total, upper_bound
from pager.types import ZERO, Counts

__all__ = ["ZERO", "Counts", "byte_bound", "count", "exceeds", "head", "tail", "total", "upper_bound"]
