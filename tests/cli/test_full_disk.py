"""Commands on a disk that is full (no file may grow beyond a size): a sentence, and nothing half written is left."""

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import COMMAND, SCRIPTED, TIMEOUT_S, environment, write_agent

pytestmark = pytest.mark.slow


def on_full_disk(folder: Path, kilobytes: int, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "-", *COMMAND, *map(str, arguments)], cwd=folder,
        input="hello\n", env=environment(), timeout=TIMEOUT_S, text=True, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["chat", "run", "demo", "init"])
def test_a_full_disk_is_a_sentence_and_leaves_no_half_of_anything(tmp_path: Path, command: str) -> None:
    (tmp_path / "ok.yaml").write_text("- {say: Fine., otherwise: true}\n")
    file, home = write_agent(tmp_path, model=SCRIPTED), tmp_path / "home"
    arguments = {"chat": (file,), "run": (file, "Count."), "demo": (), "init": ("agent", "--tools")}[command]
    options = () if command == "init" else ("--home", home)
    done = on_full_disk(tmp_path, 0 if command in ("init", "demo") else 8, command, *arguments, *options)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("selfpager: ")
    assert "Traceback" not in done.stderr
    assert "--debug shows where" not in done.stderr
    assert "free space" in done.stderr
    assert not [*tmp_path.rglob("pager.db*"), *tmp_path.glob("agent.yaml"), *tmp_path.glob("tools.py")]
    assert not home.exists() or command == "demo" or not [*home.glob("*/pager.db")]
