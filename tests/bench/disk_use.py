"""What 1,000 short turns take on disk: the whole directory, while it is open (the write-ahead log too) and closed."""

from __future__ import annotations

from pathlib import Path

from pager import Limits, Memory
from tests.bench.figures import Figure
from tests.bench.grown import INSTRUCTIONS, Talk, size_bytes
from tests.bench.texts import Texts

TURNS = 1_000
LIMIT_MB = 3.0


def figures(work: Path) -> list[Figure]:
    directory = work / "turns"
    texts = Texts()
    with Memory.open(directory, limits=Limits.for_window(), instructions=INSTRUCTIONS, embedder=None) as memory:
        talk = Talk(memory, texts)
        for _ in range(TURNS):
            talk.turn()
        said = sum(len(hit.text.encode()) for hit in memory.search_recall("", limit=2 * TURNS + 1))
        open_mb = size_bytes(directory) / 1e6
    closed_mb = size_bytes(directory) / 1e6
    told = f"{said / TURNS:.0f} bytes of text per turn"
    return [
        Figure("1,000 short turns on disk, closed", told, closed_mb, LIMIT_MB, " MB"),
        Figure("... while open, with the write-ahead log", told, open_mb, None, " MB"),
    ]
