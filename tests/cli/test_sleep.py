"""`sleep`: what is proposed, plainly and as JSON, and what is decided, whether the agent runs or not."""

from pathlib import Path

import pytest

from pager import Memory
from tests.cli.conftest import Command


@pytest.fixture
def repeated(alice: Path) -> Path:
    with Memory.open(alice, embedder=None) as memory:
        memory.archive("likes the red tram", source="said:Alice")
        memory.archive("Likes the red tram.", source="said:Alice")
    return alice


def test_a_proposal_is_shown_applied_and_undone(command: Command, repeated: Path) -> None:
    lines = command("sleep", "alice").out.splitlines()
    assert lines[1:] == [
        "  1  merge: f3, f4 say the same  [open]", "      - f3 likes the red tram", "      - f4 Likes the red tram.",
        "      + Likes the red tram.", "        from said:Alice",
        "sleep 1: 1 are proposed (selfpager sleep alice 1 --show, --apply)",
    ]  # fmt: skip
    assert command("sleep", "alice", "--show").out.splitlines()[1:] == lines[1:-1]
    assert command("sleep", "alice").out == "nothing has come since the last sleep.\n"
    assert "[applied]" in command("sleep", "alice", "--apply").out
    told = command("sleep", "alice", "1", "--undo", "--json").json
    assert (told["state"], told["sleep"]["edits"][0]["state"]) == ("done", "undone")
    nothing = command("sleep", "alice", "--apply")
    assert (nothing.code, nothing.err) == (
        1, "selfpager: alice has no sleep with open edits. Make one with: selfpager sleep alice\n",
    )  # fmt: skip


def test_a_running_agent_decides_at_its_next_step(command: Command, repeated: Path) -> None:
    with Memory.open(repeated, embedder=None) as memory:
        assert memory.sleeps.propose()
        assert "is running and does it at its next step" in command("sleep", "alice", "--refuse", "--edit", "1").out
        memory.process_inbox()
        assert memory.sleeps.proposal(1).edits[0].state == "refused"
        busy = command("sleep", "alice")
        assert (busy.code, "process" in busy.err) == (1, True)


def test_a_wrong_use_says_what_is_right(command: Command, repeated: Path) -> None:
    assert command("sleep", "alice", "3").code == 2
    assert command("sleep", "alice", "--show", "--edit", "1").code == 2
    assert "there is no sleep 7" in command("sleep", "alice", "7", "--apply").err


def test_with_the_file_its_model_reads_what_was_said(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_text(
        "name: notes\nmodel: {provider: scripted, script: replies.yaml}\narchival: {embedder: none}\n"
    )
    (tmp_path / "replies.yaml").write_text(
        """- say: '[{"fact": "Dana moved to Porto", "step": "s1", "about": "home"}]'\n  otherwise: true\n"""
    )
    with Memory.open(tmp_path / "home" / "notes", embedder=None) as memory:
        memory.record("user", "I moved to Porto.", name="Dana")
    out = command("sleep", "notes", "--config", "notes.yaml").out
    assert "+ Dana moved to Porto (key home)" in out
    assert "1 requests to scripted" in out
