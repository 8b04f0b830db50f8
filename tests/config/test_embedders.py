"""The embedder that an agent's YAML names, in the agent and in the commands that know only its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chromadb.utils import embedding_functions

from agents import Agent
from agents.cli.main import run
from agents.config import embedders
from agents.rehearsal import Rehearsal
from agents.rehearsal.fixture import rehearsal as rehearsal  # noqa: PLC0414 - pytest finds it by its name
from pager import MemoryReader
from tests.support import Words

BASE = "name: x\nmodel: {provider: rehearsal, id: m}\n"


class Shelf(embedding_functions.EmbeddingFunction):
    def __init__(self, size: int = 16, api_key: str = "") -> None:
        self._size = size
        self._words = Words(dimension=size)

    def __call__(self, input: Sequence[str]) -> Any:  # noqa: A002 - Chroma's own name
        return list(self._words.embed(list(input)))

    @staticmethod
    def name() -> str:
        return "shelf"

    def get_config(self) -> dict[str, Any]:
        return {"size": self._size}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> Shelf:
        return Shelf(**config)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(embedding_functions.known_embedding_functions, "shelf", Shelf)


def agent_file(folder: Path, archival: str) -> Path:
    path = folder / "x.yaml"
    path.write_text(f"{BASE}archival: {{{archival}}}\n", encoding="utf-8")
    return path


def embedded_by(directory: Path) -> str | None:
    """The embedder of the vectors that are stored, from the ledger of a memory that has another one."""
    with MemoryReader.open(directory) as reading:
        return reading._store.settings.get("embedder")


def test_an_agent_finds_by_the_embedder_that_its_file_names(rehearsal: Rehearsal, tmp_path: Path) -> None:
    file = agent_file(tmp_path, "embedder: {name: shelf, config: {size: 24, api_key: s3cret}}")
    with Agent.load(file, home=tmp_path) as agent:
        agent.turn("I prefer window seats.")
        assert agent.memory.search_archive("window")[0].parts["meaning"] > 0
    told = embedded_by(tmp_path / "x") or ""
    assert told.startswith("chroma shelf")
    assert '"size": 24' in told


@pytest.mark.parametrize("options", [[], ["--fix"]])
@pytest.mark.parametrize("archival", ["embedder: {name: shelf, config: {size: 24}}", "embedder: none"])
def test_check_embeds_as_the_agent_does(
    rehearsal: Rehearsal, tmp_path: Path, archival: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Agent.load(agent_file(tmp_path, archival), home=tmp_path) as agent:
        agent.memory.archive("prefers window seats")
    before = embedded_by(tmp_path / "x")
    assert run(["check", "x", "--home", str(tmp_path), *options]) == 0
    assert capsys.readouterr().out == "x: no problems found.\n"
    assert embedded_by(tmp_path / "x") == before


def test_a_purge_leaves_the_other_facts_their_vectors(rehearsal: Rehearsal, tmp_path: Path) -> None:
    file = agent_file(tmp_path, "embedder: {name: shelf, config: {size: 24}}")
    with Agent.load(file, home=tmp_path) as agent:
        secret = agent.memory.archive("the code is 4711")
        agent.memory.archive("prefers window seats")
    before = embedded_by(tmp_path / "x")
    assert run(["purge", "x", secret.id, "--yes", "--home", str(tmp_path)]) == 0
    assert embedded_by(tmp_path / "x") == before
    with Agent.load(file, home=tmp_path) as agent:
        assert [hit.text for hit in agent.memory.search_archive("seats")] == ["prefers window seats"]
        assert not agent.memory.check()


def test_which_one_it_was_is_known_without_its_secrets(rehearsal: Rehearsal, tmp_path: Path) -> None:
    for archival, kind in (
        ("embedder: {name: shelf, config: {size: 24, api_key: s3cret}}", "ChromaEmbedder"),
        ("embedder: none", "NoneType"),
        ("embedder: default", "str"),
    ):
        with Agent.load(agent_file(tmp_path, archival), home=tmp_path) as agent:
            assert "s3cret" not in (agent.memory.load_value(embedders.STORED_AS) or "")
        assert type(embedders.stored(tmp_path / "x")).__name__ == kind
