"""Single values by key, and the commands that were carried out. SQL."""

from pager.store.database import Database

PROGRAM_VALUE = "note:"  # how the keys of values begin that a program stores
INDEX_STATE, INDEX_OWNER = "index", "index_owner"  # of a vector index on a server


class SettingsTable:
    """Values that belong to no row of the conversation or the archive."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, key: str) -> str | None:
        """Return a value; None if there is none."""
        return self._db.value("SELECT value FROM meta WHERE key = ?", (key,))

    def put(self, key: str, value: str | None) -> None:
        """Store a value; None deletes it."""
        if value is None:
            self._db.run("DELETE FROM meta WHERE key = ?", (key,))
        else:
            self._db.run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def disown_index(self) -> None:
        """Forget the index on a server, and which server: they are of the memory from which this one was copied."""
        for key in (INDEX_STATE, INDEX_OWNER, f"{PROGRAM_VALUE}index"):
            self.put(key, None)

    def command(self, command_id: str) -> str | None:
        """Return the outcome of a command; None if it was not carried out."""
        return self._db.value("SELECT outcome FROM commands WHERE id = ?", (command_id,))

    def save_command(self, command_id: str, at: int, kind: str, outcome: str) -> None:
        """Store the outcome of a command."""
        self._db.run("INSERT INTO commands VALUES (?, ?, ?, ?)", (command_id, at, kind, outcome))
