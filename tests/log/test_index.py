"""An agent in Postgres has its vector index beside the copy that its process works with, and reads from that."""

from __future__ import annotations

from pager import Home
from tests.support import Words
from tests.support.indexed import FACTS, archive, build, is_asked, lost, told


def test_the_process_that_builds_the_index_reads_what_its_owner_has_open(home: Home) -> None:
    with home.open("x", embedder=Words()) as memory:
        archive(memory, 1, FACTS)
        build(memory)
        assert is_asked(memory), told(memory)
        assert lost(memory) == []
        archive(memory, FACTS + 1, FACTS + 9)
        assert memory.check() == []
    with home.open("x", embedder=Words()) as memory:
        assert lost(memory) == []
