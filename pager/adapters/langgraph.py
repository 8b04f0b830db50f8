"""LangGraph's `BaseStore` over a `Memory`: items are facts, found by words and by meaning.

    from pager.adapters.langgraph import PagerStore

    graph = builder.compile(store=PagerStore(memory))

An item is a fact with a key made of its namespace, and JSON as its text. `put` supersedes it, `delete` ends it; only
`purge` destroys. `index=False` hides an item from queries. Fields named in `index` narrow nothing: all of an item is
searched. An item with a `ttl` (minutes since it was stored or last read) is a fact with an end, which a reading moves:
it is over by itself, and nothing has to be swept.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from pager import Fact, Memory
from pager.adapters import in_thread, require
from pager.adapters.facts import facts_under, fits, note_in, ranked

base: Any = require("langgraph.store.base", "langgraph")
NAME = "langgraph"
CREATED, TTL, HIDDEN = "langgraph:created", "langgraph:ttl", "langgraph:hidden"
QUOTES = frozenset("'\"")
Namespace = tuple[str, ...]


class PagerStore(base.BaseStore):
    """A store of LangGraph in a memory that somebody else opens and closes."""

    supports_ttl = True

    def __init__(self, memory: Memory, *, ttl: Any = None) -> None:
        """Make a store; `ttl` is LangGraph's TTLConfig."""
        self._memory = memory
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Carry out all operations in their order, or none."""
        chosen = list(ops)
        for op in chosen:
            base.validate_op_namespace(op)
        run: dict[Any, Callable[[Any], Any]] = {base.GetOp: self._get, base.PutOp: self._put}
        run |= {base.SearchOp: self._search, base.ListNamespacesOp: self._list_namespaces}
        with self._memory.transaction():
            return [run[type(op)](op) for op in chosen]

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Carry out all operations in a thread."""
        return await in_thread(self.batch, list(ops))

    def _get(self, op: Any) -> Any:
        fact = self._memory.inspect.current_fact(f"{_prefix(op.namespace)}.{op.key}")
        if fact is None:
            return None
        self._refresh([fact] if op.refresh_ttl else [])
        return base.Item(**_fields(fact))

    def _put(self, op: Any) -> None:
        key = f"{_prefix(op.namespace)}.{op.key}"
        old = self._memory.inspect.current_fact(key)
        if op.value is None:
            if old is not None:
                self._memory.forget(old.id, "deleted", actor=NAME)
            return
        created = note_in(old, CREATED) if old else None
        tags = [_prefix(op.namespace[:depth]) for depth in range(len(op.namespace) + 1)]
        tags += [f"{CREATED}={created or self._memory.now().isoformat()}"]
        tags += ([HIDDEN] if op.index is False else []) + ([] if op.ttl is None else [f"{TTL}={op.ttl}"])
        text = json.dumps(dict(op.value), ensure_ascii=False)
        self._store(text, key, tags)

    def _search(self, op: Any) -> list[Any]:
        wanted, prefix = op.offset + op.limit, _prefix(op.namespace_prefix)
        asked: dict[str, Any] = op.filter or {}
        if strange := [key for key in asked if QUOTES & set(key)]:
            raise ValueError(f"Invalid filter key: {strange[0]!r} holds a quote; name fields, such as 'user.age'.")
        hits: Any = ((fact, None) for fact in facts_under(self._memory, prefix))
        if op.query:
            hits = ranked(self._memory, op.query, tags=[prefix], prefix=prefix, limit=2 * wanted, actor=NAME)
        found: list[tuple[Fact, Any]] = []
        for fact, hit in hits:
            hidden = hit is not None and HIDDEN in fact.tags
            if not hidden and fits(json.loads(fact.text), asked):
                found.append((fact, hit and (hit.score if hit.cosine is None else hit.cosine)))
            if len(found) == wanted:
                break
        found = found[op.offset :]
        self._refresh(fact for fact, _ in found if op.refresh_ttl)
        return [base.SearchItem(**_fields(fact), score=score) for fact, score in found]

    def _list_namespaces(self, op: Any) -> list[Namespace]:
        found = {_namespace(fact) for fact in facts_under(self._memory, f"{NAME}.")}
        fitting = [each for each in found if all(_matches(each, one) for one in op.match_conditions or ())]
        return sorted({each[: op.max_depth] for each in fitting})[op.offset : op.offset + op.limit]

    def _refresh(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if note_in(fact, TTL):
                self._store(
                    fact.text, str(fact.key), fact.tags
                )  # the same once more is the same fact, with a later end

    def _store(self, text: str, key: str, tags: Sequence[str]) -> None:
        minutes = next((float(tag.removeprefix(f"{TTL}=")) for tag in tags if tag.startswith(f"{TTL}=")), None)
        until = None if minutes is None else self._memory.now() + timedelta(minutes=minutes)
        self._memory.archive(text, key=key, tags=tags, valid_until=until, actor=NAME, source=f"program:{NAME}")


def _prefix(namespace: Namespace) -> str:
    return "".join(f"{label}." for label in (NAME, *namespace))  # no label is empty or holds a dot


def _namespace(fact: Fact) -> Namespace:
    return tuple(str(fact.key).partition("..")[0].split(".")[1:])


def _fields(fact: Fact) -> dict[str, Any]:
    created = datetime.fromisoformat(note_in(fact, CREATED) or fact.at.isoformat())
    fields = {"namespace": _namespace(fact), "key": str(fact.key).partition("..")[2], "value": json.loads(fact.text)}
    return {**fields, "created_at": created, "updated_at": fact.at}


def _matches(namespace: Namespace, condition: Any) -> bool:
    path = tuple(condition.path)
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
