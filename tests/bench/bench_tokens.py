"""What counting and embedding cost from a cold start (Linux): `python -m tests.bench.bench_tokens`"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FACTS = [
    f"On day {day} the user asked for a {what}." for day in range(80) for what in ("seat", "red car", "map", "cup")
]


@contextmanager
def timed(label: str, times: int = 1) -> Iterator[None]:
    start = time.perf_counter()
    yield
    milliseconds = (time.perf_counter() - start) * 1000 / times
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
    print(f"{label:40} {milliseconds:8.2f} ms {resident:5.0f} MB")


def main() -> None:
    with timed("import pager.tokens"):
        from pager.tokens import text as tokens
    with timed("import tiktoken"):
        import tiktoken
    with timed("expand the table"):
        table = zlib.decompress(tokens.TABLE.read_bytes())
    with timed("check its sha256"):
        hashlib.sha256(table).hexdigest()
    with timed("build the dictionary"):
        ranks = {token or b"\xff": rank for rank, token in enumerate(table.split(b"\xff"))}
    with timed("tiktoken.Encoding"):
        tiktoken.Encoding("bench", pat_str=tokens.PATTERN, mergeable_ranks=ranks, special_tokens={})
    with timed("all of it again: the first count"):
        tokens.total("a")
    prose = " ".join(FACTS) * 80
    for name, text in {"1 MB of prose": prose[:1_000_000], "1 MB of spaces": " " * 1_000_000}.items():
        for count in (tokens.count, tokens.total, tokens.byte_bound):
            with timed(f"{count.__name__} of {name}"):
                count(text)
        for cut in (tokens.exceeds, tokens.head, tokens.tail):
            with timed(f"{cut.__name__} of {name}, 8,000"):
                cut(text, 8_000)
    with timed("make the embedder"):
        from pager.vectors.embedder import default_embedder

        embedder = default_embedder()
    with timed("its first text"):
        embedder.embed(["a"])
    with timed("a short fact alone", len(FACTS)):
        for fact in FACTS:
            embedder.embed([fact])
    with timed("a short fact in 32", len(FACTS)):
        for start in range(0, len(FACTS), 32):
            embedder.embed(FACTS[start : start + 32])
    with timed("a text of 256 word pieces in 32", 32):
        embedder.embed([prose[start : start + 4000] for start in range(0, 3200, 100)])


if __name__ == "__main__":
    main()
