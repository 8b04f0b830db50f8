"""Opt in with `make test-local URL=http://127.0.0.1:8080`: a server of your own against what must hold anyway."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.local.invariants import live


def test_the_laws_hold_with_a_model_of_your_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = int(os.environ.get("LOCAL_WINDOW") or 8192)
    life = live(tmp_path, os.environ["LOCAL_BASE_URL"], model=os.environ.get("LOCAL_MODEL") or "local", window=window)
    with capsys.disabled():
        print(f"\n{life}")  # noqa: T201 - what this model can do is what its owner wants to know
