"""One logger, which says nothing until it is asked to."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from agents.cli.main import run
from agents.logs import log

ROOT = Path(__file__).parents[2]
FAILS = "from agents.logs import log\n{more}\nlog.error('a tool failed')"


@pytest.mark.parametrize(
    ("more", "said"), [("", ""), ("import logging; log.addHandler(logging.StreamHandler())", "a tool failed\n")]
)
def test_the_log_is_silent_until_a_program_gives_it_a_handler(more: str, said: str) -> None:
    command = [sys.executable, "-c", FAILS.format(more=more)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", said)


def test_a_command_shows_it_with_debug(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text('def broken() -> None:\n    """Fail."""\n    raise OSError("no disk")\n')
    more = "archival: {embedder: none}\ntools: [{use: 'broken:broken'}]\n"
    (tmp_path / "replies.yaml").write_text("- call: {broken: }\n- {otherwise: true, say: It is broken.}\n")
    model = "{provider: scripted, script: replies.yaml}"
    (tmp_path / "x.yaml").write_text(f"name: x\nmodel: {model}\n{more}", encoding="utf-8")
    arguments = ["run", str(tmp_path / "x.yaml"), "Break it.", "--home", str(tmp_path)]
    handlers = list(log.handlers)
    run(arguments)
    assert "Traceback" not in capsys.readouterr().err
    run([*arguments, "--new", "--debug"])
    assert 'raise OSError("no disk")' in capsys.readouterr().err
    assert logging.getLogger("selfpager").handlers == handlers
