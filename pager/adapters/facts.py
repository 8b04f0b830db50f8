"""Shared by the adapters whose items are facts: listing and searching those of one prefix, notes in tags, filters."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from pager import Fact, Hit, Memory

LISTED = 1000  # facts read at once
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
}  # fmt: skip


def facts_under(memory: Memory, prefix: str) -> Iterator[Fact]:
    """Return the facts that are true now and whose key begins with `prefix`, newest first."""
    offset = 0
    while rows := memory.inspect.facts("current", prefix=prefix, offset=offset, limit=LISTED).rows:
        yield from (use.fact for use in rows)
        offset += len(rows)


def ranked(
    memory: Memory, query: str, *, tags: Sequence[str], prefix: str, limit: int, actor: str
) -> Iterator[tuple[Fact, Hit]]:
    """Return the facts with all tags and a prefix, the best for a query first: more and more, until nobody asks on."""
    seen: set[str] = set()  # of other candidates the order may be another
    while True:
        hits = memory.search_archive(query, limit=limit, tags=tags, actor=actor)
        for hit in [hit for hit in hits if hit.page_id not in seen]:
            seen.add(hit.page_id)
            fact = memory.fact(hit.page_id)  # a hit may be an excerpt
            if (fact.key or "").startswith(prefix):  # tags do not tell upper from lower case
                yield fact, hit
        if len(hits) < limit:
            return
        limit *= 4


def note_in(fact: Fact, name: str) -> str | None:
    """Return what a tag `name=value` of a fact says."""
    return next((tag.removeprefix(f"{name}=") for tag in fact.tags if tag.startswith(f"{name}=")), None)


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return True if a value fits a filter of paths such as `user.age`, with a value or `{"$gt": 3}` or `{"gt": 3}`."""
    return all(_compare(_at(value, path), test) for path, test in wanted.items())


def _at(value: Any, path: str) -> Any:
    for name in [path] if path in value else path.split("."):
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def _compare(value: Any, test: Any) -> bool:
    tests = cast("dict[str, Any]", test) if isinstance(test, dict) else {}
    named = {name.removeprefix("$"): other for name, other in tests.items()}
    if not named or not (named.keys() <= OPERATORS.keys() or any(name.startswith("$") for name in tests)):
        return value == test
    if unknown := named.keys() - OPERATORS.keys():
        raise ValueError(f"{', '.join(sorted(unknown))} is no operator of a filter; there are {', '.join(OPERATORS)}.")
    try:
        return all(OPERATORS[name](value, other) for name, other in named.items())
    except TypeError:
        return False  # such as None > 3
