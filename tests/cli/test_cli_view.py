"""`selfpager trace` and `search`, and `selfpager view` in a process of its own."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from tests.support.cli import Done, Running, command_line
from tests.support.clock import START, HandClock

DAY = START.astimezone().date()  # as a person reads it here


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home / "anna", embedder=None, clock=HandClock()) as memory:
        memory.archive("prefers window seats", key="seat", actor="agent")
        memory.append_user("Where do I like to sit? [red]here[/red] \x1b[2J", name="Dana")
        memory.request()
        memory.append_assistant("By the window.")
        memory.archive("prefers aisle seats", key="seat", actor="agent")
    return home


def trace(home: Path, *arguments: str) -> Done:
    return command_line("trace", "anna", *arguments, "--home", home)


def test_the_answer_comes_first_then_the_life(home: Path) -> None:
    text = trace(home, "window seats").out
    first, second, *_ = text.splitlines()
    assert first == "\u25cb It is not in the prompt now:"
    assert "f1 had been superseded by f2 after s2." in second
    assert "f1  not in the prompt" in text
    assert "archived it as f1" in text
    assert "Nothing holds these words" in trace(home, "submarines").out


def test_at_a_step_it_shows_that_request_and_hostile_texts_as_texts(home: Path) -> None:
    text = trace(home, "like to sit", "--at", "s2").out
    assert text.startswith("\u25cf It was in the request that s2 answered:")
    assert [words in text for words in ("Dana (s1)", "[red]here[/red]", "\x1b[2J")] == [True, True, False]


def test_for_a_program_it_is_a_line_of_json(home: Path) -> None:
    data = trace(home, "f1", "--json").json
    assert (data["agent"], data["verdict"]["present"]) == ("anna", False)
    [life] = data["pages"]
    assert (life["page_id"], [event["event"] for event in life["events"]]) == ("f1", ["archive", "supersede"])
    assert life["events"][0]["at"].startswith(f"{DAY}T")


def test_search_shows_facts_and_what_was_said_and_hostile_texts_as_texts(home: Path) -> None:
    lines = command_line("search", "anna", "sit seats", "--home", home).out.splitlines()
    assert any(line.startswith(f"f2 {DAY}") and line.endswith("prefers aisle seats") for line in lines)
    [said] = [line for line in lines if line.startswith("s1 ")]
    assert "Dana: Where do I like to sit? [red]here[/red]" in said
    assert "\x1b" not in said
    found = command_line("search", "anna", "seats", "--limit", "1", "--json", "--home", home).json
    assert (found["agent"], len(found["hits"])) == ("anna", 1)
    assert command_line("search", "anna", "submarines", "--home", home).out == "anna would find nothing for this.\n"


def fetched(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=30) as response:
        return response.read().decode()


def test_view_serves_at_a_secret_address_until_ctrl_c(home: Path) -> None:
    with Running("view", "anna", "--read-only", "--no-browser", "--json", "--home", home) as running:
        address, _, agent = json.loads(running.line())["address"].partition("#")
        assert (address.startswith("http://127.0.0.1:"), agent) == (True, "anna")
        assert "<title>selfpager</title>" in fetched(address)
        agents = json.loads(fetched(f"{address}api/agents"))
        assert agents == {"agents": ["anna"], "more": False, "read_only": True, "home": str(home)}
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetched(address.rsplit("/", 2)[0] + "/")
        port = address.split(":")[2].split("/")[0]
        second = command_line("view", "--no-browser", "--port", port, "--home", home)
        assert (second.code, f"127.0.0.1:{port} cannot be served: Address" in second.err) == (1, True)
        running.interrupt()
        done = running.end()
    assert (done.code, "Traceback" in done.err) == (0, False)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_on_a_narrow_terminal_a_trace_is_still_lines_to_read(
    home: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = trace(home, "window seats").out.splitlines()
    assert lines[0] == "\u25cb It is not in the prompt now:"
    assert "archived it as f1" in " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= width
    assert len(lines) < 30  # a column of single words has more
