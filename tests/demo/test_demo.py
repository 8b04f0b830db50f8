"""`selfpager demo` as a person runs it: one whole run, offline, and what its output and the agents that it left say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from agents.cli.common import Shared
from agents.cli.demo_page import Page
from agents.cli.main import cli
from agents.config import agent_config as config
from agents.demo import measure
from agents.demo.stage import AGENTS, DemoFailed, Stage, Turn, trip
from pager import Memory, MemoryReader

ROOT = Path(__file__).parents[2]
MINUTES = 10 * 60  # a process that hangs is a failure, not a wait
# Python's own hook: every child inherits it, and no code can get around it.
ONLY_LOOPBACK = """
import sys
def hook(event, arguments):
    address = arguments[1] if event == "socket.connect" else arguments if event == "socket.getaddrinfo" else ()
    host = address[0] if isinstance(address, tuple) and address else None
    if host is not None and str(host) not in ("127.0.0.1", "localhost", "::1"):
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
    environ |= {
        "PYTHONPATH": str(folder),
        "PYTHONUTF8": "1",
        "GUIDE_PROVIDER": "anthropic",
    }  # left from an earlier demo
    return subprocess.run(
        [sys.executable, "-m", "agents", "demo", "--home", str(home)],
        cwd=ROOT, env=environ, capture_output=True, encoding="utf-8", timeout=MINUTES, check=False,
    )  # fmt: skip


@dataclass(frozen=True)
class Shown:
    home: Path
    text: str
    network: str

    def chapter(self, number: int) -> str:
        found = re.search(rf"^{number}  .*?(?=^{number + 1}  |^Go on|\Z)", self.text, re.DOTALL | re.MULTILINE)
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


@pytest.mark.slow
def test_it_needs_no_network_and_says_where_its_agents_live(shown: Shown) -> None:
    assert shown.network == ""
    assert str(shown.home) in shown.text
    assert {path.name for path in shown.home.iterdir() if path.is_dir()} == set(AGENTS)


@pytest.mark.slow
def test_without_a_terminal_it_is_plain_and_no_wider_than_eighty(shown: Shown) -> None:
    assert "\x1b" not in shown.text
    assert [line for line in shown.text.splitlines() if cell_len(line) > 80 and str(shown.home) not in line] == []


@pytest.mark.slow
def test_facts_outlive_their_process_and_a_contradiction_supersedes(shown: Shown) -> None:
    first, answers = shown.chapter(1), shown.chapter(2)
    pids = re.findall(r"selfpager chat guide\.yaml +process (\d+)", first + answers)
    assert len(set(pids)) == 3
    second = first[first.index(f"process {pids[1]}") :]
    assert "“name is Dana”" in second
    assert "replaces “lives in Lisbon” (f2)" in " ".join(second.split())
    with MemoryReader.open(shown.home / "guide") as memory:
        old, new = memory.history.fact_versions("home")
        assert (old.text, new.text) == ("lives in Lisbon", "lives in Porto")
        assert old.superseded_by == new.id


@pytest.mark.slow
def test_it_answers_from_memory_and_from_the_past(shown: Shown) -> None:
    dialogue = re.split(r"^  Dana ", shown.chapter(2), flags=re.MULTILINE)[1:]
    now, then, _, before = dialogue
    assert "search_archive(" in now
    assert "“lives in Porto” (f5)" in now
    assert "as_of='2022-03-16'" in then
    assert "On 2022-03-16 it was “lives in Lisbon” (f2)" in then
    assert "“prefers window seats” (f3)" in before


@pytest.mark.slow
def test_steps_leave_the_window_and_come_back_word_for_word(shown: Shown) -> None:
    chapter = shown.chapter(3)
    evictions = re.findall(r"▼ s(\d+) to s(\d+) leave: [\d,]+ tokens", chapter)
    assert len(evictions) >= 2
    bars = re.findall(r"^ +\d+ [a-zC#.]{36} +([\d,]+)  ", chapter, re.MULTILINE)
    fills = [int(number.replace(",", "")) for number in bars]
    assert len(fills) > 16
    assert max(fills) <= 4_500
    assert any(later < 0.7 * earlier for earlier, later in pairwise(fills)), "the bar never empties"
    pages = re.findall(r"page_in\(page_id='s(\d+)'\)", chapter)
    assert len(pages) == 2
    with MemoryReader.open(shown.home / "guide") as memory:
        for page in pages:
            asked = next(stay.from_step for stay in memory.history.residencies(f"s{page}") if stay.how == "paged_in")
            gone = [int(last) for first, last in evictions if int(first) <= int(page) <= int(last)]
            assert gone
            assert memory.history.residencies(f"s{page}")[0].until_step is not None
            assert gone[0] < asked
            assert memory.page(f"s{page}") in trip()
            assert memory.page(f"s{page}") in " ".join(chapter.split())


@pytest.mark.slow
def test_kill_9_loses_nothing(shown: Shown) -> None:
    chapter = " ".join(shown.chapter(4).split())
    for said in ("the process ended by signal 9", "nothing is lost", "it says that it is done", "all laws hold"):
        assert f"✓ {said}" in chapter
    with MemoryReader.open(shown.home / "errand") as memory:
        assert memory.open_calls == []
        assert [fact.id for fact in memory.inspect.newest_facts()] == ["f2", "f1"]
        blocks = [block for number in range(1, 7) for block in memory.history.blocks_of(f"s{number}")]
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert sorted(called) == sorted(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")
        assert [block["name"] for block in blocks if block.get("name") == "timetable"] == ["timetable"]


@pytest.mark.slow
def test_the_table_shows_that_paging_sends_less(shown: Shown) -> None:
    row = r"^ +(10|40|80) +([\d,]+) +([\d,]+) +(\d+)% +([\d,]+) +([\d,]+) +(\d+)% *$"
    rows = {
        int(found[1]): [int(number.replace(",", "")) for number in found.groups()[1:]]
        for found in re.finditer(row, shown.chapter(5), re.MULTILINE)
    }
    assert sorted(rows) == [10, 40, 80]
    request, sent, _, paged_request, paged_sent, paged_cached = rows[80]
    assert paged_request < 4_500 < request
    assert paged_sent < sent
    assert paged_cached >= 90
    assert rows[10][1] < rows[40][1] < sent


@pytest.mark.slow
def test_what_it_says_to_look_at_can_be_looked_at(shown: Shown) -> None:
    commands = re.findall(
        rf"\$ \S+ show (guide --home {re.escape(str(shown.home))}(?: --at s\d+)?)$", shown.text, re.MULTILINE
    )
    assert len(commands) == 2
    for arguments in commands:
        looked = CliRunner().invoke(cli, ["show", *arguments.split()], obj=Shared(), standalone_mode=False)
        assert looked.exit_code == 0, looked.output
        assert "epoch" in looked.output
    assert "paged in since" in shown.chapter(6)


def regular(text: str) -> str:
    """A text without what differs between two runs: numbers, how long a bar is, where a line is broken."""
    plain = re.sub(r"\d[\d,]*", "0", " ".join(text.split()))
    return re.sub(r"(\S)\1+", r"\1", plain)


@pytest.mark.slow
def test_readme_shows_what_it_prints(shown: Shown) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    excerpt = re.search(r"^## The demo.*?```text\n(.*?)```", readme, re.DOTALL | re.MULTILINE)
    assert excerpt
    assert len(excerpt[1].split("\n\n")) > 3
    printed = regular(shown.text)
    assert [line for line in excerpt[1].splitlines() if regular(line) not in printed] == []


def test_a_home_with_another_demo_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    refused = CliRunner().invoke(cli, ["demo", "--home", str(tmp_path)], obj=Shared())
    assert refused.exit_code != 0
    assert "already holds guide" in str(refused.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["guide"]


def test_its_agents_have_their_own_names(tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli, ["demo", "--as", "bob", "--home", str(tmp_path)], obj=Shared())
    assert refused.exit_code == 2
    assert "leave out --as" in refused.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_agent_that_dies_ends_it_with_a_sentence(tmp_path: Path) -> None:
    done = run_demo(tmp_path / "home", DYING, tmp_path / "hook")
    assert done.returncode == 1
    assert re.search(r"process \d+ ended with exit code 7", done.stderr)
    assert "the disk has melted" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_interrupted_it_takes_its_agents_along(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "agents", "demo", "--home", str(tmp_path / "home")],
        cwd=ROOT, env={**os.environ, "PYTHONUTF8": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", start_new_session=True,
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
    with pytest.raises(DemoFailed, match="two is three"):
        Page().check(2 == 3, "two is three")  # noqa: PLR0133
    assert capsys.readouterr().out == ""


def test_the_conversation_has_eighty_messages() -> None:
    assert len(trip()) == len(set(trip())) == 80
    assert all(message == " ".join(message.split()) for message in trip())


def test_the_agents_files_are_good_for_a_real_model_too(tmp_path: Path) -> None:
    stage = Stage.make(tmp_path / "home", {"GUIDE_PROVIDER": "anthropic", "LANG": "C"})
    assert stage.environ == {"LANG": "C", "PYTHONUTF8": "1"}
    for name in AGENTS:
        assert config.load(stage.file(name), stage.environ).model.provider == "rehearsal"
    chosen = config.load(stage.file("guide"), {"GUIDE_PROVIDER": "anthropic", "GUIDE_MODEL": "claude-sonnet-5-5"})
    assert (chosen.model.provider, chosen.model.id) == ("anthropic", "claude-sonnet-5-5")


def test_what_was_sent_is_summed_up_from_usage() -> None:
    def turn(*usages: tuple[int, int, int]) -> Turn:
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        return Turn(
            "",
            tuple(
                {"event": "replied", "step": f"s{number}", "usage": dict(zip(names, usage, strict=True))}
                for number, usage in enumerate(usages, start=1)
            ),
        )

    sent = measure.sent([turn((10, 0, 40)), turn((10, 40, 10), (20, 60, 0)), turn((1, 1, 1))], until=2)
    assert (sent.turn, sent.last_step, sent.request_tokens, sent.largest_tokens) == (2, "s2", 80, 80)
    assert sent.total_tokens == 50 + 60 + 80
    assert sent.read_share == 100 / 190
    assert sent.priced_tokens == pytest.approx(40 + 0.1 * 100 + 1.25 * 50)
