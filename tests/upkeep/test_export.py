"""The export of an agent. (Its checksum and its way back: tests/cli/test_cli_upkeep.py.)"""

from pathlib import Path

import pytest

from pager import MemoryReader, StorageError
from pager.upkeep.export import is_export
from tests.support import Talk


def test_an_export_replaces_nothing_and_leaves_nothing_when_it_fails(talk: Talk, tmp_path: Path) -> None:
    file = tmp_path / "export"
    talk.memory.export(file)
    assert (is_export(file), file.stat().st_mode & 0o777) == (True, 0o600)
    with pytest.raises(StorageError, match="exists already; choose another name"):
        talk.memory.export(file)
    with pytest.raises(StorageError, match=r"missing.export cannot be written .* Choose another place"):
        talk.memory.export(tmp_path / "missing" / "export")
    talk.memory.close()
    with pytest.raises(StorageError):
        talk.memory.export(tmp_path / "closed")
    assert not (tmp_path / "closed").exists()


def test_a_damaged_database_is_not_blamed_on_the_target(talk: Talk, tmp_path: Path) -> None:
    talk.memory.record_many([{"role": "user", "text": f"message {number} " * 40} for number in range(100)])
    talk.memory.close()
    file = talk.directory / "pager.db"
    raw = file.read_bytes()
    most = len(raw) * 3 // 4  # behind the schema
    file.write_bytes(raw[:most] + b"\xff" * (len(raw) - most))
    with (
        MemoryReader.open(talk.directory) as reader,
        pytest.raises(StorageError, match=r"pager\.db is damaged") as caught,
    ):
        reader.export(tmp_path / "copy")
    assert "copy cannot be written" not in str(caught.value)
    assert not (tmp_path / "copy").exists()
