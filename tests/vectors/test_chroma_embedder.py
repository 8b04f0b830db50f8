from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from chromadb.utils import embedding_functions

from pager import ChromaEmbedder, EmbedderUnavailableError, Memory, RejectedError
from pager.vectors.chroma_embedder import EmbedderConfigError
from tests.support import HandClock, Words

LARGEST_CALL = 64
NAMES = embedding_functions.known_embedding_functions


class Shelf(embedding_functions.EmbeddingFunction):
    """An embedding function as somebody else would write one: long vectors, arguments, a key."""

    def __init__(self, shelf: str, size: int = 16, api_key: str = "", fails: bool = False) -> None:
        if shelf == "missing":
            raise ValueError("The shelf python package is not installed. Please install it with `pip install shelf`")
        self._words = Words(dimension=size)
        self._told = {"shelf": shelf, "size": size, "api_key": api_key}
        self.fails = fails
        self.asked: list[str] = []

    @staticmethod
    def on_call(texts: Sequence[str]) -> None:
        """A test may put something else here."""

    def __call__(self, input: Sequence[str]) -> Any:  # noqa: A002 - Chroma's own name
        self.on_call(input)
        if self.fails:
            raise ConnectionError("no route to the shelf")
        if len(input) > LARGEST_CALL:
            raise ValueError(f"at most {LARGEST_CALL} texts in a call")
        self.asked += input
        return [
            np.zeros(16, np.float32) if text == "of no meaning" else 7 * self._words.embed([text])[0] for text in input
        ]

    @staticmethod
    def name() -> str:
        return "shelf"

    def get_config(self) -> dict[str, Any]:
        return self._told

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> Shelf:
        return Shelf(**config)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NAMES, "shelf", Shelf)


def shelf(**config: Any) -> ChromaEmbedder:
    return ChromaEmbedder("shelf", {"shelf": "upper", **config})


def test_vectors_mean_something() -> None:
    embedder = shelf()
    seat, place, cats = embedder.embed(["a window seat", "a seat at a window", "two cats"])
    assert seat @ place > seat @ cats
    assert seat.dtype == np.float32
    assert embedder.dimension == 16


def test_any_text_is_accepted(tmp_path: Path) -> None:
    assert shelf().embed(["", "a text"]).shape == (2, 16)
    with Memory.open(tmp_path, embedder=(embedder := shelf()), clock=HandClock()) as memory:
        for text in ("half a \ud83d character", "of no meaning"):
            memory.archive(text)
        assert set(memory.search_archive("of no meaning")[0].parts) == {"words", "meaning"}
        assert set(memory.search_archive("half a character")[0].parts) == {"words", "meaning"}
        assert (memory.check(), memory.count_unembedded(), embedder.dimension) == ([], 0, 16)


def test_a_fingerprint_names_function_and_config_and_no_secret() -> None:
    told = shelf(api_key="s3cret").fingerprint
    assert "shelf" in told
    assert '"size": 16' in told
    assert "s3cret" not in told
    assert told == shelf(api_key="another").fingerprint
    assert told != shelf(size=32).fingerprint
    at_server = ChromaEmbedder("shelf", {"shelf": "http://me:s3cret@host:1/v1?key=s3cret"}).fingerprint
    assert told != at_server
    assert "s3cret" not in at_server
    assert "http://host:1/v1" in at_server
    assert all(map(ChromaEmbedder.is_secret, ("api_key", "default_headers")))
    assert not any(map(ChromaEmbedder.is_secret, ("api_key_env_var", "model_name")))


def test_a_wrong_name_or_argument_is_told_with_what_was_meant() -> None:
    with pytest.raises(EmbedderConfigError, match="no embedding function 'opnai'; did you mean 'openai'") as name:
        ChromaEmbedder.check("opnai", {})
    assert name.value.argument is None
    with pytest.raises(EmbedderConfigError, match="no argument 'modelname'; did you mean 'model_name'") as argument:
        ChromaEmbedder("openai", {"modelname": "x"})
    assert argument.value.argument == "modelname"
    with pytest.raises(EmbedderConfigError, match="shelf needs more arguments: shelf"):
        ChromaEmbedder.check("shelf", {})
    for name_of_none in (None, 5, ["ollama"]):
        with pytest.raises(RejectedError, match="no embedding function"):
            ChromaEmbedder(name_of_none)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"shelf"}))
def test_every_function_of_chroma_can_be_asked_for(name: str) -> None:
    try:
        ChromaEmbedder.check(name, {})
    except EmbedderConfigError as refused:
        assert "needs more arguments" in str(refused)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbedderUnavailableError, match=r"'shelf' cannot be used: .*pip install shelf"):
        ChromaEmbedder("shelf", {"shelf": "missing"})
    monkeypatch.delenv("HUGGINGFACE_API_KEY", raising=False)
    monkeypatch.delenv("CHROMA_HUGGINGFACE_API_KEY", raising=False)
    with pytest.raises(EmbedderUnavailableError, match="CHROMA_HUGGINGFACE_API_KEY environment variable is not set"):
        ChromaEmbedder("huggingface")


def test_a_failure_is_one_of_an_embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbedderUnavailableError, match="'shelf' failed: ConnectionError: no route"):
        shelf(fails=True).embed(["a"])
    monkeypatch.setattr(Shelf, "__call__", lambda _, texts: [np.full(4, np.nan, np.float32)] * len(texts))
    with Memory.open(tmp_path, embedder=shelf(), clock=HandClock()) as memory:
        memory.archive("a")
        assert "expected finite numbers of shape (1, 4)" in memory.ledger(events=["embedder"])[0].reason


def test_a_memory_finds_with_it_over_restarts_and_embeds_anew_with_another(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=shelf(), clock=clock) as memory:
        fact = memory.archive("prefers a window seat")
        memory.archive("has two cats")
        assert memory.search_archive("window")[0].page_id == fact.id
    second = shelf()
    with Memory.open(tmp_path, embedder=second, clock=clock) as memory:
        assert (memory.search_archive("a seat")[0].cosine or 0) > 0
        assert not memory.check()
        assert [move.event for move in memory.ledger() if "embedded anew" in move.reason] == []
    with Memory.open(tmp_path, embedder=shelf(size=32), clock=clock) as memory:
        assert memory.search_archive("a seat")[0].page_id == fact.id
        assert memory.embed_pending() == 2
        assert (memory.search_archive("a seat")[0].cosine or 0) > 0
        assert not memory.check()
        assert [move.event for move in memory.ledger() if "embedded anew" in move.reason] == ["embedder"]


def test_importing_it_loads_no_chroma() -> None:
    code = "import sys, pager.vectors.chroma_embedder; print('chromadb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_whoever_waits_comes_before_the_rest_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    waiting: list[Thread] = []

    def slowly(texts: Sequence[str]) -> None:
        calls.append(texts[0])
        if len(calls) == 1:
            waiting.append(Thread(target=embedder.embed, args=(["a question"],)))
            waiting[0].start()
            while not embedder._next.locked():  # until it has come as far as that
                pass

    monkeypatch.setattr(Shelf, "on_call", staticmethod(slowly))
    embedder = shelf()
    embedder.embed(["first", *["text"] * 15, "second"])
    waiting[0].join()
    assert calls == ["first", "a question", "second"]
