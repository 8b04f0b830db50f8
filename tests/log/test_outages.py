"""Postgres that is down, refuses, is killed, or cannot be reached: what was acknowledged is there, nothing else passes
for it, and every error says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from agents.httpd import HttpServer
from pager import Home, Memory, RejectedError, StorageError
from pager.errors import AgentLostError, PagerError
from pager.log.failures import explain
from pager.log.postgres import Server
from tests.support.postgres import rows_of

if TYPE_CHECKING:
    from tests.support.postgres import Postgres
    from tests.support.proxy import Proxy


def behind(proxy: Proxy, address: str, *, password: str = "") -> str:
    database = address.partition("?")[0].rpartition("/")[2]
    options = "lease_seconds=300&limit_seconds=300&sslmode=disable&gssencmode=disable"
    return f"postgresql://postgres:{password}@127.0.0.1:{proxy.port}/{database}?{options}"


@pytest.fixture
def through(proxy: Proxy, address: str) -> Iterator[str]:
    """Return the address at which the same database is reached through the proxy."""
    from pager.log.postgres import Server

    place = behind(proxy, address)
    yield place
    Server.at(place).close()


def facts(memory: Memory) -> list[str]:
    return [use.fact.text for use in memory.inspect.facts("current").rows][::-1]


def acknowledged(memory: Memory, texts: list[str], number: int) -> None:
    """Store a fact, and note it when that has returned."""
    memory.archive(f"fact {number}")
    texts.append(f"fact {number}")


def judge(address: str, texts: list[str], *, unknown: int, through: str = "") -> None:
    """All that was acknowledged is there, in order, and `unknown` commits more; -1 for none or one."""
    from tests.support.postgres import open_after_loss

    with open_after_loss(Home(through or address), address, "x") as memory:
        found = facts(memory)
        assert found[: len(texts)] == texts
        assert len(found) - len(texts) in (0, 1)
        assert len(found) == len(texts) + unknown or unknown < 0
        assert memory.check() == []


@pytest.mark.parametrize("kind", ["lose_answers", "lose_everything", "cut"])
def test_a_partition_loses_the_agent_and_nothing_else(address: str, through: str, proxy: Proxy, kind: str) -> None:
    from tests.support.postgres import impatient

    texts: list[str] = []
    memory = Home(through).open("x", embedder=None)
    for number in range(5):
        acknowledged(memory, texts, number)
    getattr(proxy, kind)()
    with impatient(through):
        outcome = "its last commit was not stored" if kind == "cut" else "nobody knows if its last commit was stored"
        with pytest.raises(AgentLostError, match=rf"{outcome} .* open the agent again"):
            acknowledged(memory, texts, 5)
        with pytest.raises(AgentLostError):
            memory.core()
        memory.close()
    unknown = -1 if kind == "lose_answers" else 0  # what arrived may have been all of the commit, or not yet
    judge(address, texts, unknown=unknown)
    proxy.heal()
    judge(address, texts, unknown=unknown, through=through)


def test_connections_that_ended_between_commits_are_not_used(through: str, proxy: Proxy) -> None:
    from pager.log.postgres import Server

    with Home(through).open("x", embedder=None) as memory:
        memory.archive("fact 0")
        with Server.at(through).transaction(), Server.at(through).snapshot():
            pass  # several are open now
        proxy.heal()  # ends them
        memory.archive("fact 1")
        assert facts(memory) == ["fact 0", "fact 1"]


def test_a_restart_of_postgres_between_commits_is_not_noticed(postgres: Postgres, address: str) -> None:
    with Home(address).open("x", embedder=None) as memory:
        memory.archive("fact 0")
        postgres.kill()
        postgres.start()
        memory.archive("fact 1")
        assert facts(memory) == ["fact 0", "fact 1"]


def test_who_comes_after_an_outage_waits_for_nothing(through: str, proxy: Proxy) -> None:
    """Nothing is tried in the background, with pauses that others would wait for: whoever asks connects, at once."""
    from tests.support.postgres import impatient

    home = Home(through)
    proxy.cut()
    with impatient(through):
        for _ in range(20):
            with pytest.raises(StorageError, match="Check that it runs"):
                home.names()
    proxy.heal()
    assert home.names() == []
    assert proxy.attempts == 1 + 20 * 2 + 1  # before, meanwhile, each tried twice, and after


def test_postgres_is_killed_and_started_again(postgres: Postgres, address: str) -> None:
    from tests.support.postgres import impatient

    texts: list[str] = []
    for crash in range(2):
        home = Home(address)
        memory = home.open("x", embedder=None)
        for number in range(4):
            acknowledged(memory, texts, 10 * crash + number)
        postgres.kill()
        try:
            with impatient(address):
                with pytest.raises(AgentLostError):
                    acknowledged(memory, texts, 10 * crash + 9)
                memory.close()
                with pytest.raises(StorageError, match=r"Postgres at postgresql:///test.* Check that it runs"):
                    home.open("x", embedder=None)
        finally:
            postgres.start()
        judge(address, texts, unknown=0)


def test_what_could_not_be_given_back_is_opened_again_at_once(postgres: Postgres, home: Home, address: str) -> None:
    """By the process that had it: others wait until its lease has ended."""
    from tests.support.postgres import impatient

    memory = home.open("x", embedder=None)
    memory.archive("one")
    postgres.kill()
    try:
        with impatient(address):
            with pytest.raises(AgentLostError, match="was not stored"):
                memory.archive("two")
            memory.close()
    finally:
        postgres.start()
    with home.open("x", embedder=None) as memory:
        assert facts(memory) == ["one"]


def test_an_interrupt_during_a_commit_loses_nothing(home: Home, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pager.log.rows import Rows

    commit = Rows.commit
    texts: list[str] = []
    with home.open("x", embedder=None) as memory:
        for number, stored in enumerate((True, False, True, False)):
            acknowledged(memory, texts, number)

            def interrupted(*args: object, stored: bool = stored) -> None:
                if stored:
                    commit(*args)  # type: ignore[arg-type]
                raise KeyboardInterrupt

            with monkeypatch.context() as patched:
                patched.setattr(Rows, "commit", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    memory.archive(f"interrupted {number}")
            texts.append(f"interrupted {number}")  # SQLite had committed it, as in a directory
            assert facts(memory) == texts
    judge(address, texts, unknown=0)


def test_a_full_disk_or_any_other_refusal_loses_the_agent(home: Home, address: str) -> None:
    from tests.support.postgres import rows_of

    texts: list[str] = []
    memory = home.open("x", embedder=None)
    acknowledged(memory, texts, 1)
    server = rows_of(address).server
    server.ask("ALTER TABLE selfpager.commits ADD CONSTRAINT no CHECK (seq < 0) NOT VALID")
    with pytest.raises(AgentLostError, match='violates check constraint "no"'):
        acknowledged(memory, texts, 2)
    server.ask("ALTER TABLE selfpager.commits DROP CONSTRAINT no")
    memory.close()
    judge(address, texts, unknown=0)


# What a person is told


def refusal(address: str) -> str:
    with pytest.raises(PagerError) as error:
        Home(address).names()
    return str(error.value)


def test_who_cannot_reach_it_is_told_why_and_what_to_do() -> None:
    told = refusal("postgresql://ann:hunter2secret@127.0.0.1:1/app?limit_seconds=2")
    assert "postgresql://127.0.0.1:1/app" in told
    assert "refused" in told
    assert "Check that it runs there" in told
    assert "hunter2secret" not in told


def test_a_database_that_is_not_there_is_named(postgres: Postgres) -> None:
    told = refusal(postgres.address("nothere"))
    assert 'database "nothere" does not exist' in told
    assert "Make it with createdb" in told


def test_a_user_that_is_not_there_is_named(postgres: Postgres) -> None:
    assert "Make it with createuser" in refusal(postgres.address().replace("postgres@", "stranger@"))


def test_what_is_no_postgres_is_told_so() -> None:
    with HttpServer(None) as other:
        told = refusal(f"postgresql://ann@127.0.0.1:{other.port}/app")
    assert "what answers there is no Postgres" in told


@pytest.mark.parametrize("login", ["ann:hunter/2secret", "ann:hunter#2secret", "ann:hunter?2secret"])
def test_a_password_that_cuts_the_address_is_told_and_not_shown(login: str) -> None:
    told = refusal(f"postgresql://{login}@db.example/app?sslmode=require")
    assert "/ is written as %2F" in told
    assert "hunter" not in told
    assert "2secret" not in told


def test_settings_of_libpq_reach_it_as_they_are_written(postgres: Postgres, address: str) -> None:
    from tests.support.postgres import rows_of

    place = f"{address}&options=-c%20selfpager.note%3Da%2Bb%20-c%20jit%3Doff"
    assert rows_of(place).server.ask("SELECT current_setting('selfpager.note'), current_setting('jit')") == [
        ("a+b", "off")
    ]
    folder = postgres.socket.rpartition("/")[0]
    Home(f"postgresql://?host={folder}&user=postgres&dbname={address.partition('?')[0].rpartition('/')[2]}").names()


def test_a_mistyped_setting_is_named() -> None:
    assert "has a setting 'lease_second'; lease_seconds is meant" in refusal("postgresql://db/app?lease_second=3")


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ('FATAL: password authentication failed for user "ann"', "Check user and password"),
        ("fe_sendauth: no password supplied", "Check user and password"),
        ('FATAL: no pg_hba.conf entry for host "10.0.0.7"', "pg_hba.conf"),
        ("failed to resolve host 'nohost'", "host and port"),
        ("server does not support SSL, but SSL was required", "change sslmode"),
        ("FATAL: sorry, too many clients already", "max_connections"),
        ("cannot execute CREATE SCHEMA in a read-only transaction", "standby"),
        ('invalid URI query parameter: "foo"', "SETTING=VALUE"),
        ('invalid port number: "99999"', "HOST:PORT"),
        ("FATAL: something new", "Check that it runs and takes this user"),
    ],
)
def test_each_refusal_says_what_to_do(said: str, way: str) -> None:
    assert way in explain(None, said, 10)[1]


def test_a_user_who_may_create_nothing_is_told_what_to_grant(postgres: Postgres, address: str) -> None:
    database = address.partition("?")[0].rpartition("/")[2]
    postgres.run("DROP ROLE IF EXISTS guest")
    postgres.run("CREATE ROLE guest LOGIN")
    told = refusal(postgres.address(database).replace("postgres@", "guest@"))
    assert "permission denied" in told
    assert "GRANT CREATE ON DATABASE" in told
    Home(address).names()  # now the tables are there, and another user's
    assert "GRANT other TO user" in refusal(postgres.address(database).replace("postgres@", "guest@"))


@pytest.mark.parametrize("text", ["lease_seconds=never", "limit_seconds=0", "lease_seconds=99999"])
def test_options_of_ours_are_checked(text: str) -> None:
    with pytest.raises(RejectedError, match=r"give seconds, 0\.1 to 3600"):
        Home(f"postgresql://127.0.0.1/app?{text}")


def test_a_password_is_in_no_text(proxy: Proxy, address: str) -> None:
    from tests.support.postgres import impatient

    place = behind(proxy, address, password="hunter2secret")
    home = Home(place)
    texts = [home.address, home.place("x").name]
    memory = home.open("x", embedder=None)
    with pytest.raises(PagerError) as in_use:
        home.open("x", embedder=None)
    with pytest.raises(PagerError) as not_there:
        home.read("y")
    proxy.cut()
    with impatient(place):
        with pytest.raises(PagerError) as lost:
            memory.archive("hello")
        memory.close()
        with pytest.raises(PagerError) as down:
            home.names()
    texts += [str(error.value) for error in (in_use, not_there, lost, down)]
    assert [text for text in texts if "hunter2" in text or "postgres:" in text] == []


def test_a_commit_is_written_even_where_postgres_would_not_wait(postgres: Postgres, address: str) -> None:
    from tests.support.postgres import rows_of

    database = address.partition("?")[0].rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {database} SET synchronous_commit = off")
    assert rows_of(address).server.ask("SHOW synchronous_commit") == [("on",)]
    postgres.run(f"ALTER DATABASE {database} SET synchronous_commit = remote_apply")
    rows_of(address).server.close()
    assert rows_of(address).server.ask("SHOW synchronous_commit") == [("remote_apply",)]


def test_a_commit_whose_connection_is_ended_by_an_operator_is_unknown(home: Home, address: str) -> None:
    """Postgres says that it ends the connection, and ends it."""
    from tests.support.postgres import rows_of

    texts: list[str] = []
    server = rows_of(address).server
    memory = home.open("x", embedder=None)
    acknowledged(memory, texts, 1)
    with server.transaction() as holding:  # the row, which the commit waits for
        holding.rows("SELECT FROM selfpager.agents FOR UPDATE")
        with ThreadPoolExecutor() as pool:
            second = pool.submit(acknowledged, memory, texts, 2)
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while not server.ask(ended):
                pass
            with pytest.raises(AgentLostError, match=r"nobody knows if its last commit was stored .*terminating"):
                second.result()
    memory.close()
    judge(address, texts, unknown=0)


def test_a_transaction_of_a_process_that_stands_still_is_ended_by_postgres(address: str) -> None:
    """With its lease: others wait for the rows that it has changed, and an erasure for what it can still see."""
    server = Server.at(address.replace("lease_seconds=300", "lease_seconds=7"))
    asked = "SELECT current_setting('idle_in_transaction_session_timeout')"
    found = list[object]()
    with server.snapshot() as reading:
        found += reading.rows(asked)
    with server.transaction() as transaction:
        found += transaction.rows(asked)
    found += server.tell((asked, ()), ("SELECT 1", ()))  # a release, and a commit of several parts
    assert found == [("7s",)] * 3


def test_commits_go_on_after_a_transaction_that_was_rolled_back(home: Home, address: str) -> None:
    server = rows_of(address).server
    with home.open("x", embedder=None) as memory:
        memory.archive("one")
        for _ in range(10):
            server.ask("SELECT 1")  # psycopg prepares what is asked often
        with pytest.raises(StorageError), server.transaction() as transaction:
            transaction.rows("SELECT 1 / 0")
        memory.archive("two")
        assert [use.fact.text for use in memory.inspect.facts("current").rows] == ["two", "one"]
