"""The files of one agent, all in its directory. Nothing else builds these paths.

pager.db     the truth (SQLite)
chroma/      the vector index, which can be rebuilt from it
lock         names the process that writes
inbox/       commands that other processes have left for that process
"""

from pathlib import Path


class AgentFiles:
    """The paths of one agent's files, whether they exist or not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "pager.db"
        self.index = directory / "chroma"
        self.lock = directory / "lock"
        self.inbox = directory / "inbox"

    def make_directory(self) -> None:
        """Create the directory and its missing parents, readable by their owner only. Raises OSError."""
        missing = [each for each in (self.directory, *self.directory.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
        if not self.directory.is_dir():
            raise NotADirectoryError(20, "it is a file", str(self.directory))
