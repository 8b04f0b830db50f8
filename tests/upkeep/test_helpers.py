"""The memories of helpers, below that of their agent: purged, checked, exported and removed with it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pager import AgentFiles, Home, InUseError, Memory, MemoryReader, StorageError
from pager.upkeep.inbox import send
from tests.support.clock import HandClock
from tests.support.secret import MARKS, SECRET


def open_helper(files: AgentFiles, call: str) -> Memory:
    return Memory.open(files.helper(call).directory, embedder=None, clock=HandClock())


def files_with(directory: Path, text: str) -> list[Path]:
    return [file for file in directory.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_a_purge_destroys_the_text_in_the_memories_of_helpers_and_of_theirs(memory: Memory, tmp_path: Path) -> None:
    files = AgentFiles(tmp_path)
    with open_helper(files, "one") as helper:
        helper.archive(SECRET, key="vault")
        helper.append_user(f"Remember: {SECRET}")
        helper.archive("something else")
    with open_helper(files.helper("one"), "deeper") as inner:
        inner.record("user", SECRET)
    with open_helper(files, "other") as untouched:
        untouched.archive("nothing of that kind")
    fact = memory.archive(SECRET)
    assert len(files_with(tmp_path, MARKS[0])) >= 3
    assert memory.purge(fact.id) >= 4
    assert files_with(tmp_path, MARKS[0]) == []
    with open_helper(files, "one") as helper:
        [row, *_] = helper.ledger(events=["purge"])
        assert row.reason == "it is a text of the agent that this one worked for"
        assert [each.text for each in helper.inspect.newest_facts() if not each.purged] == ["something else"]
        assert helper.check() == []
    with open_helper(files, "other") as untouched:
        assert untouched.ledger(events=["purge"]) == []


def test_while_a_helper_works_nothing_is_purged(memory: Memory, tmp_path: Path) -> None:
    fact = memory.archive(SECRET)
    with open_helper(AgentFiles(tmp_path), "one"):
        with pytest.raises(InUseError):
            memory.purge(fact.id)
        assert memory.fact(fact.id).text == SECRET
        assert memory.check() == []


def test_what_is_behind_a_link_is_not_of_this_agent(memory: Memory, tmp_path: Path) -> None:
    elsewhere = tmp_path.with_name(f"{tmp_path.name} elsewhere")
    with Memory.open(elsewhere, embedder=None) as other:
        other.archive(SECRET)
    AgentFiles(tmp_path).helpers.mkdir()
    (AgentFiles(tmp_path).helpers / "one").symlink_to(elsewhere)
    memory.purge(memory.archive(SECRET).id)
    assert files_with(elsewhere, MARKS[0])


def test_a_check_names_the_helper(memory: Memory, tmp_path: Path) -> None:
    files = AgentFiles(tmp_path)
    with open_helper(files, "one") as helper:
        helper.archive("a fact")
    with closing(sqlite3.connect(files.helper("one").database)) as db, db:
        db.execute("INSERT INTO fact_words (fact_words) VALUES ('delete-all')")
    [problem, *_] = memory.check()
    assert problem.where.startswith("helpers/one: ")
    assert {each.fixed for each in memory.check(fix=True)} == {True}
    assert memory.check() == []


def test_they_go_with_their_agent_and_are_no_agents_of_the_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.open("x", embedder=None) as memory, open_helper(AgentFiles(tmp_path / "x"), "one") as helper:
        helper.archive("of the helper")
        memory.archive("of the agent")
        memory.export(tmp_path / "x.export")
    assert home.names() == ["x"]
    home.remove("x")
    assert not home.place("x").is_taken()


def export_with_helpers(home: Home, folder: Path) -> list[Path]:
    """Export an agent whose helpers are at work, once as its owner and once beside it."""
    place = home.place("x")
    inner = place.helper("one").helper("deeper")
    open_at = lambda place: Memory.open(place, embedder=None)  # noqa: E731
    with home.open("x", embedder=None) as memory, open_at(place.helper("one")) as works:
        memory.archive("of the agent")
        works.archive("of the helper")
        with open_at(inner) as deeper, open_at(place.helper("a call: of a server")) as other:
            deeper.archive("of its helper")
            other.archive("of the other")
        send(inner.commands, "archive", {"text": "from outside"})
        memory.export(folder / "one.db")
    with home.read("x") as reader:
        reader.export(folder / "two.db")
    return [folder / "one.db", folder / "two.db"]


def check_helpers(home: Home, name: str) -> None:
    """Check that an agent is there as `export_with_helpers` exported it."""
    back = home.place(name)
    assert [len(each.helpers()) for each in (back, back.helper("one"))] == [2, 1]
    expected = [
        (back, ["of the agent"]),
        (back.helper("one"), ["of the helper"]),
        (back.helper("one").helper("deeper"), ["from outside", "of its helper"]),
        (back.helper("a call: of a server"), ["of the other"]),
    ]
    for place, texts in expected:
        with MemoryReader.open(place) as reader:
            assert sorted(fact.text for fact in reader.inspect.newest_facts()) == texts
    with home.open(name, embedder=None) as memory:
        assert memory.check() == []


def test_an_export_brings_them_all_back_with_what_is_pending_there(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    Memory.open(AgentFiles(tmp_path / "home" / "x").helpers / "not ours", embedder=None).close()
    one, two = export_with_helpers(home, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "one.db", "two.db"]
    assert one.stat().st_mode & 0o077 == 0
    for name, file in {"one": one, "two": two, "again": one}.items():
        home.import_file(file, name)
        check_helpers(home, name)


def test_an_export_is_whole_or_not_there(memory: Memory, tmp_path: Path) -> None:
    files = AgentFiles(tmp_path)
    open_helper(files, "one").close()
    with files.helper("one").database.open("r+b") as file:
        file.write(b"no database at all")
    with pytest.raises(StorageError, match=r"helpers/one/pager\.db cannot be copied .*Look after it with check"):
        memory.export(tmp_path / "copy.db")
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name]


def test_facts_of_another_memory_are_taken_over_with_what_is_behind_them(memory: Memory, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "other", embedder=None, clock=HandClock()) as other:
        other.archive("hats are red", key="hats", tags=["colour"], source="web:hats.example")
        other.archive("since May", valid_from="2026-05-01")
        facts = [use.fact for use in other.inspect.facts("current").rows]
    memory.archive("hats are blue", key="hats")
    since, red = memory.take_over(facts, source="helper:reader")
    assert (red.key, red.tags, red.via, red.supersedes) == ("hats", ("colour",), ("web:hats.example",), "f1")
    assert [str(each) for each in since.sources] == ["helper:reader"]
    assert since.valid_from == facts[0].valid_from
    assert [each.id for each in memory.take_over(facts, source="helper:reader")] == [since.id, red.id]


def test_what_follows_from_a_message_of_an_untrusted_source_is_known_by_it(memory: Memory) -> None:
    memory.append_user("hats are red", source="web:hats.example")
    memory.request()
    memory.append_assistant("So they are.")
    assert memory.read_page("s2").via == ("web:hats.example",)


def test_the_owner_is_the_agent_at_the_top(memory: Memory, tmp_path: Path) -> None:
    inner = AgentFiles(tmp_path).helper("one")
    with open_helper(AgentFiles(tmp_path), "one"):
        assert inner.helper("two").owner == inner.owner == AgentFiles(tmp_path).owner == tmp_path
    assert AgentFiles(tmp_path.parent / "helpers" / "x").owner == tmp_path.parent / "helpers" / "x"
