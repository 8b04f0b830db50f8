"""The commands that look after agents and their files: what they do, what they say, plainly and as JSON."""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agents.config import yaml_file
from agents.config.agent_config import load
from agents.config.schema import json_schema
from pager import BlockSpec, Memory, MemoryReader
from pager.clock import SystemClock
from pager.upkeep.export import CHECKSUM_BYTES, CHECKSUM_MARK, SQLITE_HEADER
from pager.upkeep.inbox import pending_commands, send_command
from tests.cli.conftest import Command
from tests.support.cli import Terminal

SCRIPTED = "provider: scripted, script: 'tests.support.answers:ok'"
YAML = f"name: x\nmodel: {{{SCRIPTED}, id: '${{MODEL:-m}}', api_key: s3cret}}\n"


def test_tell_sends_a_message(command: Command, alice: Path) -> None:
    sent = "sent to alice; it reads the message at its next step, or when it runs again.\n"
    assert command("tell", "alice", "come here").out == sent
    assert command("tell", "alice", "and sit", "--from", "Dana", "--json").json["command"]
    with Memory.open(alice, embedder=None) as memory:
        assert memory.process_inbox() == 2
        found = {hit.text: hit.who for hit in memory.search_recall("come here, and sit")}
        assert found["and sit"] == "Dana"
        assert "come here" in found


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        # as if it ran with the default embedder from now on
        ("DELETE FROM meta WHERE key = 'note:embedder'", "vectors: 2 facts have no vector and are found by words only"),
        ("INSERT INTO fact_words (fact_words) VALUES ('delete-all')", "words: "),
    ],
)
def test_check_finds_what_is_wrong_and_repairs_it(command: Command, alice: Path, sql: str, problem: str) -> None:
    assert command("check", "alice").out == "alice: no problems found.\n"
    assert command("check", "alice", "--json").json == []
    with closing(sqlite3.connect(alice / "pager.db")) as database, database:
        database.execute(sql)
    found = command("check", "alice")
    assert (found.code, found.out.startswith(problem)) == (1, True)
    assert {problem["fixed"] for problem in command("check", "alice", "--json").json} == {False}
    repaired = command("check", "alice", "--fix")
    assert (repaired.code, repaired.out) == (0, "".join(f"{line} (repaired)\n" for line in found.out.splitlines()))
    assert command("check", "alice").code == 0


def test_validate_reports_what_it_read(command: Command) -> None:
    Path("x.yaml").write_text(YAML, encoding="utf-8")
    assert command("validate", "x.yaml").out == "x.yaml is valid: the agent 'x', scripted m\n"
    assert command("validate", "x.yaml", "--json").json == {"valid": True, "name": "x", "tools": [], "remarks": []}


def test_validate_imports_the_tools(command: Command) -> None:
    Path("mine.py").write_text('def look() -> str:\n    """Look."""\n    return ""\n', encoding="utf-8")
    Path("x.yaml").write_text(YAML + "tools: [{use: 'mine:look'}]\n", encoding="utf-8")
    assert command("validate", "x.yaml", "--json").json["tools"] == ["look"]
    Path("y.yaml").write_text(YAML + "tools: [{use: 'mine:leap'}]\n", encoding="utf-8")
    for each in ("validate", "render"):
        wrong = command(each, "y.yaml")
        assert (wrong.code, wrong.out) == (2, "")
        assert "mine has no function 'leap'" in wrong.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("instructions: '" + "be brief " * 3_000 + "'", "do not fit"),
        ("core: {blocks: {human: {value: '" + "who " * 300 + "', limit_tokens: 100}}}", "of 100 tokens"),
    ],
)
def test_what_could_never_load_is_invalid(command: Command, more: str, message: str) -> None:
    Path("large.yaml").write_text(f"name: large\nmodel: {{id: m}}\nwindow: {{limit_tokens: 8000}}\n{more}\n")
    done = command("validate", "large.yaml")
    assert (done.code, message in done.err) == (2, True)
    assert done.err.startswith("selfpager: large.yaml:")


@pytest.mark.parametrize(("limit", "codes"), [(2_400, (2, 2, 2)), (2_800, (0, 0, 2)), (20_000, (0, 0, 0))])
def test_all_commands_report_a_window_that_is_too_small_alike(
    command: Command, monkeypatch: pytest.MonkeyPatch, limit: int, codes: tuple[int, ...]
) -> None:
    window = f"model: {{{SCRIPTED}, max_output_tokens: 500}}\nwindow: {{limit_tokens: {limit}}}\n"
    Path("x.yaml").write_text(f"name: x\narchival: {{embedder: none}}\n{window}", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n"))
    valid = command("validate", "x.yaml", "--json")
    done = (valid, command("chat", "x.yaml"), command("run", "x.yaml", "Tell me who I am."))
    assert tuple(2 if each.code == 2 else 0 for each in done) == codes
    assert [each.err.startswith("selfpager: x.yaml:4:") for each in done] == [code == 2 for code in codes]
    if valid.code == 0:
        assert bool(valid.json["remarks"]) == (codes[2] == 2)


def test_every_mistake_is_reported_with_its_place(command: Command) -> None:
    Path("x.yaml").write_text("name: x\nmodle: {}\nwindow:\n  limt_tokens: 5\n", encoding="utf-8")
    for each in ("validate", "render", "chat"):
        wrong = command(each, "x.yaml")
        assert (wrong.code, wrong.out) == (2, "")
        assert "x.yaml:2:1: unknown key 'modle'; did you mean 'model'?" in wrong.err
        assert "x.yaml:4:3: unknown key 'limt_tokens' in window; did you mean 'limit_tokens'?" in wrong.err
        assert "Traceback" not in wrong.err


def test_a_missing_package_of_an_embedder_is_found_by_validate(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHROMA_HUGGINGFACE_API_KEY", raising=False)
    monkeypatch.delenv("HUGGINGFACE_API_KEY", raising=False)
    Path("x.yaml").write_text(YAML + "archival: {embedder: huggingface}\n", encoding="utf-8")
    wrong = command("validate", "x.yaml")
    assert wrong.code == 2
    assert re.match(r"selfpager: x\.yaml:\d+:\d+: the embedder .*CHROMA_HUGGINGFACE_API_KEY", wrong.err)


def test_render_shows_what_load_reads_without_secrets(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "large")
    Path("x.yaml").write_text(YAML, encoding="utf-8")
    rendered = command("render", "x.yaml").out
    Path("again.yaml").write_text(rendered, encoding="utf-8")
    assert load(Path("again.yaml"), {}).model.id == "large"
    assert command("render", "x.yaml", "--json").json == yaml_file.read(Path("again.yaml"), {}).data
    assert "s3cret" not in rendered


def test_schema_is_the_one_for_editors(command: Command) -> None:
    assert json.loads(command("schema").out) == json_schema()


def rows(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything in a database, but for where it came from."""
    with closing(sqlite3.connect(file)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}


def test_an_exported_agent_comes_back_whole(command: Command, alice: Path, tmp_path: Path) -> None:
    with Memory.open(alice, embedder=None, core={"human": BlockSpec(value="Alice")}) as memory:
        memory.append_user("hello")
        memory.request()
        memory.append_assistant("Hello.", {"input_tokens": 500, "output_tokens": 3})
        memory.core_append("human", "a baker")
        memory.forget("f2", "wrong")
    before = rows(alice / "pager.db")
    assert command("export", "alice", "alice.db").out == "alice was exported to alice.db.\n"
    assert command("export", "alice", "more.db", "--json").json == {"exported": "alice", "file": "more.db"}
    assert rows(tmp_path / "alice.db") == before
    taken = command("import", "alice.db")
    assert (taken.code, "there is an agent in" in taken.err, "--as" in taken.err) == (1, True, True)
    assert command("import", "alice.db", "--as", "back").out == "alice.db was imported as back.\n"
    assert command("import", "more.db", "--json").json == {"imported": "more", "file": "more.db"}
    assert rows(alice.with_name("back") / "pager.db") == rows(alice.with_name("more") / "pager.db") == before
    assert command("check", "back").code == 0
    assert {"facts", "steps", "parts", "blocks", "ledger", "requests", "residency"} <= before.keys()
    assert all(before[name] for name in ("facts", "steps", "parts", "blocks", "ledger", "requests", "residency"))


def test_pending_commands_are_exported_too(command: Command, alice: Path, tmp_path: Path) -> None:
    said = send_command(alice, "message", {"text": "Remember the oven."}, SystemClock())
    taken = send_command(alice, "archive", {"text": "has a boat"}, SystemClock())
    assert command("export", "alice", "alice.db").code == 0
    with Memory.open(alice, embedder=None) as memory:
        memory.process_inbox(messages=False)
    assert command("import", "alice.db", "--as", "back").code == 0
    back = alice.with_name("back")
    assert [each["id"] for each in pending_commands(back)] == [said, taken]
    assert pending_commands(alice) == pending_commands(back)[:1]
    with Memory.open(back, embedder=None) as memory:
        memory.process_inbox(messages=False)
        assert [fact.text for fact in memory.inspect.newest_facts()].count("has a boat") == 1
        memory.append_user("hello")
        assert "Remember the oven." in str(memory.request().params)
    assert "inbox" not in [row[0] for row in rows(back / "pager.db")["meta"]]


def test_conversations_and_notes_are_imported_into_an_agent(command: Command, alice: Path, tmp_path: Path) -> None:
    Path("talk.json").write_text('[{"role": "user", "content": "I moved to Porto."}]', encoding="utf-8")
    Path("notes").mkdir()
    Path("notes/MEMORY.md").write_text("# Tea\ngreen, no sugar", encoding="utf-8")
    assert command("import", "talk.json", "--as", "alice").out == "imported 1 turn from talk.json into alice.\n"
    assert command("import", "notes", "--as", "alice", "--json").json == {
        "imported": "alice", "file": "notes", "facts": 1,
    }  # fmt: skip
    with Memory.open(alice, embedder=None) as memory:
        assert memory.search_recall("Porto")[0].who == "user"
        assert memory.search_archive("sugar")[0].text == "# Tea\ngreen, no sugar"
    assert command("import", "talk.json").code == 0
    assert (tmp_path / "home" / "talk" / "pager.db").is_file()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("talk.json", '[{"role": "user", "content": 7}]', "talk.json: message 0: its content is 7"),
        ("talk.json", '{"a": 1}', "talk.json holds no known conversation"),
        (
            "talk.jsonl",
            "one",
            "talk.jsonl is not JSON: Expecting value: line 1 column 1 (char 0). Give an exported agent",
        ),
        ("notes.md", "\0\xff", "notes.md cannot be read"),
        ("talk.json", "", "talk.json is empty, so it is damaged: there is nothing to import."),
    ],
)
def test_an_import_that_fails_leaves_nothing(
    command: Command, alice: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    Path(name).write_bytes(text.encode("latin-1"))
    done = command("import", name, "--as", "new")
    assert (done.code, message in done.err) == (1, True)
    before = rows(alice / "pager.db")
    assert command("import", name, "--as", "alice").code == 1
    assert rows(alice / "pager.db") == before
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["alice"]


def test_a_file_whose_name_cannot_be_an_agents_needs_another(command: Command) -> None:
    Path("my talk.json").write_text('[{"role": "user", "content": "I moved to Porto."}]', encoding="utf-8")
    done = command("import", "my talk.json")
    assert (done.code, done.err.strip().endswith("at most 64. Choose a name with --as.")) == (1, True)
    assert command("import", "my talk.json", "--as", "talk").code == 0


def test_the_content_of_a_file_decides_what_it_is(command: Command, alice: Path) -> None:
    assert command("export", "alice", "alice.json").code == 0
    assert command("import", "alice.json", "--as", "back").out == "alice.json was imported as back.\n"
    Path("talk.txt").write_text(' [{"role": "user", "content": "I moved to Porto."}]', encoding="utf-8")
    assert command("import", "talk.txt", "--as", "alice").out == "imported 1 turn from talk.txt into alice.\n"


@pytest.mark.parametrize("damage", ["no database", "", "cut"])
def test_what_is_damaged_is_not_imported(command: Command, alice: Path, tmp_path: Path, damage: str) -> None:
    assert command("export", "alice", "alice.db").code == 0
    raw = Path("alice.db").read_bytes()
    Path("alice.db").write_bytes(raw[: len(raw) // 2] if damage == "cut" else damage.encode())
    done = command("import", "alice.db", "--as", "back")
    assert (done.code, done.out) == (1, "")
    assert re.match(r"selfpager: alice\.db\b.* damaged", done.err)  # not the copy, which nobody has seen
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["alice"]


def test_a_byte_that_was_changed_is_noticed(command: Command, alice: Path, tmp_path: Path) -> None:
    assert command("export", "alice", "alice.db").code == 0
    raw, before = Path("alice.db").read_bytes(), rows(alice / "pager.db")
    text = raw.index(b"aisle")
    for place in (
        text,
        *range(len(SQLITE_HEADER), len(raw), len(raw) // 12),
        len(raw) - CHECKSUM_BYTES + 3,
        len(raw) - 5,
    ):
        Path("changed.db").write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        done = command("import", "changed.db", "--as", f"at{place}")
        if done.code == 0:  # in the words of the last line itself
            assert len(raw) - CHECKSUM_BYTES <= place < len(raw) - CHECKSUM_BYTES + len(CHECKSUM_MARK)
            assert rows(alice.with_name(f"at{place}") / "pager.db") == before
        else:
            assert "changed.db is damaged: it is not what was exported, byte for byte. Export again" in done.err
            assert not alice.with_name(f"at{place}").exists()


def test_what_breaks_a_law_is_not_imported(command: Command, alice: Path, tmp_path: Path) -> None:
    shutil.copyfile(alice / "pager.db", "alice.db")
    with closing(sqlite3.connect("alice.db")) as database:
        database.execute("INSERT INTO residency (page, how, from_step, until_step) VALUES ('s1', 'pinned', 5, 2)")
        database.commit()
    done = command("import", "alice.db", "--as", "back")
    assert (done.code, "ends before it begins" in done.err) == (1, True)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["alice"]


def test_purge_destroys_for_good(command: Command, alice: Path) -> None:
    done = command("purge", "alice", "s1", "--yes")
    assert done.code == 0
    assert done.out.startswith("s1 was purged from ")
    assert b"zyzzogeton" not in (alice / "pager.db").read_bytes()
    assert command("purge", "alice", "f1", "--yes", "--json").json["purged"] == "f1"
    assert command("purge", "alice", "--json", "f2").code == 2
    gone = command("purge", "alice", "s99", "--yes")
    assert gone.code == 1
    assert "s99" in gone.err


@pytest.mark.parametrize(("typed", "code", "kept"), [("n\r", 1, True), ("\x03", 130, True), ("y\r", 0, False)])
def test_purge_asks_before(alice: Path, typed: str, code: int, kept: bool) -> None:
    with Terminal("purge", "alice", "s1", "--home", alice.parent) as terminal:
        asked = terminal.until("[y/N]: ")
        assert "Destroy s1 for good: 'The secret word is zyzzogeton.'" in " ".join(asked.split())
        terminal.type(typed)
        assert terminal.end(insist=typed)[0] == code
    assert (b"zyzzogeton" in (alice / "pager.db").read_bytes()) == kept


def test_purge_without_an_answer_changes_nothing(
    command: Command, alice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("nothing").open("w+", encoding="utf-8") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        done = command("purge", "alice", "s1")
        assert (done.code, "nothing was purged; --yes purges" in done.err) == (130, True)
    with MemoryReader.open(alice) as reading:
        assert "zyzzogeton" in reading.page("s1")
