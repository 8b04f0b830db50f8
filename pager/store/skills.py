"""Skills: instructions that are pages. SQL."""

from pager.store.database import Database
from pager.types import Skill, SkillSpec


class SkillsTable:
    """All skills that the agent has or had."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def active(self) -> list[Skill]:
        """Return the skills that the agent has, oldest first."""
        rows = self._db.rows("SELECT id, name, description FROM skills WHERE active = 1 ORDER BY id")
        return [Skill(f"k{row['id']}", row["name"], row["description"]) for row in rows]

    def text(self, number: int) -> str | None:
        """Return the text of a skill that the agent has; None for any other."""
        return self._db.value("SELECT text FROM skills WHERE id = ? AND active = 1", (number,))

    def put(self, spec: SkillSpec) -> None:
        """Store a skill under its name, which keeps its number."""
        self._db.run(
            "INSERT INTO skills (name, description, text, active) VALUES (?, ?, ?, 1) ON CONFLICT (name) DO UPDATE"
            " SET description = excluded.description, text = excluded.text, active = 1",
            (spec.name, spec.description, spec.text),
        )

    def disown(self) -> None:
        """Take all skills away: of a copy they are somebody else's instructions."""
        self._db.run("UPDATE skills SET active = 0")

    def remove(self, number: int) -> None:
        """Take a skill away. Its number stays with its name."""
        self._db.run("UPDATE skills SET active = 0 WHERE id = ?", (number,))
