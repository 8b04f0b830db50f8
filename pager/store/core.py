"""Core blocks with all their versions. SQL."""

from datetime import tzinfo

from pager.clock import from_micros, to_micros
from pager.store.database import Database, Row, names_stored, stored_names
from pager.types import FOREVER, Block

# What is stored as a block has it.
_AS_IT_IS = (
    "name", "value", "description", "limit_tokens", "used_tokens", "read_only", "file", "retired", "actor",
    "untrusted_writes",
)  # fmt: skip
# One look into the index for each name, however many versions there are.
_NEWEST = """
  WITH RECURSIVE names (name) AS (
    SELECT min(name) FROM blocks
    UNION ALL SELECT (SELECT min(name) FROM blocks WHERE name > names.name) FROM names WHERE names.name IS NOT NULL
  )
  SELECT b.* FROM names JOIN blocks b ON b.id = (SELECT max(id) FROM blocks WHERE name = names.name AND id <= :through)
"""


class CoreTable:
    """Versions of blocks; the newest of a name is what it reads now."""

    def __init__(self, db: Database, zone: tzinfo) -> None:
        self._db = db
        self._zone = zone
        self.all_seen = False  # True: it was looked up, and the agent has seen every change
        db.when_rolled_back(self.invalidate)

    def invalidate(self) -> None:
        """Read again at the next use: a change was rolled back."""
        self.all_seen = False

    def append(self, block: Block, place: int, *, unseen: bool) -> int:
        """Insert a version of a block. Return its number."""
        self.all_seen = self.all_seen and not unseen
        columns, newest = ", ".join(_AS_IT_IS), "(SELECT ifnull(max(id), 0) FROM steps)"
        sql = f"INSERT INTO blocks ({columns}, place, at, unseen, sources, step) VALUES ({'?, ' * 14}{newest})"
        values = [getattr(block, name) for name in _AS_IT_IS]
        sources = names_stored(block.via or block.emptied_by)
        return self._db.run(sql, (*values, place, to_micros(block.at), unseen, sources))

    def blocks(self, before_step: int | None = None) -> list[Block]:
        """Return the blocks in their order as they read now, or before a step was written."""
        through = FOREVER if before_step is None else self._db.last_before("blocks", before_step)
        rows = self._db.rows(f"{_NEWEST} WHERE b.retired = 0 ORDER BY b.place, b.name", {"through": through})
        return [self.block_of(row) for row in rows]

    def block(self, name: str) -> tuple[Block, int] | None:
        """Return the newest version of a block, retired or not, and its place."""
        row = self._db.row("SELECT * FROM blocks WHERE name = ? ORDER BY id DESC LIMIT 1", (name,))
        return (self.block_of(row), row["place"]) if row else None

    def count_versions(self, name: str, through: int) -> int:
        """Count the versions of a block, up to one of them."""
        return self._db.value("SELECT count(*) FROM blocks WHERE name = ? AND id <= ?", (name, through))

    def last_place(self) -> int:
        """Return the last place of a block; -1 if there is none."""
        return self._db.value("SELECT max(place) FROM blocks", default=-1)

    def unseen(self) -> list[Block]:
        """Return the blocks that somebody else changed since the agent saw them, as they read now."""
        # Needed before every request, and nearly always there is none.
        if self.all_seen or self._db.row("SELECT 1 FROM blocks WHERE unseen = 1 LIMIT 1") is None:
            self.all_seen = not self._db.read_only
            return []
        names = "SELECT name FROM blocks WHERE unseen = 1"
        sql = f"{_NEWEST} WHERE b.name IN ({names}) ORDER BY b.place, b.name"
        rows = self._db.rows(sql, {"through": FOREVER})
        return [self.block_of(row) for row in rows]

    def recount(self, version: int, used_tokens: int) -> None:
        """Store the counted tokens of a version."""
        self._db.run("UPDATE blocks SET used_tokens = ? WHERE id = ?", (used_tokens, version))

    def seen(self) -> None:
        """Mark all blocks as seen by the agent."""
        self._db.run("UPDATE blocks SET unseen = 0 WHERE unseen = 1")

    def block_of(self, row: Row) -> Block:
        """Return the block of a row."""
        names, is_empty = tuple(sorted(stored_names(row["sources"]))), not row["value"].strip()
        return Block(
            row["name"], row["value"], row["description"], row["limit_tokens"], row["used_tokens"],
            bool(row["read_only"]), row["file"], row["id"], row["actor"], from_micros(row["at"], self._zone),
            bool(row["retired"]), row["untrusted_writes"], () if is_empty else names, names if is_empty else (),
        )  # fmt: skip
