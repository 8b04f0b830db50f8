"""Single values by key, and the commands that were carried out. SQL."""

from pager.store.database import Database

PROGRAM_VALUE = "note:"  # how the keys of values begin that a program stores
TASK = f"{PROGRAM_VALUE}task"  # the long task of an agent, which `run --resume` would go on with
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
        """Forget the index on a server: it is of the memory from which this one was copied."""
        for key in (INDEX_STATE, INDEX_OWNER):
            self.put(key, None)

    def disown(self) -> None:
        """Forget what of a copy is not for the memory that is made from it: its index on a server, its limits, the
        task that it was at, and what a server knew of it."""
        carried = (
            "key GLOB 'note:*' OR key IN ('embedder', 'vectors_owed', 'purging', 'purges', 'inbox', 'latest_fact')"
        )
        served = f"key GLOB '{PROGRAM_VALUE}serve:*'"
        self._db.run(f"DELETE FROM meta WHERE NOT ({carried}) OR key = ? OR {served}", (TASK,))

    def command(self, command_id: str) -> str | None:
        """Return the outcome of a command; None if it was not carried out."""
        return self._db.value("SELECT outcome FROM commands WHERE id = ?", (command_id,))

    def save_command(self, command_id: str, at: int, kind: str, outcome: str) -> None:
        """Store the outcome of a command."""
        self._db.run("INSERT INTO commands VALUES (?, ?, ?, ?)", (command_id, at, kind, outcome))
