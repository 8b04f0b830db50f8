"""Encrypted agents: no table holds their words, no row opens in another's place, without its key none opens at all."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from agents.serve.errors import as_api_error
from pager import Home, Memory, StorageError
from pager.errors import AgentLostError, UnavailableError
from pager.log import commands as commands_module
from pager.log import keys as keys_module
from pager.log import log as log_module
from pager.log import past as past_module
from pager.log import states as states_module
from pager.log.keys import FILE_VARIABLE, VARIABLE, master_keys
from pager.log.postgres import Transaction
from pager.log.states import States
from tests.log.conftest import LONG
from tests.log.test_past import now
from tests.log.test_restore import fold, rows_of
from tests.support.postgres import end_leases

if TYPE_CHECKING:
    from tests.support.postgres import Postgres

pytest.importorskip("cryptography", reason="needs cryptography: pip install 'selfpager[encryption]'")

SECRET = "xyzzy plugh quuxly"
NEVER_CLEAR = "brillig vorpal snicker"  # others leave their texts in the files of this Postgres
FIRST, SECOND = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
ALL = ("agents", "bases", "chunks", "commands", "commits", "copies", "keys", "packs")


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the file with the master keys."""
    file = tmp_path / "master"
    file.write_text(f"{FIRST}\n")
    file.chmod(0o600)
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    return file


def live(memory: Memory, word: str = SECRET) -> None:
    for number in range(4):
        memory.archive(f"{word} fact {number}")
        memory.append_user(f"{word} said {number}")
        memory.leave_turn("done")
        memory.save_value(f"{word} {number}", word * 300)


def facts(home: Home, name: str) -> list[str]:
    with home.read(name, embedder=None) as reader:
        return [use.fact.text for use in reader.inspect.facts("current").rows]


def dump(address: str) -> bytes:
    """Everything in every table, as bytes."""
    server = rows_of(address).server
    with server.transaction() as transaction:
        rows = [row for table in ALL for row in transaction.rows(f"SELECT * FROM selfpager.{table}")]
    return b"".join(value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row)


def contents(folder: Path) -> Iterator[bytes]:
    """Yield what the files of a Postgres hold. It removes some while it runs."""
    for place, _, names in os.walk(folder):
        for file in map(Path(place).joinpath, names):
            with suppress(FileNotFoundError):
                if file.is_file():
                    yield file.read_bytes()


def test_no_table_and_no_file_of_the_database_holds_a_word_of_it(
    home: Home, address: str, postgres: Postgres, master: Path
) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory, NEVER_CLEAR)
        fold(memory)
        live(memory, NEVER_CLEAR)
        home.send("x", "message", {"text": f"{NEVER_CLEAR} of another process"})
        pending = home.pending("x")
        stored = dump(address)
    assert [each["arguments"]["text"] for each in pending] == [f"{NEVER_CLEAR} of another process"]
    postgres.run("CHECKPOINT")
    have_it = [b"vorpal" in content for content in contents(postgres._data)]
    assert len(stored) > 10_000
    assert len(have_it) > 100
    assert b"vorpal" not in stored
    assert not any(have_it)
    # zlib would hide a word as well: what is there does not even unpack.
    found = rows_of(address).server.ask(
        """SELECT data FROM selfpager.commits UNION ALL SELECT data FROM selfpager.chunks
           UNION ALL SELECT data FROM selfpager.packs"""
    )
    for (data,) in found:
        for begin in (0, 12):
            with pytest.raises(zlib.error):
                zlib.decompress(data[begin:])
    assert base64.b64decode(FIRST) not in stored
    assert len(facts(home, "x")) == 4


def test_the_search_of_the_test_before_finds_words_of_an_agent_in_clear(home: Home, address: str) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory)
        home.send("x", "message", {"text": SECRET})
        assert b"plugh" in dump(address)
    [(data,)] = rows_of(address).server.ask("SELECT data FROM selfpager.commits WHERE seq = 2")
    zlib.decompress(data)


SWAPS = {
    "a commit in place of another": """
        UPDATE selfpager.commits c SET data = (SELECT data FROM selfpager.commits o WHERE o.agent = c.agent
        AND o.seq = c.seq - 1) WHERE seq = (SELECT max(seq) FROM selfpager.commits)""",
    "a commit of another agent": """
        UPDATE selfpager.commits c SET data = (SELECT data FROM selfpager.commits o WHERE o.agent <> c.agent LIMIT 1)
        WHERE (agent, seq) IN (SELECT id, seq FROM selfpager.agents WHERE name = 'x')""",
    "a chunk in place of another": """
        UPDATE selfpager.chunks c SET data = (SELECT data FROM selfpager.chunks o WHERE o.agent = c.agent AND
        o.number = 1 - c.number AND o.seq = c.seq) WHERE number < 2""",
    "a chunk of another agent": """
        UPDATE selfpager.chunks c SET data = o.data FROM selfpager.chunks o
        WHERE o.agent <> c.agent AND (o.number, o.seq) = (c.number, c.seq)""",
    "an earlier chunk": """
        UPDATE selfpager.chunks c SET data = o.data FROM old_chunks o WHERE o.agent = c.agent
        AND o.number = c.number AND o.seq < c.seq""",
    "the list of chunks of another time": """
        UPDATE selfpager.bases b SET versions = o.versions FROM old_bases o
        WHERE o.agent = b.agent AND b.seq > o.seq""",
    "a commit of a helper, which has the same key": """
        UPDATE selfpager.commits c SET data = (SELECT data FROM selfpager.commits o
        JOIN selfpager.agents a ON a.id = o.agent WHERE starts_with(a.name, 'x/') AND o.seq = 2)
        WHERE (agent, seq) IN (SELECT id, seq FROM selfpager.agents WHERE name = 'x')""",
    "another size": "UPDATE selfpager.bases SET size_bytes = size_bytes - 2048",
    "the key of another agent": """
        UPDATE selfpager.keys k SET wrapped = o.wrapped, id = o.id FROM selfpager.keys o WHERE o.agent <> k.agent""",
    "another agent under its name": """
        UPDATE selfpager.agents SET name = 'z' WHERE name = 'x';
        UPDATE selfpager.agents SET name = 'x' WHERE name = 'y'""",
}


def two_agents(address: str) -> Home:
    """Two agents of two folds, and what they had after the first one."""
    home, server = Home(address), rows_of(address).server
    for table in ("chunks", "bases"):
        server.ask(f"CREATE TABLE old_{table} (LIKE selfpager.{table})")
    for name in ("x", "y"):
        with home.open(name, embedder=None) as memory:
            live(memory)
            fold(memory)
            for table in ("chunks", "bases"):
                server.ask(f"INSERT INTO old_{table} SELECT * FROM selfpager.{table} WHERE seq > 0")
            live(memory)
            fold(memory)
    return home


def restored(address: str, file: Path) -> bytes:
    file.unlink(missing_ok=True)
    rows = rows_of(address)
    state = rows.state("x")
    assert state
    rows.states.restore(state.agent, file)
    return file.read_bytes()


@pytest.mark.parametrize("swap", SWAPS)
def test_a_row_in_the_place_of_another_is_refused(address: str, master: Path, swap: str) -> None:
    home = two_agents(address)
    with home.open("x", embedder=None) as memory:
        live(memory, "after the fold")
        with Memory.open(home.place("x").helper("call_1"), embedder=None) as helper:
            live(helper)
    rows_of(address).server.ask(SWAPS[swap])
    with pytest.raises(StorageError, match="is not what was encrypted for its place"):
        home.open("x", embedder=None)
    with pytest.raises(StorageError, match="is not what was encrypted for its place"):
        home.read("x", embedder=None)


def test_a_pack_in_the_place_of_another_is_refused(address: str, master: Path, tmp_path: Path) -> None:
    two_agents(address)
    server = rows_of(address).server
    [(agent, at)] = server.ask("SELECT agent, min(at) FROM selfpager.packs WHERE seq > 1 GROUP BY 1 ORDER BY 1 LIMIT 1")
    states = rows_of(address).states
    states.restore(agent, tmp_path / "before", at)
    server.ask(
        """UPDATE selfpager.packs p SET data = o.data FROM selfpager.packs o
           WHERE p.agent = o.agent AND p.seq > 1 AND o.seq = 1"""
    )
    with pytest.raises(StorageError, match="is not what was encrypted for its place"):
        states.restore(agent, tmp_path / "after", at)


def test_without_places_an_earlier_chunk_passes_for_the_newest(
    address: str, master: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: what is sealed does not say for which place. Then the swaps above are not refused."""
    for module in (log_module, states_module, past_module, commands_module):
        monkeypatch.setattr(module, "place", lambda *_: b"")
    two_agents(address)
    before = restored(address, tmp_path / "copy")
    rows_of(address).server.ask(SWAPS["an earlier chunk"])
    assert restored(address, tmp_path / "copy") != before


def message_under_another_id(home: Home, address: str) -> None:
    """Somebody repeats a message that was sent. It is said once."""
    with home.open("x", embedder=None) as memory:
        live(memory)
    home.send("x", "message", {"text": "pay the bill"})
    rows_of(address).server.ask(
        "INSERT INTO selfpager.commands SELECT agent, id || '0', command FROM selfpager.commands"
    )
    with home.open("x", embedder=None) as memory:
        memory.process_inbox()
        assert str(memory.request()).count("pay the bill") == 1
        assert "encrypted for its place" in str(memory.ledger(limit=5))


def test_a_message_that_is_repeated_is_set_aside(home: Home, address: str, master: Path) -> None:
    message_under_another_id(home, address)


def test_without_places_the_judge_notices(
    home: Home, address: str, master: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands_module, "place", lambda *_: b"")
    with pytest.raises(AssertionError, match="== 1"):
        message_under_another_id(home, address)


def test_without_the_master_key_nothing_opens_and_nothing_is_lost(
    home: Home, master: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory)
    with monkeypatch.context() as without:
        without.delenv(FILE_VARIABLE)
        attempts: list[Any] = [home.open, home.read, lambda name: home.send(name, "message", {"text": "hello"})]
        for attempt in attempts:
            with pytest.raises(StorageError, match=f"'x' is encrypted.* this process has none. Set {FILE_VARIABLE}"):
                attempt("x")
        with pytest.raises(UnavailableError, match=f"no master key to encrypt a new one: set {FILE_VARIABLE}") as lacks:
            home.open("new", embedder=None)
        answer = as_api_error(lacks.value)  # to a caller of the API it is not their mistake, and names no place
        assert (answer.status, "master key is missing" in answer.message) == (503, True)
        assert "postgresql:" not in answer.message + answer.advice
        without.setenv(VARIABLE, SECOND)
        [other] = master_keys()
        with pytest.raises(StorageError, match=f"wrapped by the master key [0-9a-f]{{12}}; this process has {other}"):
            home.open("x", embedder=None)
    assert home.names() == ["x"]
    assert len(facts(home, "x")) == 4


BAD = {"": "holds no master key", "c2hvcnQ=": "is not 32 bytes in base64", "!": "is not 32 bytes in base64"}


@pytest.mark.parametrize("text", BAD)
def test_a_file_without_a_master_key_says_how_to_make_one(home: Home, master: Path, text: str) -> None:
    master.write_text(text)
    with pytest.raises(StorageError, match=rf"{BAD[text]}; make one with: openssl rand -base64 32"):
        home.open("x", embedder=None)
    master.chmod(0o604)
    with pytest.raises(StorageError, match=r"is open to every user of this machine: chmod o= .*master"):
        home.open("x", embedder=None)
    master.unlink()
    with pytest.raises(StorageError, match=r"master cannot be read: No such file"):
        home.open("x", embedder=None)


def test_helpers_share_the_key_of_their_owner_and_other_agents_do_not(home: Home, address: str, master: Path) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory)
        with Memory.open(home.place("x").helper("call_1"), embedder=None) as helper:
            live(helper)
    with home.open("y", embedder=None) as memory:
        live(memory)
    assert rows_of(address).server.ask("SELECT count(*) FROM selfpager.keys") == [(2,)]
    home.remove("x")
    assert rows_of(address).server.ask("SELECT count(*) FROM selfpager.keys") == [(1,)]
    assert len(facts(home, "y")) == 4


def test_a_new_master_key_wraps_all_keys_while_agents_run(home: Home, master: Path) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory)
        master.write_text(f"{SECOND}\n{FIRST}\n")
        assert home.wrap_keys() == (1, 1)
        assert home.wrap_keys() == (0, 1)
        master.write_text(f"{SECOND}\n")
        memory.archive("goes on")
    assert facts(home, "x")[0] == "goes on"


def test_a_new_key_seals_everything_anew_also_what_was_in_clear(
    home: Home, address: str, master: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.delenv(FILE_VARIABLE)
        with home.open("x", embedder=None) as memory:
            live(memory)
            with Memory.open(home.place("x").helper("call_1"), embedder=None) as helper:
                live(helper)
        home.send("x", "message", {"text": SECRET})
        with pytest.raises(StorageError, match="there is no master key: make one"):
            home.change_key("x")
    keys = list[Any]()
    for _ in range(2):
        assert home.change_key("x") == 2
        keys += rows_of(address).server.ask("SELECT id FROM selfpager.keys")
        assert b"plugh" not in dump(address)
        assert len(facts(home, "x")) == 4
        assert home.pending("x")[0]["arguments"]["text"] == SECRET
        [place] = home.place("x").helpers()
        with Memory.open(place, embedder=None) as helper:
            assert helper.check() == []
    assert keys[0] != keys[1]
    with home.open("x", embedder=None) as memory:
        memory.process_inbox()
        assert memory.check() == []


def test_an_earlier_state_of_an_encrypted_agent_becomes_one_with_a_key_of_its_own(
    home: Home, address: str, master: Path
) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory)
        before = now(address)
        memory.archive("later")
    home.restore("x", before, into="y")
    assert "later" not in facts(home, "y")
    assert rows_of(address).server.ask("SELECT count(DISTINCT wrapped) FROM selfpager.keys") == [(2,)]
    home.remove("x")
    assert len(facts(home, "y")) == 4


def test_after_an_erasure_no_row_decrypts_that_somebody_has_kept(
    home: Home, address: str, postgres: Postgres, master: Path
) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory)
    server = rows_of(address).server
    [(wrapped,)] = server.ask("SELECT wrapped FROM selfpager.keys")
    kept = ("agents", "bases", "chunks", "commits")  # a backup without the table of keys
    for table in kept:
        server.ask(f"CREATE TABLE public.{table} AS SELECT * FROM selfpager.{table}")
    home.remove("x")
    assert home.names() == []
    for table in kept:
        override = "OVERRIDING SYSTEM VALUE" if table == "agents" else ""
        server.ask(f"INSERT INTO selfpager.{table} {override} SELECT * FROM public.{table}")
    assert home.names() == ["x"]
    with pytest.raises(StorageError, match="rows in Postgres are damaged"):
        home.open("x", embedder=None)
    postgres.run("CHECKPOINT")
    assert not [content for content in contents(postgres._data / "base") if wrapped in content]


def test_an_erasure_waits_for_transactions_that_began_before_it(
    home: Home, address: str, master: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "xy":
        with home.open(name, embedder=None) as memory:
            live(memory)
    with psycopg.connect(address.partition("&lease")[0]) as backup:
        backup.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        backup.execute("SELECT 1 FROM pg_class").fetchone()
        with monkeypatch.context() as late:
            late.setattr(keys_module, "monotonic", count(0, LONG + 1).__next__)  # whenever it looks, it is too late
            with pytest.raises(StorageError, match=r"may still hold it: a transaction .* goes on.* run `selfp"):
                home.remove("x")
        monkeypatch.setattr(keys_module, "sleep", lambda _: backup.rollback())
        home.remove("y")
    assert home.names() == []
    assert rows_of(address).server.write_anew("selfpager.keys") == 0


def test_who_stood_still_before_its_first_commit_replaces_no_key_of_who_came_after(
    home: Home, address: str, master: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = States.begin

    def stand_still(states: States, *claimed: Any) -> Any:
        monkeypatch.undo()
        monkeypatch.setenv(FILE_VARIABLE, str(master))
        end_leases(address)
        with home.open("x", embedder=None) as memory:
            live(memory)
        return begin(states, *claimed)

    monkeypatch.setattr(States, "begin", stand_still)
    with pytest.raises(AgentLostError, match="open the agent again"):
        home.open("x", embedder=None)
    assert len(facts(home, "x")) == 4


def test_a_new_master_key_wraps_what_others_are_about_to_commit_too(home: Home, address: str, master: Path) -> None:
    """They have read the old one. When it is thrown away nothing may be wrapped by it any more."""
    rows = rows_of(address)
    with home.open("x", embedder=None) as memory:
        live(memory)
    with ThreadPoolExecutor() as pool:
        with rows.server.transaction() as transaction:  # of an import, and of a new key
            made = transaction.rows("INSERT INTO selfpager.agents (name) VALUES ('y') RETURNING id")
            for (agent,) in (*made, *transaction.rows("SELECT id FROM selfpager.agents WHERE name = 'x'")):
                rows.keys.replace(transaction, agent)
            master.write_text(f"{SECOND}\n{FIRST}\n")
            wrapping = pool.submit(home.wrap_keys)
            waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            while not wrapping.done() and not rows.server.ask(waits):
                pass
        assert wrapping.result() == (2, 2)


class Killed(BaseException):
    """Ends the process in the middle of a rotation."""


@pytest.mark.parametrize("rotate", ["change_key", "wrap_keys"])
def test_a_rotation_that_is_killed_before_any_statement_has_not_happened(
    home: Home, address: str, master: Path, rotate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory)
    home.send("x", "message", {"text": SECRET})
    master.write_text(f"{SECOND}\n{FIRST}\n")
    run, survived = Transaction.rows, 0
    for survived in count():
        left = survived

        def rows(self: Transaction, sql: str, values: Any = ()) -> list[Any]:
            nonlocal left
            left -= 1
            if left == -1:
                raise Killed
            return run(self, sql, values)

        with monkeypatch.context() as killed, suppress(Killed):
            killed.setattr(Transaction, "rows", rows)
            home.change_key("x") if rotate == "change_key" else home.wrap_keys()
            break
        end_leases(address)  # it may not have given the agent back
        assert len(facts(home, "x")) == 4
        assert home.pending("x")[0]["arguments"]["text"] == SECRET
    assert survived > 2
    master.write_text(f"{SECOND}\n")
    assert len(facts(home, "x")) == 4
    assert home.pending("x")[0]["arguments"]["text"] == SECRET
