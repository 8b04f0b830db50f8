"""`selfpager demo` as a person runs it: one whole run, offline, and what its output and the agents that it left say."""

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.cells import cell_len

from agents.cli.demo import check
from agents.config import agent_config as config
from agents.demo.stage import AGENTS, DemoError, Stage
from pager import Memory, MemoryReader
from tests.support.cli import command_line, environment

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
MINUTES = 10 * 60  # a process that hangs is a failure, not a wait
WITHOUT_BROWSER = environment(BROWSER="true")  # `true` opens nothing, and says that it did
# Python's own hook: every child inherits it, and no code can get around it.
ONLY_LOOPBACK = """
import sys
def hook(event, arguments):
    address = arguments[1] if event == "socket.connect" else arguments if event == "socket.getaddrinfo" else ()
    host = address[0] if isinstance(address, tuple) and address else None
    if host is not None:
        with open({log!r}, "a") as log:
            log.write(f"{{event}} {{host}}\\n")
        raise OSError("there is no network")
sys.addaudithook(hook)
"""
DYING = """
import os, sys
if "chat" in sys.orig_argv:
    os.write(2, b"the disk has melted")
    os._exit(7)
"""


def run_demo(home: Path, hook: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose Python and whose children's Python run `hook` first."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(hook, encoding="utf-8")
    unset = ("COLUMNS", "FORCE_COLOR", "ANTHROPIC_API_KEY", "SELFPAGER_HOME")
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    environ |= {"PYTHONPATH": str(folder), "PYTHONUTF8": "1", "GUIDE_PROVIDER": "anthropic"}  # left from an earlier one
    return subprocess.run(
        [sys.executable, "-m", "agents", "demo", "--home", str(home)],
        cwd=ROOT, env=environ, capture_output=True, encoding="utf-8", timeout=MINUTES, check=False,
    )  # fmt: skip


def number(text: str) -> int:
    return int(text.replace(",", ""))


@dataclass(frozen=True)
class Shown:
    home: Path
    text: str
    network: str

    def chapter(self, number: int) -> str:
        found = re.search(rf"^── {number}  .*?(?=^── |\Z)", self.text, re.DOTALL | re.MULTILINE)
        assert found, f"there is no chapter {number}"
        return found[0]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    place = tmp_path_factory.mktemp("demo")
    log = place / "network.log"
    log.touch()
    done = run_demo(place / "home", ONLY_LOOPBACK.format(log=str(log)), place / "hook")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return Shown(place / "home", done.stdout, log.read_text())


def test_it_needs_no_network_and_is_plain_and_narrow_without_a_terminal(shown: Shown) -> None:
    assert shown.network == ""
    assert {path.name for path in shown.home.iterdir() if path.is_dir()} - {"__pycache__"} == set(AGENTS)
    assert "\x1b" not in shown.text
    wide = [line for line in shown.text.splitlines() if cell_len(line) > 80]
    assert [line for line in wide if not line.startswith("$ ")] == []


CLAIMS = (
    "is on disk, archived by the agent with its tool", "is superseded by f2 and still there",
    "evictions, made without a model", "page_in read it, word for word", "it ended by signal 9; on disk: timetable",
    "calls has one result", "both facts are stored once", "all laws hold", "less was sent",
)  # fmt: skip


def test_everything_that_it_claims_was_looked_up(shown: Shown) -> None:
    """It ends with an error where a claim does not hold: see test_what_is_not_so_is_not_printed."""
    looked_up = " ".join(shown.text.split()).split("✓")[1:]
    assert [claim for claim in CLAIMS if not any(claim in line for line in looked_up)] == []
    with MemoryReader.open(shown.home / "guide") as memory:
        assert memory.core()[0].value == "name is Dana"


def test_it_is_short_and_no_line_of_it_comes_twice(shown: Shown) -> None:
    lines = [line for line in shown.text.splitlines() if line]
    assert len(shown.text.splitlines()) <= 60
    assert len(set(lines)) == len(lines)


def test_its_last_commands_work_as_they_are_printed(shown: Shown) -> None:
    view, trace, chat = [line[2:] for line in shown.chapter(5).splitlines() if line.startswith("$ ")]
    traced = printed(trace)
    assert "It was not in the request" in traced
    assert "had left the prompt" in traced
    talked = printed(chat, said="What is our budget?\nThank you.\n")
    assert "3,300 euros" in talked
    assert talked.endswith("Noted, as you said it: Thank you.\n")
    with subprocess.Popen(
        shlex.split(view), cwd="/", env=WITHOUT_BROWSER, stdout=subprocess.PIPE, text=True
    ) as viewing:
        assert viewing.stdout
        address = viewing.stdout.readline().strip()
        with urllib.request.urlopen(address.partition("#")[0], timeout=MINUTES) as answer:
            assert "<title>" in answer.read().decode()
        viewing.send_signal(signal.SIGINT)


def printed(line: str, said: str = "") -> str:
    """What a command prints, run as it stands, in another folder."""
    done = subprocess.run(
        ["bash", "-c", line], cwd="/", env=WITHOUT_BROWSER, input=said, capture_output=True, text=True, check=False,
        timeout=MINUTES,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def regular(text: str) -> str:
    """A text without what differs between two runs: numbers, and how long a bar is."""
    return re.sub(r"(\S)\1+", r"\1", re.sub(r"\d[\d,]*", "0", " ".join(text.split())))


def test_readme_shows_what_it_prints(shown: Shown) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    excerpt = re.search(r"^## The demo.*?```text\n(.*?)```", readme, re.DOTALL | re.MULTILINE)
    assert excerpt
    assert len(excerpt[1].split("\n\n")) > 3
    printed = regular(shown.text)
    assert [line for line in excerpt[1].splitlines() if regular(line) not in printed] == []


def test_a_home_with_another_demo_is_left_alone_and_its_agents_have_their_own_names(tmp_path: Path) -> None:
    assert command_line("demo", "--as", "bob", "--home", tmp_path).code == 2
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "guide").mkdir()
    refused = command_line("demo", "--home", tmp_path)
    assert (refused.code, "already holds guide" in refused.err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["guide"]


def test_an_agent_that_dies_ends_it_with_a_sentence(tmp_path: Path) -> None:
    done = run_demo(tmp_path / "home", DYING, tmp_path / "hook")
    assert done.returncode == 1
    assert re.search(r"process \d+ ended with exit code 7", done.stderr)
    assert "the disk has melted" in done.stderr
    assert "Traceback" not in done.stderr


def test_interrupted_it_takes_its_agents_along(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "agents", "demo", "--home", str(tmp_path / "home")],
        cwd=ROOT, env={**os.environ, "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True,
    ) as demo:  # fmt: skip
        assert demo.stdout
        agent = next(found for line in demo.stdout if (found := re.search(r"process (\d+)", line)))
        os.killpg(demo.pid, signal.SIGINT)
        _, errors = demo.communicate(timeout=MINUTES)
    assert demo.returncode == 130
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int(agent[1]), 0)
    with Memory.open(tmp_path / "home" / "everything") as memory:  # nobody holds its lock any more
        assert memory.check() == []


def test_what_is_not_so_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DemoError, match="two is three"):
        check(False, "two is three")
    assert capsys.readouterr().out == ""


def test_the_agents_files_are_good_for_a_real_model_too(tmp_path: Path) -> None:
    stage = Stage.make(tmp_path / "home", {"GUIDE_PROVIDER": "anthropic", "LANG": "C"})
    assert stage.environ == {"LANG": "C", "PYTHONUTF8": "1"}
    for name in AGENTS:
        assert config.load(stage.home / f"{name}.yaml", stage.environ).model.provider == "scripted"
    chosen = config.load(stage.home / "guide.yaml", {"GUIDE_PROVIDER": "anthropic", "GUIDE_MODEL": "claude-sonnet-5-5"})
    assert (chosen.model.provider, chosen.model.id) == ("anthropic", "claude-sonnet-5-5")
