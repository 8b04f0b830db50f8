"""Commands that others send: applied once, in their order, and never a reason to stop. (Processes: tests/crash.)"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import BlockSpec, RejectedError, StorageError, pending_commands, send_command
from tests.support import HandClock, Talk, undone


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path, core={"human": BlockSpec(), "rules": BlockSpec(value="be kind", read_only=True)})


def files(talk: Talk) -> list[Path]:
    return sorted((talk.directory / "inbox").glob("*.*"))


def outcomes(talk: Talk) -> list[str]:
    return [row.reason for row in talk.memory.ledger(events=["command"])]


def test_each_kind_has_its_effect_once_in_the_order_in_which_they_were_sent(talk: Talk) -> None:
    talk.ask("hello", "hello")
    commands: list[tuple[str, dict[str, Any]]] = [
        ("archive", {"text": "has two cats", "key": "cats", "tags": ["pets"], "valid_from": "2026-01-01"}),
        ("archive", {"text": "lives in Porto"}),
        ("pin", {"page_id": "f2", "offset": 0}),
        ("forget", {"page_id": "f1", "reason": "they moved out"}),
        ("core_append", {"block": "human", "text": "Dana"}),
        ("core_replace", {"block": "human", "old_text": "Dana", "new_text": "Dana, 40"}),
        ("message", {"text": "stop after this step", "name": "Dana"}),
        ("message", {"text": "and say why"}),
        ("page_out", {"page_id": "f2"}),
    ]
    ids = [send_command(talk.directory, kind, arguments, talk.clock) for kind, arguments in commands]
    pending = [(each["id"], each["kind"], each["arguments"]) for each in pending_commands(talk.directory)]
    assert pending == [(each, *command) for each, command in zip(ids, commands, strict=True)]
    assert talk.memory.process_inbox() == len(commands)
    assert talk.memory.process_inbox() == 0
    assert (pending_commands(talk.directory), files(talk)) == ([], [])
    assert outcomes(talk) == ["done"] * len(commands)
    facts = [(fact.key, fact.forgotten) for fact in talk.memory.inspect.newest_facts()]
    assert facts == [(None, None), ("cats", "they moved out")]
    assert talk.memory.core()[0].value == "Dana, 40"
    talk.reply("I stop.")
    said = [message["content"] for message in talk.standin.requests[-1]["messages"]][-2:]
    assert [content[-1]["text"] for content in said] == ["stop after this step", "and say why"]
    assert not talk.memory.check()


def test_a_refused_command_is_done_and_its_outcome_says_why(talk: Talk) -> None:
    commands: list[tuple[str, dict[str, Any], str]] = [
        ("core_append", {"block": "rules", "text": "or not"}, "read-only"),
        ("core_append", {"block": "nope", "text": "x"}, "'nope'"),
        ("forget", {"page_id": "f9", "reason": "x"}, "no fact"),
        ("archive", {"text": " "}, "needs a text"),
        ("archive", {"text": "a", "valid_from": "soon"}, "'soon'"),
        ("page_out", {"page_id": "f1"}, "not pinned"),
        ("pin", {"page_id": "x1"}, "no page"),
    ]
    for kind, arguments, _ in commands:
        send_command(talk.directory, kind, arguments, talk.clock)
    talk.ask("hello", "hello")
    assert files(talk) == []
    for outcome, (_, _, words) in zip(outcomes(talk), commands, strict=True):
        assert outcome.startswith("refused: ")
        assert words in outcome
    assert talk.memory.inspect.newest_facts() == []
    assert not talk.memory.check()


def test_an_effect_that_is_rolled_back_leaves_its_file(talk: Talk) -> None:
    send_command(talk.directory, "archive", {"text": "has two cats"}, talk.clock)
    with undone(talk.memory):
        talk.memory.process_inbox()
    assert len(pending_commands(talk.directory)) == 1
    assert talk.memory.process_inbox() == 1
    assert len(talk.memory.inspect.newest_facts()) == 1


@pytest.mark.parametrize(
    ("kind", "arguments", "why"),
    [
        ("reboot", {}, "'reboot' is no command; there are archive, core_append"),
        ("message", {}, "message takes text; may have name"),
        ("message", {"text": "a", "txet": "b"}, "message takes text"),
        ("message", {"text": 5}, "text of message is a text, not 5"),
        ("archive", {"text": "a", "tags": "pets"}, "tags of archive is a list of texts"),
        ("archive", {"text": "a", "tags": [1]}, "a list of texts"),
        ("pin", {"page_id": "f1", "offset": "0"}, "offset of pin is a whole number"),
        ("pin", ["f1"], "pin takes page_id"),
    ],
)
def test_a_wrong_command_is_refused_where_it_is_sent(talk: Talk, kind: str, arguments: Any, why: str) -> None:
    with pytest.raises(RejectedError, match=why):
        send_command(talk.directory, kind, arguments, talk.clock)
    assert files(talk) == []


JUNK = ["", "null", "[]", "5", '"x"', "{", '{"kind": "message"}', "[" * 100_000, '{"kind": ["x"], "arguments": {}}']
KINDS = st.sampled_from(["message", "core_append", "core_replace", "archive", "forget", "pin", "page_out"])
NAMES = st.sampled_from(["text", "name", "block", "old_text", "new_text", "key", "tags", "page_id", "reason", "offset"])
TEXTS = st.text(alphabet=st.characters(), max_size=5) | st.sampled_from(["human", "f1"])
VALUES = st.none() | st.booleans() | st.integers() | TEXTS | st.lists(st.integers(), max_size=2)
COMMANDS = st.fixed_dictionaries({"kind": KINDS, "arguments": st.dictionaries(NAMES, VALUES, max_size=4)})
FILES = st.sampled_from(JUNK).map(str.encode) | st.binary(max_size=8) | COMMANDS.map(lambda it: json.dumps(it).encode())


@pytest.mark.slow
@given(junk=st.lists(FILES, max_size=5))
@settings(max_examples=40)
def test_whatever_is_left_the_agent_goes_on(tmp_path_factory: pytest.TempPathFactory, junk: list[bytes]) -> None:
    talk = Talk(tmp_path_factory.mktemp("m"), core={"human": BlockSpec()})
    inbox = talk.directory / "inbox"
    inbox.mkdir()
    for number, raw in enumerate(junk):
        (inbox / f"{number:04}.json").write_bytes(raw)
    (inbox / "half.json.tmp").write_bytes(b'{"kind"')
    with talk.memory:
        talk.ask("hello", "hello")
        assert not list(inbox.glob("*.json"))
        assert (inbox / "half.json.tmp").exists()
        assert len(list(inbox.glob("rejected/*"))) == len(talk.memory.ledger(events=["error"]))
        assert not talk.memory.check()


def test_there_is_no_inbox_where_there_is_no_agent(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot be written to .*nowhere.inbox"):
        send_command(tmp_path / "nowhere", "message", {"text": "a"}, HandClock())
    assert pending_commands(tmp_path / "nowhere") == []
