"""All of an agent's state in one SQLite file. Nothing outside of this room speaks SQL, or builds an agent's paths.

`Store` is the open database, with one table module per group of tables: `conversation` (steps, parts, calls), `said`
(searching what was said), `records` (messages from elsewhere), `archive` (facts), `core` (blocks), `prompt` (epochs,
requests, residency, pins), `ledger`, `skills`, `sleeps`, `settings`, `maintenance` (audits, purging, copies), `lists`
(long lists for views). `schema` explains every column, `rows` are the rows handed up, `files` the paths. Every room of
`pager` above this one may call it.
"""

from pathlib import Path

from pager.clock import Clock
from pager.errors import StorageError
from pager.safety import address_space
from pager.store.archive import ArchiveTable
from pager.store.conversation import ConversationTable
from pager.store.core import CoreTable
from pager.store.database import CommitLog, Database
from pager.store.ledger import LedgerTable
from pager.store.lists import ListsTable
from pager.store.maintenance import MaintenanceTable
from pager.store.prompt import PromptTable
from pager.store.records import RecordsTable
from pager.store.said import SaidTable
from pager.store.settings import SettingsTable
from pager.store.skills import SkillsTable
from pager.store.sleeps import SleepsTable

__all__ = ["Store"]


class Store(Database):
    """The database of one agent, with its tables."""

    def __init__(
        self, path: Path, clock: Clock, *, read_only: bool = False, log: CommitLog | None = None
    ) -> None:  # fmt: skip
        if lack := address_space.lacking_to_open():
            raise StorageError(lack)
        super().__init__(path, read_only=read_only, log=log)
        self.conversation = ConversationTable(self)
        self.said = SaidTable(self)
        self.records = RecordsTable(self, clock.zone)
        self.archive = ArchiveTable(self, clock.zone)
        self.core = CoreTable(self, clock.zone)
        self.prompt = PromptTable(self)
        self.ledger = LedgerTable(self, clock)
        self.settings = SettingsTable(self)
        self.skills = SkillsTable(self)
        self.sleeps = SleepsTable(self, clock.zone)
        self.maintenance = MaintenanceTable(self)
        self.lists = ListsTable(self, clock.zone, self.archive, self.core, self.ledger)
