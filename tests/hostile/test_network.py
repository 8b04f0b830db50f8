"""Offline, nothing is looked up and nothing is sent, by Python or by native code, and only the home is written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.network import ROOT


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network of its own")
def test_an_offline_agent_asks_nobody_and_writes_nowhere_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.hostile.network", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    if "Operation not permitted" in done.stderr:
        pytest.skip("this root may make no network of its own; a container without CAP_SYS_ADMIN cannot prove it")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["names"], seen["without_route"]) == ([], 0)
    work = tmp_path / "work"
    given = ("anna.yaml", "anthropic.yaml", "ok.yaml", "openai.yaml")  # by the test itself
    assert sorted(seen["written"]) == [str(work / name) for name in given]
    assert "noticed.example" in seen["control"]["names"], "a name that is looked up is noticed"
    assert seen["control"]["without_route"] > 0, "a packet to another host is noticed"


@pytest.mark.parametrize(("own", "used"), [("", "1"), ("0", "0")])
def test_a_persons_own_setting_of_telemetry_is_respected(own: str, used: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environ |= {"ORT_DISABLE_TELEMETRY": own} if own else {}
    code = "import os, pager.vectors.minilm; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == used
