"""mem0's calls over a `Memory`, for who moves over: memories are facts, and nothing is sent to a model.

    from pager.adapters.mem0 import PagerMem0

    PagerMem0(memory).add("I prefer window seats", user_id="dana", infer=False)
    PagerMem0(memory).search("which seat?", filters={"user_id": "dana"})["results"][0]["memory"]

It needs nothing of mem0. `infer=True`, mem0's default, would ask a model what to store, and is refused. An update
supersedes, a delete ends: both stay in the `history`; only `purge` destroys. Filters know eq, ne, gt, gte, lt and lte.
"""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast
from uuid import uuid4

from pager import Fact, Hit, Memory, NotFoundError, RejectedError
from pager.adapters.facts import facts_under, fits, note_in, ranked
from pager.adapters.said import text_said

NAME, PREFIX = "mem0", "mem0/"
ENTITIES = ("user_id", "agent_id", "run_id")
OWN = (*ENTITIES, "actor_id", "role")  # what stands beside the metadata in a result
Json = dict[str, Any]


class PagerMem0:
    """mem0's `Memory`, as far as it needs no model, in a memory that somebody else opens and closes."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def add(
        self, messages: Any, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None, infer: bool = True,
    ) -> Json:  # fmt: skip
        """Store each message as it is."""
        if infer:
            raise RejectedError("infer=True asks a model what to store, and this memory has none: give infer=False.")
        scope = _scope({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        listed: Any = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        results = list[Json]()
        with self._memory.transaction():
            for message in cast("list[Json]", listed if isinstance(listed, list) else [listed]):
                if message["role"] == "system":
                    continue
                who = {"role": message["role"]} | ({"actor_id": message["name"]} if message.get("name") else {})
                number, text = str(uuid4()), text_said(message)
                self._store(number, text, {**(metadata or {}), **scope, **who})
                results.append({"id": number, "memory": text, "event": "ADD", **who})
        return {"results": results}

    def search(
        self, query: str, *, filters: Mapping[str, Any], top_k: int = 20, threshold: float = 0.1, **_: Any
    ) -> Json:
        """Return the best memories that fit the filters, each with the cosine of its text as `score`."""
        tags = [f"{NAME}:{name}={value}" for name, value in _scope(filters).items()]
        hits = ranked(self._memory, query, tags=tags, prefix=PREFIX, limit=2 * top_k, actor=NAME)
        items = (_item(fact, hit) for fact, hit in hits if fits(_metadata(fact), filters))
        return {"results": list(islice((item for item in items if item["score"] >= threshold), top_k))}

    def get_all(self, *, filters: Mapping[str, Any], top_k: int = 20, **_: Any) -> Json:
        """Return the memories that fit the filters, newest first."""
        _scope(filters)
        found = (fact for fact in facts_under(self._memory, PREFIX) if fits(_metadata(fact), filters))
        return {"results": [_item(fact) for fact in islice(found, top_k)]}

    def update(self, memory_id: str, text: str) -> Json:
        """Give a memory another text."""
        self._store(memory_id, text, _metadata(self._current(memory_id)))
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> Json:
        """End a memory. It stays in its history."""
        self._memory.forget(self._current(memory_id).id, "deleted", actor=NAME)
        return {"message": "Memory deleted successfully!"}

    def history(self, memory_id: str) -> list[Json]:
        """Return the changes of a memory, oldest first."""
        versions = self._memory.history.fact_versions(f"{PREFIX}{memory_id}")
        rows: list[Json] = []
        for before, fact in zip([None, *versions], versions, strict=False):
            event = "UPDATE" if before and before.forgotten is None else "ADD"
            rows.append(_change(memory_id, fact, before and before.text, fact.text, event))
            if fact.forgotten is not None:
                rows.append(_change(memory_id, fact, fact.text, None, "DELETE"))
        return rows

    def _store(self, number: str, text: str, metadata: Json) -> Fact:
        tags = [f"{NAME}:{name}={metadata[name]}" for name in ENTITIES if name in metadata]
        tags += [f"{NAME}:metadata={json.dumps(metadata)}"]
        return self._memory.archive(text, key=f"{PREFIX}{number}", tags=tags, actor=NAME, source=f"program:{NAME}")

    def _current(self, memory_id: str) -> Fact:
        fact = self._memory.inspect.current_fact(f"{PREFIX}{memory_id}")
        if fact is not None:
            return fact
        raise NotFoundError(f"there is no memory {memory_id!r}; get_all lists them.")


def _scope(given: Mapping[str, Any]) -> dict[str, str]:
    if refused := given.keys() & {"AND", "OR", "NOT"}:
        raise ValueError(f"{', '.join(sorted(refused))} in filters is not supported; ask once for each part.")
    if scope := {name: str(given[name]).strip() for name in ENTITIES if given.get(name)}:
        return scope
    raise ValueError(f"give at least one of {', '.join(ENTITIES)}.")


def _metadata(fact: Fact) -> Json:
    return json.loads(note_in(fact, f"{NAME}:metadata") or "{}")


def _item(fact: Fact, hit: Hit | None = None) -> Json:
    noted = _metadata(fact)
    item: Json = {"id": str(fact.key).removeprefix(PREFIX), "memory": fact.text, "updated_at": fact.at.isoformat()}
    item |= {name: noted.pop(name) for name in OWN if name in noted} | ({"metadata": noted} if noted else {})
    return item | ({} if hit is None else {"score": hit.score if hit.cosine is None else hit.cosine})


def _change(number: str, fact: Fact, old: str | None, new: str | None, event: str) -> Json:
    at = (fact.valid_until if event == "DELETE" and fact.valid_until else fact.at).isoformat()
    change = {"id": fact.id, "memory_id": number, "old_memory": old, "new_memory": new, "event": event}
    more = {"created_at": at, "updated_at": at, "is_deleted": new is None, "role": _metadata(fact).get("role")}
    return change | more
