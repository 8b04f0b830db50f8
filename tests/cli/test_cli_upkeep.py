"""The commands that look after agents and their files: what they do, what they say, plainly and as JSON."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agents.config import yaml_file
from agents.config.agent_config import load
from agents.config.schema import json_schema
from agents.serve.app import ENDPOINTS
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
    ("arguments", "request_line"),
    [
        (["check", "alice"], "GET /v1/agents/alice/check"),
        (["purge", "alice", "f1", "--yes"], "DELETE /v1/agents/alice/pages/f1"),
        (["erase", "alice", "--yes"], "DELETE /v1/agents/alice"),
        (["sleep", "alice"], "POST /v1/agents/alice/sleeps"),
    ],
)
def test_what_an_open_agent_refuses_says_how_its_server_does_it(
    command: Command, alice: Path, arguments: list[str], request_line: str
) -> None:
    with Memory.open(alice, embedder=None):
        refused = command(*arguments).err
    assert "alice is in use by process" in refused
    assert refused.endswith(f"If that is `selfpager serve`, it does this, too: {request_line}\n")
    method, _, path = request_line.partition(" ")
    assert any(route.method == method and route.path_regex.match(path) for route in ENDPOINTS)


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


def test_validate_reports_what_it_read_and_imports_the_tools(command: Command) -> None:
    Path("mine.py").write_text('def look() -> str:\n    """Look."""\n    return ""\n', encoding="utf-8")
    Path("x.yaml").write_text(YAML + "tools: [{use: 'mine:look'}]\n", encoding="utf-8")
    assert command("validate", "x.yaml").out == "x.yaml is valid: the agent 'x', scripted m, own tools look\n"
    report = {"valid": True, "name": "x", "tools": ["look"], "remarks": []}
    assert command("validate", "x.yaml", "--json").json == report


WINDOW = "name: large\nmodel: {id: m}\nwindow: {limit_tokens: 8000}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{WINDOW}instructions: '{'be brief ' * 3_000}'", "do not fit"),
        (f"{WINDOW}core: {{blocks: {{human: {{value: '{'who ' * 300}', limit_tokens: 100}}}}}}", "of 100 tokens"),
        (f"{YAML}tools: [{{use: 'nothing:leap'}}]", "'nothing:leap' cannot be imported"),
        (f"{YAML}archival: {{embedder: huggingface}}", "CHROMA_HUGGINGFACE_API_KEY"),
        ("name: x\nmodle: {}", "2:1: unknown key 'modle'; did you mean 'model'?"),
    ],
)
def test_what_could_never_load_is_invalid(
    command: Command, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    for variable in ("CHROMA_HUGGINGFACE_API_KEY", "HUGGINGFACE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    Path("x.yaml").write_text(f"{text}\n", encoding="utf-8")
    done = command("validate", "x.yaml")
    assert (done.code, done.out, message in done.err) == (2, "", True)
    assert done.err.startswith("selfpager: x.yaml:")


@pytest.mark.parametrize(("limit", "codes"), [(2_400, (2, 2, 2)), (2_800, (0, 0, 2)), (20_000, (0, 0, 0))])
def test_all_commands_report_a_window_that_is_too_small_alike(
    command: Command, limit: int, codes: tuple[int, ...]
) -> None:
    window = f"model: {{{SCRIPTED}, max_output_tokens: 500}}\nwindow: {{limit_tokens: {limit}}}\n"
    Path("x.yaml").write_text(f"name: x\narchival: {{embedder: none}}\n{window}", encoding="utf-8")
    valid = command("validate", "x.yaml", "--json")
    done = (valid, command("chat", "x.yaml", said="hello\n"), command("run", "x.yaml", "Tell me who I am."))
    assert tuple(2 if each.code == 2 else 0 for each in done) == codes
    assert [each.err.startswith("selfpager: x.yaml:4:") for each in done] == [code == 2 for code in codes]
    if valid.code == 0:
        assert bool(valid.json["remarks"]) == (codes[2] == 2)


def test_render_shows_what_load_reads_without_secrets(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "large")
    Path("x.yaml").write_text(YAML, encoding="utf-8")
    rendered = command("render", "x.yaml").out
    Path("again.yaml").write_text(rendered, encoding="utf-8")
    assert load(Path("again.yaml"), {}).model.id == "large"
    assert command("render", "x.yaml", "--json").json == yaml_file.read(Path("again.yaml"), {}).data
    assert "s3cret" not in rendered
    assert json.loads(command("schema").out) == json_schema()


def rows(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything in a database, but for where it came from."""
    with closing(sqlite3.connect(file)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}


def test_an_exported_agent_comes_back_whole(command: Command, alice: Path) -> None:
    with Memory.open(alice, embedder=None, core={"human": BlockSpec(value="Alice")}) as memory:
        memory.append_user("hello")
        memory.request()
        memory.append_assistant("Hello.", {"input_tokens": 500, "output_tokens": 3})
        memory.core_append("human", "a baker")
        memory.forget("f2", "wrong")
    before = rows(alice / "pager.db")
    assert all(before[name] for name in ("facts", "steps", "parts", "blocks", "ledger", "requests", "residency"))
    assert command("export", "alice", "alice.db").out == "alice was exported to alice.db.\n"
    assert command("export", "alice", "more.db", "--json").json == {"exported": "alice", "file": "more.db"}
    assert rows(Path("alice.db")) == before
    refused = command("import", "alice.db")
    assert (refused.code, "there is an agent" in refused.err, "--as" in refused.err) == (1, True, True)
    assert command("import", "alice.db", "--as", "back").out == "alice.db was imported as back.\n"
    assert command("import", "more.db", "--json").json == {"imported": "more", "file": "more.db"}
    back = rows(alice.with_name("back") / "pager.db")
    assert back == rows(alice.with_name("more") / "pager.db")
    # Its prompt begins anew, and what was learned of models and limits is not carried on: a file is only data.
    for changed in ("epochs", "tokenizers", "meta"):
        assert len(back.pop(changed)) <= len(before.pop(changed))
    assert back == before
    assert command("check", "back").code == 0


def test_pending_commands_are_exported_too_and_take_effect_once(command: Command, alice: Path) -> None:
    sent = [
        send_command(alice, "message", {"text": "Remember the oven."}, SystemClock()),
        send_command(alice, "archive", {"text": "has a boat"}, SystemClock()),
    ]
    assert command("export", "alice", "alice.db").code == 0
    with Memory.open(alice, embedder=None) as memory:
        memory.process_inbox(messages=False)
    assert command("import", "alice.db", "--as", "back").code == 0
    back = alice.with_name("back")
    assert ([each["id"] for each in pending_commands(alice)], pending_commands(back)) == (sent[:1], [])
    with Memory.open(back, embedder=None) as memory:
        assert not memory.turn_is_open
        assert [fact.text for fact in memory.inspect.newest_facts()].count("has a boat") == 1
        memory.append_user("hello")
        assert "Remember the oven." in str(memory.request().params)
    assert "inbox" not in [row[0] for row in rows(back / "pager.db")["meta"]]


def test_the_content_of_a_file_decides_what_is_imported(command: Command, alice: Path) -> None:
    talk = '[{"role": "user", "content": "I moved to Porto."}]'
    for name in ("talk.txt", "my talk.json"):
        Path(name).write_text(talk, encoding="utf-8")
    Path("notes").mkdir()
    Path("notes/MEMORY.md").write_text("# Tea\ngreen, no sugar", encoding="utf-8")
    assert command("import", "talk.txt", "--as", "alice").out == "imported 1 message from talk.txt into alice.\n"
    notes = command("import", "notes", "--as", "alice", "--json").json
    assert notes == {"imported": "alice", "file": "notes", "facts": 1}
    with Memory.open(alice, embedder=None) as memory:
        assert memory.search_recall("Porto")[0].who == "user"
        assert memory.search_archive("sugar")[0].text == "# Tea\ngreen, no sugar"
    assert command("export", "alice", "alice.json").code == 0
    assert command("import", "alice.json", "--as", "back").out == "alice.json was imported as back.\n"
    nameless = command("import", "my talk.json")
    assert (nameless.code, nameless.err.strip().endswith("at most 64. Choose a name with --as.")) == (1, True)
    assert command("import", "my talk.json", "--as", "talk").code == 0
    assert alice.with_name("talk").is_dir()


NO_JSON = "talk.jsonl is not JSON: Expecting value: line 1 column 1 (char 0). Give an exported agent"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("talk.json", '[{"role": "user", "content": 7}]', "talk.json: message 0: its content is 7"),
        ("talk.json", '{"a": 1}', "talk.json holds no known conversation"),
        ("talk.jsonl", "one", NO_JSON),
        ("notes.md", "\0\xff", "notes.md cannot be read"),
        ("talk.json", "", "talk.json is empty, so it is damaged: there is nothing to import."),
        ("alice.db", "no database", "alice.db"),
    ],
)
def test_an_import_that_fails_leaves_nothing(command: Command, alice: Path, name: str, text: str, message: str) -> None:
    Path(name).write_bytes(text.encode("latin-1"))
    before = rows(alice / "pager.db")
    assert_refused(command, alice, name, message)
    assert command("import", name, "--as", "alice").code == 1
    assert rows(alice / "pager.db") == before


def test_what_a_home_had_before_what_is_broken_stays_in_a_new_agent(command: Command, alice: Path) -> None:
    project = Path(".claude/projects/-home-dana")
    project.mkdir(parents=True)
    (project / "1.jsonl").write_text('{"type":"user","message":{"content":"I moved to Porto."}}\n', encoding="utf-8")
    (project / "2.jsonl").write_text("{nonsense\n{}\n{}\n", encoding="utf-8")
    done = command("import", ".claude", "--as", "desk")
    assert (done.code, "2.jsonl:1: this line is not JSON" in done.err) == (1, True)
    with Memory.open(alice.with_name("desk"), embedder=None) as memory:
        assert [hit.text for hit in memory.search_recall("Porto")] == ["I moved to Porto."]


@pytest.mark.parametrize("has_file", [False, True])
def test_an_agent_whose_making_was_killed_is_imported_into(command: Command, alice: Path, has_file: bool) -> None:
    Path("notes.md").write_text("green tea", encoding="utf-8")
    alice.with_name("desk").mkdir()
    if has_file:  # before its tables are made
        with closing(sqlite3.connect(alice.with_name("desk") / "pager.db")) as database:
            database.execute("PRAGMA journal_mode = WAL")
    assert command("import", "notes.md", "--as", "desk").out == "imported 1 fact from notes.md into desk.\n"
    assert "green tea" in command("facts", "desk").out


def assert_refused(command: Command, alice: Path, name: str, message: str) -> None:
    done = command("import", name, "--as", "new")
    assert (done.code, done.out, message in done.err) == (1, "", True), done.err
    assert list(alice.parent.iterdir()) == [alice]


def test_what_breaks_a_law_is_not_imported(command: Command, alice: Path) -> None:
    shutil.copyfile(alice / "pager.db", "alice.db")
    with closing(sqlite3.connect("alice.db")) as database, database:
        database.execute("INSERT INTO residency (page, how, from_step, until_step) VALUES ('s1', 'pinned', 5, 2)")
    assert_refused(command, alice, "alice.db", "ends before it begins")


def test_a_byte_that_was_changed_is_noticed(command: Command, alice: Path) -> None:
    assert command("export", "alice", "alice.db").code == 0
    raw, before = Path("alice.db").read_bytes(), rows(alice / "pager.db")
    damaged = "changed.db is damaged: it is not what was exported, byte for byte. Export again"
    Path("changed.db").write_bytes(raw[: len(raw) // 2])
    assert_refused(command, alice, "changed.db", "damaged")
    last_line = range(len(raw) - CHECKSUM_BYTES, len(raw) - CHECKSUM_BYTES + len(CHECKSUM_MARK))
    through = range(len(SQLITE_HEADER), len(raw), len(raw) // 12)
    for place in (raw.index(b"aisle"), *through, len(raw) - CHECKSUM_BYTES + 3, len(raw) - 5):
        Path("changed.db").write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        done = command("import", "changed.db", "--as", f"at{place}")
        if done.code == 0:  # in the words of the last line itself
            assert place in last_line
            assert rows(alice.with_name(f"at{place}") / "pager.db") == before
        else:
            assert damaged in done.err
            assert not alice.with_name(f"at{place}").exists()


def test_purge_destroys_for_good(command: Command, alice: Path) -> None:
    done = command("purge", "alice", "s1", "--yes")
    assert (done.code, done.out.startswith("s1 was purged from 1 place; ")) == (0, True)
    assert b"zyzzogeton" not in (alice / "pager.db").read_bytes()
    assert command("purge", "alice", "f1", "--yes", "--json").json["purged"] == "f1"
    assert command("purge", "alice", "--json", "f2").code == 2
    gone = command("purge", "alice", "s99", "--yes")
    assert (gone.code, "s99" in gone.err) == (1, True)


def test_expired_facts_are_listed_asked_about_and_purged(command: Command, alice: Path) -> None:
    spans = ["purge", "alice", "--expired", "--older-than"]
    assert command(*spans, "400d", "--yes").out == "no fact expired more than 400d ago.\n"
    with Memory.open(alice, embedder=None) as memory:
        fact = memory.archive("the old code is 4711 blue", valid_from="2020-01-01", valid_until="2020-02-01")
    done = command(*spans, "400d")
    assert (done.code, f"{fact.id} until 2020-02-02 00:00: the old code is 4711 blue" in done.out) == (130, True)
    assert command(*spans, "400d", "--yes", "--json").json == {"purged": [fact.id], "kept": []}
    assert b"4711 blue" not in (alice / "pager.db").read_bytes()
    with Memory.open(alice, embedder=None) as memory:
        memory.archive("tulip 12 red", valid_from="2020-01-01", valid_until="2020-02-01")
        memory.archive("Dana said: tulip 12 red")
    assert command(*spans, "400d", "--yes").out.endswith("\nno other fact expired more than 400d ago.\n")
    for wrong in (["--expired"], ["--older-than", "3d"], ["f1", "--expired", "--older-than", "3d"], []):
        assert command("purge", "alice", *wrong, "--yes").code == 2
    refused = command(*spans, "0d", "--yes")
    assert (refused.code, "'0d' is not a span of time" in refused.err) == (1, True)


def test_a_mirror_is_written_and_its_edits_come_back(command: Command, alice: Path, tmp_path: Path) -> None:
    target = tmp_path / "notes"
    assert command("export", "alice", f"{target}/").out == f"{target} mirrors alice.\n"
    (target / "facts" / "tea.md").write_text("likes green tea", encoding="utf-8")
    assert command("import", target).out == f"1 edit of {target} taken over into alice.\n"
    assert command("import", target, "--json").json == {"imported": "alice", "folder": str(target), "edits": 0}
    assert command("export", "alice", target, "--json").json["folder"] == str(target)
    assert "likes green tea" in command("facts", "alice").out
    (target / "facts" / "bad.md").write_text("---\nkey: x\n---\ny", encoding="utf-8")
    failed = command("import", target)
    assert (failed.code, "bad.md:2: the value of key is no JSON" in failed.err) == (1, True)
    assert command("import", target, "--as", "nobody").code == 1


@pytest.mark.parametrize(("typed", "code", "kept"), [("n\r", 1, True), ("\x03", 130, True), ("y\r", 0, False)])
def test_purge_asks_before(alice: Path, typed: str, code: int, kept: bool) -> None:
    with Terminal("purge", "alice", "s1", "--home", alice.parent) as terminal:
        asked = terminal.until("[y/N]: ")
        assert "Destroy s1 for good: 'The secret word is zyzzogeton.'" in " ".join(asked.split())
        terminal.type(typed)
        assert terminal.end(insist=typed)[0] == code
    assert (b"zyzzogeton" in (alice / "pager.db").read_bytes()) == kept


def test_purge_without_an_answer_changes_nothing(command: Command, alice: Path) -> None:
    done = command("purge", "alice", "s1")
    assert (done.code, "nothing was purged; --yes purges" in done.err) == (130, True)
    with MemoryReader.open(alice) as reading:
        assert "zyzzogeton" in reading.page_text("s1")
