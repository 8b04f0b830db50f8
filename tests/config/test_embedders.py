"""The embedder that an agent's YAML names, in the agent and in the commands that know only its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import Agent
from agents.config import embedders
from pager import ChromaEmbedder, Home, MemoryReader
from tests.support import Words
from tests.support.cli import command_line

pytestmark = pytest.mark.slow


class Shelf:
    """An embedding function as Chroma defines them."""

    def __init__(self, size: int = 16, api_key: str = "") -> None:
        self._words = Words(dimension=size)

    def __call__(self, input: Sequence[str]) -> Any:  # noqa: A002 - Chroma's own name
        return list(self._words.embed(list(input)))

    @staticmethod
    def name() -> str:
        return "shelf"

    def get_config(self) -> dict[str, Any]:
        return {"size": self._words.dimension}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> Shelf:
        return Shelf(**config)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from chromadb.utils import embedding_functions  # here, because it takes a second and these tests are slow

    monkeypatch.setitem(embedding_functions.known_embedding_functions, "shelf", Shelf)


SHELF = "embedder: {name: shelf, config: {size: 24, api_key: s3cret}}"


def agent_in(folder: Path, archival: str = SHELF) -> Agent:
    path = folder / "x.yaml"
    model = "{provider: scripted, script: 'tests.support.answers:keeps_and_finds'}"
    path.write_text(f"name: x\nmodel: {model}\narchival: {{{archival}}}\n", encoding="utf-8")
    return Agent.load(path, home=folder)


def embedded_by(directory: Path) -> str | None:
    """Return the fingerprint of the stored vectors."""
    with MemoryReader.open(directory) as reading:
        return reading._store.settings.get("embedder")


def test_an_agent_finds_by_the_embedder_that_its_file_names(tmp_path: Path) -> None:
    with agent_in(tmp_path) as agent:
        agent.turn("I prefer window seats.")
        assert "meaning" in agent.memory.search_archive("window")[0].parts
    fingerprint = embedded_by(tmp_path / "x") or ""
    assert fingerprint.startswith("chroma shelf")
    assert '"size": 24' in fingerprint


@pytest.mark.parametrize("options", [[], ["--fix"]])
@pytest.mark.parametrize("archival", [SHELF, "embedder: none"])
@pytest.mark.parametrize("named", [True, False])
def test_check_embeds_as_the_agent_does(tmp_path: Path, archival: str, options: list[str], named: bool) -> None:
    """Its file names an embedder of Chroma's. Without the file there is none, and the vectors stay as they are."""
    with agent_in(tmp_path, archival) as agent:
        agent.memory.archive("prefers window seats")
    before = embedded_by(tmp_path / "x")
    given = [*options, *(["--config", str(tmp_path / "x.yaml")] if named else [])]
    assert command_line("check", "x", "--home", tmp_path, *given).out == "x: no problems found.\n"
    assert embedded_by(tmp_path / "x") == before


def test_a_purge_leaves_the_other_facts_their_vectors(tmp_path: Path) -> None:
    with agent_in(tmp_path) as agent:
        secret = agent.memory.archive("the code is 4711")
        agent.memory.archive("prefers window seats")
    before = embedded_by(tmp_path / "x")
    assert command_line("purge", "x", secret.id, "--yes", "--home", tmp_path).code == 0
    assert embedded_by(tmp_path / "x") == before
    with agent_in(tmp_path) as agent:
        assert [hit.text for hit in agent.memory.search_archive("seats")] == ["prefers window seats"]
        assert not agent.memory.check()


@pytest.mark.parametrize(
    ("archival", "kind", "without"),
    [(SHELF, ChromaEmbedder, None), ("embedder: none", type(None), None), ("embedder: default", str, "default")],
)
def test_only_a_file_makes_an_embedder_of_chromas(tmp_path: Path, archival: str, kind: type, without: Any) -> None:
    with agent_in(tmp_path, archival) as agent:
        assert "s3cret" not in (agent.memory.load_value(embedders.EMBEDDER) or "")
    place = Home(tmp_path).place("x")
    assert isinstance(embedders.for_command(place, tmp_path / "x.yaml")["embedder"], kind)
    assert embedders.for_command(place, None) == {"embedder": without, "index": None}
