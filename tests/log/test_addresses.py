"""Addresses of a home in Postgres, and what its errors mean."""

import pytest

from pager import RejectedError
from pager.log.address import given, hosts, split_options
from pager.log.failures import explain


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("postgresql://ann@db/app", []),
        ("postgresql:///app", []),
        ("postgresql://ann:p,w@one,two:5433/app", [("one", 5432), ("two", 5433)]),
        ("postgresql://[::1]:6000,[fe80::2]/app", [("::1", 6000), ("fe80::2", 5432)]),
        ("postgresql://%2Frun%2Fone,%2Frun%2Ftwo/app", [("/run/one", 5432), ("/run/two", 5432)]),
        ("postgresql://ann@/app?host=/run/one,/run/two&port=6000", [("/run/one", 6000), ("/run/two", 6000)]),
        ("postgresql://ann@/app?host=one,two&port=6000,", [("one", 6000), ("two", 5432)]),
        ("postgresql://ann@/app?host=one,two&port=1,2,3", []),  # libpq says what is wrong
        ("postgresql://ann@one,two/app?hostaddr=10.0.0.1,10.0.0.2", []),
    ],
)
def test_hosts(address: str, found: list[tuple[str, int]]) -> None:
    assert hosts(address) == found


def test_our_own_options_are_taken_out() -> None:
    rest, options = split_options("postgresql://ann@one,two/app?lease_seconds=3&sslmode=require")
    assert rest == "postgresql://ann@one,two/app?sslmode=require"
    assert given(rest) == {"sslmode": "require"}
    assert options == {"lease_seconds": 3, "limit_seconds": 10, "keep_days": 7}
    with pytest.raises(RejectedError, match=r"keep_days in the address of the home is '-1'; give days, 0 to 3650"):
        split_options("postgresql:///app?keep_days=-1")


@pytest.mark.parametrize(
    ("state", "said", "reason"),
    [
        ("53100", "could not extend file", "its disk is full"),
        (None, "FATAL: sorry, too many clients already", "it takes no more connections"),
        (None, "FATAL: the database system is starting up", "it is starting"),
        (None, "session is read-only", "it takes no writes"),
        ("25006", "cannot execute INSERT in a read-only transaction", "it takes no writes"),
        (None, "wait timeout expired", "it has not answered for 3 seconds"),
        (None, "connection refused", "it cannot be reached"),
        ("23514", "violates a constraint", "it refuses"),
    ],
)
def test_what_an_error_means(state: str | None, said: str, reason: str) -> None:
    found, way = explain(state, said, 3)
    assert found == reason
    assert way
