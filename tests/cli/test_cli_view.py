"""`selfpager view` and `selfpager trace`, as a person or a script starts them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from pager import Memory
from tests.support.cli import Running, selfpager
from tests.support.clock import HandClock


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


# --- trace


def test_the_answer_comes_first_then_the_life(home: Path) -> None:
    done = selfpager("trace", "anna", "window seats", "--home", home)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "\u25cb It is not in the prompt now:"
    assert "f1 had been superseded by f2 after s2." in lines[1]
    assert "Its life" in done.out
    assert "archived it as f1" in done.out


def test_at_a_step_it_says_what_was(home: Path) -> None:
    done = selfpager("trace", "anna", "like to sit", "--at", "s2", "--home", home)
    assert done.out.startswith("\u25cf It was in the request that s2 answered:")
    assert "Dana (s1)" in done.out
    refused = selfpager("trace", "anna", "sit", "--at", "s9", "--home", home)
    assert (refused.code, refused.out) == (1, "")
    assert "no request was answered after s9; the last one was answered by s2" in refused.err


def test_hostile_texts_are_shown_as_texts(home: Path) -> None:
    done = selfpager("trace", "anna", "like to sit", "--home", home)
    assert "[red]here[/red]" in done.out
    assert "\x1b[2J" not in done.out


def test_for_a_program_it_is_a_line_of_json(home: Path) -> None:
    told = selfpager("trace", "anna", "f1", "--json", "--home", home).json
    assert (told["agent"], told["pages"], told["verdict"]["present"]) == ("anna", ["f1"], False)
    assert [event["event"] for event in told["events"]] == ["archive", "supersede"]
    assert told["events"][0]["at"].startswith("2026-05-03T")


def test_what_nobody_said_is_no_failure(home: Path) -> None:
    done = selfpager("trace", "anna", "submarines", "--home", home)
    assert done.code == 0
    assert "Nothing holds these words" in done.out


# --- view


def fetched(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as response:
        return response.read().decode()


def test_it_prints_an_address_that_opens_on_the_agent_and_ends_with_ctrl_c(home: Path) -> None:
    with Running("view", "anna", "--no-browser", "--home", home) as running:
        address = running.line().strip()
        assert address.startswith("http://127.0.0.1:")
        assert address.endswith("/#anna")
        page = address.partition("#")[0]
        assert "<title>selfpager</title>" in fetched(page)
        assert json.loads(fetched(f"{page}api/agents"))["agents"] == ["anna"]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetched(page.rsplit("/", 2)[0] + "/")
        running.interrupt()
        done = running.end()
    assert done.code == 0
    assert "Traceback" not in done.err


def test_for_a_program_the_address_is_json(home: Path) -> None:
    with Running("view", "--read-only", "--no-browser", "--json", "--home", home) as running:
        address = json.loads(running.line())["address"]
        assert json.loads(fetched(f"{address}api/agents"))["read_only"] is True
        running.interrupt()
        assert running.end().code == 0


def test_an_agent_that_is_not_there_and_a_port_that_is_taken(home: Path) -> None:
    missing = selfpager("view", "nobody", "--no-browser", "--home", home)
    assert missing.code == 1
    assert "there are: anna" in missing.err
    with Running("view", "--no-browser", "--home", home) as running:
        port = running.line().split(":")[2].split("/")[0]
        taken = selfpager("view", "--no-browser", "--port", port, "--home", home)
        assert taken.code == 2
        assert f"port {port} cannot be used" in taken.err
        running.interrupt()
        running.end()
