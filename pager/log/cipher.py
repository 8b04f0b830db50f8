"""AES-256-GCM: the only file that knows cryptography.

A nonce is random. A number of a commit would not do: after a failover two commits have the same. Random ones are safe
for 2 ** 32 rows of a key, and an agent writes some ten rows a turn; `selfpager rekey NAME` gives it a new key.
"""

import os
from uuid import UUID

from pager.errors import RejectedError, StorageError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError:
    raise RejectedError(
        "encrypted agents need the package cryptography, which is not installed: pip install 'selfpager[encryption]'"
    ) from None

KEY_BYTES, NONCE_BYTES = 32, 12


class Cipher:
    """Seals with one key."""

    def __init__(self, key: UUID | None, secret: bytes) -> None:
        self.key = key
        self._aead = AESGCM(secret)

    def seal(self, data: bytes, place: bytes) -> bytes:
        """Encrypt data for a place."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, data, place)

    def open(self, data: bytes, place: bytes) -> bytes:
        """Decrypt what was sealed for this place. Raises StorageError for anything else."""
        try:
            return self._aead.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], place)
        except (InvalidTag, ValueError):
            raise StorageError(
                f"a row in Postgres ({place.decode()}) is not what was encrypted for its place: it was damaged, moved "
                "there, or written with another key. Restore the database from its backup."
            ) from None
