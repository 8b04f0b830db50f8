"""Sealing: the form in which an agent's rows are stored, in clear or encrypted with a key of its own.

Each row is sealed for its place, which `place` names: the kind of row, the agent, its numbers. An encrypted row opens
nowhere else: not as another commit or chunk, not as another agent's.

>>> PLAIN.open(PLAIN.seal(b"pages", place("commit", 7, 12, 0)), place("commit", 7, 12, 0))
b'pages'
"""

from typing import Protocol
from uuid import UUID


class Box(Protocol):
    """Seals the rows of one agent."""

    @property
    def key(self) -> UUID | None:
        """Return the id of the key; None for rows in clear."""
        ...

    def seal(self, data: bytes, place: bytes) -> bytes:
        """Return data as the row at a place holds it."""
        ...

    def open(self, data: bytes, place: bytes) -> bytes:
        """Return what was sealed for this place. Raises StorageError for anything else."""
        ...


class Plain:
    """Rows in clear: zlib's checksum says if one was damaged."""

    key: UUID | None = None

    def seal(self, data: bytes, place: bytes) -> bytes:
        """Return data as it is."""
        return data

    def open(self, data: bytes, place: bytes) -> bytes:
        """Return data as it is."""
        return data


PLAIN = Plain()


def place(kind: str, agent: int, *numbers: object) -> bytes:
    """Return the name of the place of a row. Numbers and ids, none of which has a space."""
    return " ".join(map(str, ("selfpager", kind, agent, *numbers))).encode()
