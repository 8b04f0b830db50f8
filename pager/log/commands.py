"""Commands of other processes (`tell`, the debug view) as rows, which wait for the owner of the agent."""

import os
from collections.abc import Callable, Mapping

from pager.errors import StorageError
from pager.log.log import Log
from pager.log.postgres import Transaction
from pager.log.rows import Rows
from pager.log.seal import Box, place

# With the key that the agent has at this moment, or not at all: see `PostgresPlace.change_key`.
_SEND = """
    INSERT INTO selfpager.commands SELECT %s, %s, %b WHERE
        (SELECT k.id FROM selfpager.agents a JOIN selfpager.agents root ON root.name = split_part(a.name, '/', 1)
         JOIN selfpager.keys k ON k.agent = root.id WHERE a.id = %s) IS NOT DISTINCT FROM %s::uuid
    ON CONFLICT (agent, id) DO UPDATE SET command = excluded.command RETURNING id"""
ATTEMPTS = 3


class CommandRows:
    """Pending commands as rows. The owner asks for them only when the log says that there are some."""

    def __init__(self, rows: Rows, agent: int, box: Box | None = None, log: Log | None = None) -> None:
        self._rows = rows
        self._agent = agent
        self._found_box = box
        self._log = log
        self._read: Mapping[str, bytes] = {}

    @property
    def _box(self) -> Box:
        if self._found_box is None:
            with self._rows.server.snapshot() as reading:
                self._found_box = self._rows.keys.box(reading, self._agent)
        return self._found_box

    def ids(self) -> list[str]:
        """Return the ids of pending commands, oldest first."""
        if self._log is not None and not self._log.has_commands:
            return []
        self._read = self._rows.commands(self._agent)
        if self._log is not None:
            self._log.has_commands = bool(self._read)
        return list(self._read)

    def read(self, command: str) -> str:
        """Return the text of one of these."""
        box = self._box
        try:
            return box.open(self._read[command], place("command", self._agent, command)).decode()
        except StorageError as error:
            raise ValueError(str(error)) from None  # it is set aside, as everything that is no command

    def new_id(self, sent: str) -> str:
        """Return an id that no process of another machine uses: there may be one of the same number."""
        return f"{sent}-{os.urandom(4).hex()}"

    def write(self, command: str, text: str) -> None:
        """Store a command."""
        for _ in range(ATTEMPTS):
            box = self._box
            data = box.seal(text.encode(), place("command", self._agent, command))
            if self._rows.server.ask(_SEND, (self._agent, command, data, self._agent, box.key)):
                break
            self._found_box = None  # the agent has got another key
        else:
            raise StorageError("the agent's key changes all the time; nothing was sent. Try again.")
        if self._log is not None:
            self._log.has_commands = True

    def drop(self, command: str) -> None:
        """Delete a command."""
        self._rows.drop_command(self._agent, command)

    def set_aside(self, command: str) -> str | None:
        """Delete what is no command: the ledger says what it was."""
        self.drop(command)
        return command

    def erase(self, erase: Callable[[str], str | None]) -> set[str]:
        """Erase in commands. Return the ids of the changed."""
        found = set[str]()
        self._read = self._rows.commands(self._agent)
        for command in self._read:
            try:
                text = self.read(command)
            except ValueError:  # it is no command, and may hold anything
                self.drop(command)
                found.add(command)
                continue
            cleaned = erase(text)
            if cleaned is None:
                self.drop(command)
            elif cleaned != text:
                self.write(command, cleaned)
            if cleaned != text:
                found.add(command)
        return found


def seal_commands(transaction: Transaction, agent: int, old: Box, new: Box) -> None:
    """Seal the pending commands of an agent with another key."""
    for command, data in transaction.rows("SELECT id, command FROM selfpager.commands WHERE agent = %s", (agent,)):
        at = place("command", agent, command)
        sql = "UPDATE selfpager.commands SET command = %b WHERE agent = %s AND id = %s"
        transaction.rows(sql, (new.seal(old.open(data, at), at), agent, command))
