"""From a directory to the parts of a memory: lock, database, embedder, index. The composition root of `pager`.

Opening is cheap: neither the embedder's weights nor Chroma are loaded before a search by meaning needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import getattr_static
from pathlib import Path
from typing import Any, Literal

from pager.arguments import text_of_person
from pager.clock import Clock
from pager.conversation.content import check_tools
from pager.errors import NotFoundError, RejectedError, StorageError
from pager.store import SqliteStore, Store
from pager.store.files import AgentFiles
from pager.store.ledger import Ledger
from pager.tiers.recall import Recall
from pager.upkeep.lock import AgentLock
from pager.vectors.embedder import Embedder, EmbedderUnavailableError, default_embedder
from pager.vectors.embedding import Embedding
from pager.vectors.facts import Meaning
from pager.vectors.index import VectorIndex
from pager.vectors.indexing import Indexing, StoredVectors
from pager.vectors.turns import SaidMeaning

EmbedderChoice = Embedder | Literal["default"] | None


@dataclass(frozen=True, slots=True)
class Opened:
    files: AgentFiles
    store: Store
    lock: AgentLock | None


def check_opening(
    instructions: Any, tools: Any, core: Any, model: Any, thinking: Any, cache_ttl: Any, embedder: Any, **others: Any
) -> None:  # fmt: skip
    """Refuses what a program handed over by mistake."""
    for name, value in (("instructions", instructions), ("model", model), ("thinking", thinking)):
        text_of_person(value, name)
    check_tools(tools)
    for name, (value, kind, what) in others.items():
        if value is not None and not (callable(value) if kind is callable else isinstance(value, kind)):
            raise RejectedError(f"{name} is {value!r:.100}; give {what}, or leave it out.")
    if core is not None and not isinstance(core, Mapping):
        raise RejectedError(f"core is {core!r:.100}; give a dict of BlockSpec by name.")
    if cache_ttl not in (None, "5m", "1h"):
        raise RejectedError(f"cache_ttl is {cache_ttl!r:.100}; give '5m', '1h' or None.")
    if embedder not in (None, "default") and not _is_embedder(embedder):
        raise RejectedError(f"embedder is {embedder!r:.100}; give 'default', None or an Embedder.")


def open_directory(directory: Path, clock: Clock) -> Opened:
    """The directory for its one writer: made if it is missing, locked, its database brought up to date."""
    files = AgentFiles(directory)
    try:
        files.make_directory()
    except OSError as error:
        raise StorageError(
            f"{directory} cannot be made ({error.strerror}). Choose a directory that you may write."
        ) from None
    lock = AgentLock(files.lock)
    try:
        if (lock.was_held or files.index.exists()) and not files.database.exists():
            raise StorageError(
                f"{directory} had a pager.db and has none: the memory itself is gone. Restore a backup of the "
                "directory, or remove it to begin anew."
            )
        store = SqliteStore(files.database, clock.zone)
        lock.say(clock)
        return Opened(files, store, lock)
    except BaseException:
        lock.release()
        raise


def _is_embedder(value: Any) -> bool:
    """An object, not its class. Looked at and not asked: to know its dimension it may have to embed something."""
    names = ("fingerprint", "dimension", "embed")
    return not isinstance(value, type) and all(getattr_static(value, name, None) is not None for name in names)


def open_for_reading(directory: Path, clock: Clock) -> Opened:
    files = AgentFiles(directory)
    path = files.database
    try:
        known = path.is_file()
    except OSError as error:
        raise StorageError(f"{directory} cannot be read ({error.strerror}). Give another directory.") from None
    if not known:
        raise NotFoundError(f"there is no memory in {directory}; Memory.open makes one.")
    return Opened(files, SqliteStore(path, clock.zone, read_only=True), None)


def open_meaning(
    opened: Opened, clock: Clock, ledger: Ledger, choice: EmbedderChoice, index: VectorIndex | None
) -> Meaning | None:
    """Search by meaning, when there is an embedder. Without `index` the writer gets Chroma's."""
    if choice is None:
        return None
    try:
        embedder = default_embedder() if choice == "default" else choice
    except EmbedderUnavailableError as error:
        known = ledger.movements(events=["embedder"], limit=1)
        if not known or known[-1].reason != str(error):  # once, not at every opening
            ledger.write("embedder", reason=str(error))
        return None
    if index is None and opened.lock is not None:
        from pager.vectors.chroma.index import ChromaIndex

        path = opened.files.database
        source = StoredVectors(lambda: SqliteStore(path, clock.zone, read_only=True), embedder)
        index = ChromaIndex(opened.files.index, source)
    embedding = Embedding(opened.store, ledger, embedder, clock)
    return Meaning(opened.store, embedding, Indexing(opened.store, embedding, index) if index else None)


def open_recall(store: Store, clock: Clock, ledger: Ledger, meaning: Meaning | None) -> Recall:
    return Recall(store, clock, ledger, SaidMeaning(store, meaning.embedding) if meaning else None)
