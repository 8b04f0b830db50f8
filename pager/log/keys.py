"""The keys of agents. Each has a key of its own, which its helpers share, wrapped by a master key of this process.

A master key is 32 bytes in base64, in $SELFPAGER_MASTER_KEY or in the file that $SELFPAGER_MASTER_KEY_FILE names. There
may be several, apart by spaces or lines: the first wraps, all unwrap. None of them is ever in the database. A key is
wrapped for the name of its agent: an agent that is given another one's name cannot be opened by it.
"""

import base64
import binascii
import hashlib
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep

from pager.errors import StorageError, UnavailableError
from pager.log.postgres import Server, Transaction
from pager.log.seal import PLAIN, Box, place

VARIABLE, FILE_VARIABLE = "SELFPAGER_MASTER_KEY", "SELFPAGER_MASTER_KEY_FILE"
LACKS_KEY = "its master key is missing here"  # for those who do not run it
KEY_BYTES = 32
PAUSE_SECONDS = 0.1  # for the transactions of others
OF_OTHERS = 0o007  # the rights of those who are neither the owner of a file nor of its group

_OF_AGENT = """
    SELECT k.agent, k.id, k.master, k.wrapped, root.name FROM selfpager.agents a
    JOIN selfpager.agents root ON root.name = split_part(a.name, '/', 1)
    JOIN selfpager.keys k ON k.agent = root.id WHERE a.id = %s"""


def master_keys(environ: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Return the master keys by their ids, the one that wraps first. Empty if there is none. Raises StorageError."""
    environ = os.environ if environ is None else environ
    where, text = f"${VARIABLE}", environ.get(VARIABLE, "")
    if file := environ.get(FILE_VARIABLE):
        if text:
            raise StorageError(f"${VARIABLE} and ${FILE_VARIABLE} are both set; keep one of them.")
        where = file
        try:
            if Path(file).stat().st_mode & OF_OTHERS:
                raise StorageError(f"the master key in {file} is open to every user of this machine: chmod o= {file}")
            text = Path(file).read_text("ascii")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not base64"
            raise StorageError(f"the master key in {file} cannot be read: {why}.") from None
    found = dict[str, bytes]()
    for word in text.split():
        try:
            key = base64.b64decode(word, altchars=b"-_" if set(word) & set("-_") else None, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            way = "make one with: openssl rand -base64 32"
            raise StorageError(f"a master key in {where} is not {KEY_BYTES} bytes in base64; {way}.")
        found[hashlib.sha256(b"selfpager master key" + key).hexdigest()[:12]] = key
    if file and not found:
        raise StorageError(f"{file} holds no master key; make one with: openssl rand -base64 32")
    return found


class Keys:
    """The keys in one Postgres."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def box(self, reading: Transaction, agent: int) -> Box:
        """Return what opens the rows of an agent, or of the agent whose helper it is."""
        found = reading.rows(_OF_AGENT, (agent,))
        if not found:
            return PLAIN
        from pager.log.cipher import Cipher

        root, key, master, wrapped, name = found[0]
        return Cipher(key, self._unwrap(root, key, master, wrapped, name))

    def _unwrap(self, root: int, key: uuid.UUID, master: str, wrapped: bytes, name: str) -> bytes:
        from pager.log.cipher import Cipher

        masters = master_keys()
        if master not in masters:
            given = f"this process has {', '.join(masters)}" if masters else "this process has none"
            text = f"the agent {name!r} is encrypted, and its key is wrapped by the master key {master}; {given}. Set "
            way = f"{FILE_VARIABLE} to a file with that key, or {VARIABLE}. Nothing was changed."
            raise UnavailableError(text + way, LACKS_KEY, is_refused=True)
        return Cipher(None, masters[master]).open(wrapped, place("key", root, key, name))

    def make(self, transaction: Transaction, agent: int) -> Box:
        """Return what seals the rows of a new agent. It gets a key if there is a master key.

        Raises UnavailableError where there is none though other agents are encrypted: that is a mistake, not a wish.
        """
        [(is_helper, some_are)] = transaction.rows(
            """SELECT strpos(name, '/') > 0, EXISTS (SELECT FROM selfpager.keys)
               FROM selfpager.agents WHERE id = %s""",
            (agent,),
        )
        if not is_helper and master_keys():
            self.replace(transaction, agent)
        elif not is_helper and some_are:
            text = f"agents in {self._server.public} are encrypted, and this process has no master key to encrypt "
            way = f"a new one: set {FILE_VARIABLE} or {VARIABLE}."
            raise UnavailableError(text + way, LACKS_KEY, is_refused=True)
        return self.box(transaction, agent)

    def replace(self, transaction: Transaction, agent: int) -> None:
        """Give an agent a new key. Its old one is gone, so its rows have to be sealed anew in this transaction."""
        key, secret = uuid.uuid4(), os.urandom(KEY_BYTES)
        transaction.rows("DELETE FROM selfpager.keys WHERE agent = %s", (agent,))
        [(name,)] = transaction.rows("SELECT name FROM selfpager.agents WHERE id = %s", (agent,))
        sql = "INSERT INTO selfpager.keys VALUES (%s, %s, %s, %b)"
        transaction.rows(sql, (agent, key, *self._wrap(agent, key, name, secret)))

    def _wrap(self, agent: int, key: uuid.UUID, name: str, secret: bytes) -> tuple[str, bytes]:
        from pager.log.cipher import Cipher

        masters = master_keys()
        if not masters:
            way = "make one with `openssl rand -base64 32`, and name its file"
            raise StorageError(f"there is no master key: {way} in {FILE_VARIABLE}.")
        master = next(iter(masters))
        return master, Cipher(None, masters[master]).seal(secret, place("key", agent, key, name))

    def wrap_again(self) -> tuple[int, int]:
        """Wrap every key with the first master key. Return how many keys were, and how many there are.

        It is one transaction: after an error all are as they were.
        """
        with self._server.transaction() as transaction:
            # Who gives an agent a key has changed this table before it reads the master keys, and is waited for here.
            transaction.rows("LOCK TABLE selfpager.keys IN SHARE ROW EXCLUSIVE MODE")
            found = transaction.rows(
                """SELECT k.agent, k.id, k.master, k.wrapped, a.name FROM selfpager.keys k
                   JOIN selfpager.agents a ON a.id = k.agent ORDER BY k.agent"""
            )
            first = next(iter(master_keys()), None)
            old = [row for row in found if row[2] != first]
            for row in old:
                values = (*self._wrap(row[0], row[1], row[4], self._unwrap(*row)), row[0])
                transaction.rows("UPDATE selfpager.keys SET master = %s, wrapped = %b WHERE agent = %s", values)
        self.forget_past()
        return len(old), len(found)

    def has(self, agent: int) -> bool:
        """Return True if an agent has a key."""
        return bool(self._server.ask("SELECT 1 FROM selfpager.keys WHERE agent = %s", (agent,)))

    def forget_past(self) -> None:
        """Write the table of keys anew, until what was deleted or replaced is in none of its files."""
        waits_until = monotonic() + self._server.limit_seconds
        try:
            while self._server.write_anew("selfpager.keys"):
                if monotonic() > waits_until:
                    raise StorageError("a transaction that began before it goes on still, such as a backup.")
                sleep(PAUSE_SECONDS)
        except StorageError as error:
            text = "the key was destroyed, but the file of the table of keys may still hold it"
            raise StorageError(f"{text}: {error} Then run `selfpager rekey`, which writes it anew.") from error
