"""The store: one SQLite database, and its methods by subject. Nothing outside this folder speaks SQL.

>>> store = SqliteStore(directory / "pager.db", clock.zone)
>>> with store.transaction():
...     step = store.conversation.append_step("user", "user", at=0)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import tzinfo
from pathlib import Path

from pager.store.archive import ArchiveTable
from pager.store.conversation import ConversationTable
from pager.store.core import CoreTable
from pager.store.database import Database
from pager.store.journal import JournalTable
from pager.store.lists import BrowseTable
from pager.store.maintenance import UpkeepTable
from pager.store.prompt import PromptTable
from pager.store.said import SaidTable
from pager.store.seam import ALWAYS, Said, Span, Store, Told

__all__ = ["ALWAYS", "Said", "Span", "SqliteStore", "Store", "Told"]


class SqliteStore:
    """All of an agent's state in one file."""

    def __init__(self, path: Path, zone: tzinfo, *, read_only: bool = False) -> None:
        self.db = Database(path, read_only=read_only)
        self.conversation = ConversationTable(self.db)
        self.said = SaidTable(self.db)
        self.archive = ArchiveTable(self.db, zone)
        self.core = CoreTable(self.db, zone)
        self.prompt = PromptTable(self.db)
        self.journal = JournalTable(self.db, zone)
        self.upkeep = UpkeepTable(self.db)
        self.browse = BrowseTable(self.db, zone, self.archive, self.core, self.journal)

    @property
    def read_only(self) -> bool:
        return self.db.read_only

    def revision(self) -> int:
        """Another number when another process has committed."""
        return self.db.value("PRAGMA data_version")

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[None]:
        return self.db.transaction(durable=durable)

    @property
    def in_transaction(self) -> bool:
        return self.db.in_transaction

    def undo(self) -> None:
        self.db.undo()

    def after_commit(self, action: Callable[[], None]) -> None:
        self.db.after_commit(action)

    def when_rolled_back(self, action: Callable[[], None]) -> None:
        self.db.on_rollback = action

    def close(self) -> None:
        self.db.close()
