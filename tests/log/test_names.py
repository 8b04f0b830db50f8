"""The names of a home, a page at a time: the same from a directory as from Postgres."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pager import Home, NotFoundError

if TYPE_CHECKING:
    from tests.support.postgres import Postgres

NAMES = ["A", "Z", "a", "a-b", "a.b", "a0", "acme..a", "acme..b", "acme..z9", "acme-x", "acmf..a", "b", "zz"]


@pytest.fixture
def homes(home: Home, address: str, postgres: Postgres, tmp_path: Path) -> tuple[Home, Home]:
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "pager.db").touch()
    home.names()
    helper, unfinished = "('a/call', 1)", "('aa', 0)"
    rows = ", ".join([*(f"('{name}', 1)" for name in NAMES), helper, unfinished])
    database = address.partition("?")[0].rpartition("/")[2]
    postgres.run(f"INSERT INTO selfpager.agents (name, seq) VALUES {rows}", database)
    return Home(tmp_path), home


def test_both_homes_give_the_same_pages(homes: tuple[Home, Home]) -> None:
    assert homes[0].names() == homes[1].names() == sorted(NAMES)
    begins, limits, tenants = ("", "a", "a-", "acme..b", "~", *NAMES), (None, 1, 3), (None, "", "acme", "acm", "nobody")
    for begin, limit, tenant in product(begins, limits, tenants):
        owned = {name: name.partition("..")[0] if ".." in name else "" for name in sorted(NAMES)}
        of_tenant = [name for name, owner in owned.items() if tenant in (None, owner)]
        expected = [name for name in of_tenant if name >= begin][:limit]
        for home in homes:
            assert home.names(begin=begin, limit=limit, tenant=tenant) == expected, (home.address, begin, limit, tenant)


def test_an_error_names_a_few_agents_of_many(homes: tuple[Home, Home], tmp_path: Path) -> None:
    for home in homes:
        with pytest.raises(NotFoundError, match=r"there are: A, Z, a, .*zz\.$"):
            home.existing("nobody")
    for number in range(100):
        (tmp_path / f"n{number:02}").mkdir()
        (tmp_path / f"n{number:02}" / "pager.db").touch()
    with pytest.raises(NotFoundError, match="n07, and more; `selfpager list` lists them"):
        Home(tmp_path).existing("nobody")
