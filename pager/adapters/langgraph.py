"""LangGraph's `BaseStore` over a `Memory`: items are facts, found by words and by meaning.

    from pager.adapters.langgraph import PagerStore

    graph = builder.compile(store=PagerStore(memory))

An item is a fact with a key made of its namespace, and JSON as its text. `put` supersedes it, `delete` ends it; only
`purge` destroys. `index=False` hides an item from queries. Fields named in `index` narrow nothing: all of an item is
searched. An item with a `ttl` (minutes since it was stored or last read; a query reads what it finds) is not returned
after that, and `sweep_ttl` ends it.
"""

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from pager import Fact, Memory
from pager.adapters import in_thread, require
from pager.adapters.facts import facts_under, fits, note_in, ranked

base: Any = require("langgraph.store.base", "langgraph")
NAME = "langgraph"
CREATED, TTL, HIDDEN = "langgraph:created", "langgraph:ttl", "langgraph:hidden"
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

    def sweep_ttl(self) -> int:
        """End the items whose time to live is over. Return how many."""
        over = [fact.id for fact in facts_under(self._memory, f"{NAME}.") if self._is_over(fact)]
        for page_id in over:
            self._memory.forget(page_id, "its time to live is over", actor=NAME)
        return len(over)

    def _get(self, op: Any) -> Any:
        fact = self._memory.inspect.current_fact(f"{_prefix(op.namespace)}.{op.key}")
        if fact is None or self._is_over(fact):
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
        created = note_in(old, CREATED) if old and not self._is_over(old) else None
        tags = [_prefix(op.namespace[:depth]) for depth in range(len(op.namespace) + 1)]
        tags += [f"{CREATED}={created or self._memory.now().isoformat()}"]
        tags += ([HIDDEN] if op.index is False else []) + ([] if op.ttl is None else [f"{TTL}={op.ttl}"])
        text = json.dumps(dict(op.value), ensure_ascii=False)
        fact = self._memory.archive(text, key=key, tags=tags, actor=NAME, source=f"program:{NAME}")
        self._refresh([fact])  # the same value once more is the same fact

    def _search(self, op: Any) -> list[Any]:
        wanted, prefix = op.offset + op.limit, _prefix(op.namespace_prefix)
        hits: Any = ((fact, None) for fact in facts_under(self._memory, prefix))
        if op.query:
            hits = ranked(self._memory, op.query, tags=[prefix], prefix=prefix, limit=2 * wanted, actor=NAME)
        found: list[tuple[Fact, Any]] = []
        for fact, hit in hits:
            hidden = hit is not None and HIDDEN in fact.tags
            if not (hidden or self._is_over(fact)) and fits(json.loads(fact.text), op.filter or {}):
                found.append((fact, hit and (hit.score if hit.cosine is None else hit.cosine)))
            if len(found) == wanted:
                break
        found = found[op.offset :]
        self._refresh(fact for fact, _ in found if op.refresh_ttl)
        return [base.SearchItem(**_fields(fact), score=score) for fact, score in found]

    def _list_namespaces(self, op: Any) -> list[Namespace]:
        found = {_namespace(fact) for fact in facts_under(self._memory, f"{NAME}.") if not self._is_over(fact)}
        fitting = [each for each in found if all(_matches(each, one) for one in op.match_conditions or ())]
        return sorted({each[: op.max_depth] for each in fitting})[op.offset : op.offset + op.limit]

    def _is_over(self, fact: Fact) -> bool:
        if (minutes := note_in(fact, TTL)) is None:
            return False
        read_at = self._memory.inspect.use(fact.id).used_at or fact.at
        return max(fact.at, read_at) + timedelta(minutes=float(minutes)) <= self._memory.now()

    def _refresh(self, facts: Iterable[Fact]) -> None:
        self._memory.mark_used(fact.id for fact in facts if note_in(fact, TTL))


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
