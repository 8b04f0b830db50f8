"""The memory store of PydanticAI's harness over a `Memory`: files are facts, and search knows meaning.

    from pydantic_ai_harness.memory import Memory as Notebook
    from pager.adapters.pydantic_ai import PagerMemoryStore

    agent = Agent("openai:gpt-5", capabilities=[Notebook(store=PagerMemoryStore(memory))])

It is a `MemoryStore`, a `MetadataMemoryStore` and a `SearchableMemoryStore`. A file is a fact whose key is its path and
whose version is the fact's id: a write supersedes it, a delete ends it, and every earlier version stays in its history.
"""

import json
import re
from typing import Any

from pager import Fact, Memory
from pager.adapters import in_thread, require
from pager.adapters.facts import facts_under, note_in, ranked

harness: Any = require("pydantic_ai_harness.memory", "pydantic-ai-harness")
NAME = "pydantic-ai"
PREFIX = f"{NAME}/"
OPERATION, METADATA, BLANK = f"{NAME}:operation", f"{NAME}:metadata", f"{NAME}:blank"
NOTHING = "(an empty file)"  # the text of the fact of one; what it holds is noted
SEGMENT = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class PagerMemoryStore:
    """Files of the harness's memory in a memory that somebody else opens and closes."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def read(self, path: str, *, max_chars: int) -> Any:
        """Return a file; None if there is none."""
        fact = await in_thread(self._memory.inspect.current_fact, _key(path))
        if fact is None:
            return None
        blank, noted = note_in(fact, BLANK), note_in(fact, METADATA)
        text = json.loads(blank) if blank else fact.text
        return harness.MemoryFile(
            content=text[:max_chars], version=fact.id, operation_id=note_in(fact, OPERATION),
            truncated=len(text) > max_chars, metadata=json.loads(noted) if noted else None,
        )  # fmt: skip

    async def get_operation(self, operation: Any) -> Any:
        """Return the outcome of an operation that was carried out; None if it was not."""
        return await in_thread(self._receipt, operation)

    async def write(self, path: str, content: str, *, expected_version: str | None, operation: Any = None) -> Any:
        """Write a file if its version is the expected one."""
        return await in_thread(self._mutate, path, content, expected_version, operation, None)

    async def write_with_metadata(
        self, path: str, content: str, *, expected_version: str | None, metadata: Any, operation: Any = None
    ) -> Any:
        """Write a file with what its writer notes about the write."""
        return await in_thread(self._mutate, path, content, expected_version, operation, metadata)

    async def delete(self, path: str, *, expected_version: str | None, operation: Any = None) -> Any:
        """Delete a file if its version is the expected one."""
        return await in_thread(self._mutate, path, None, expected_version, operation, None)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the paths that begin with a prefix, sorted."""
        return (await in_thread(self._paths, prefix))[:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> Any:
        """Return the files right below a prefix that fit a query best, by words and by meaning."""
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return harness.MemorySearchResult(matches=[], scanned=0, truncated=False)
        return await in_thread(self._search, prefix, query, limit, max_files, max_chars)

    def _search(self, prefix: str, query: str, limit: int, max_files: int, max_chars: int) -> Any:
        key = _key(prefix.removesuffix("/")) + "/" if prefix else PREFIX
        matches: list[Any] = []
        for fact, hit in ranked(self._memory, query, tags=[key], prefix=key, limit=limit + 1, actor=NAME):
            path, name = str(fact.key).removeprefix(PREFIX), str(fact.key).removeprefix(key)
            room = max_chars - len(name)
            if "/" in name or room <= 0 or len(matches) > limit:
                continue
            snippet = "" if note_in(fact, BLANK) else hit.text[:room]
            matches.append(harness.MemorySearchMatch(path=path, snippet=snippet, score=hit.score))
            max_chars -= len(name) + len(snippet)
        files = sum("/" not in path.removeprefix(prefix) for path in self._paths(prefix))
        cut = len(matches) > limit or max_chars <= 0 or files > max_files
        return harness.MemorySearchResult(matches=matches[:limit], scanned=min(files, max_files), truncated=cut)

    def _paths(self, prefix: str) -> list[str]:
        key = _key(prefix.removesuffix("/")) + prefix[len(prefix.removesuffix("/")) :] if prefix else PREFIX
        return sorted(str(fact.key).removeprefix(PREFIX) for fact in facts_under(self._memory, key))

    def _receipt(self, operation: Any) -> Any:
        stored = self._memory.load_value(f"{OPERATION}:{operation.id}")
        fingerprint, version, existed = json.loads(stored) if stored else (operation.fingerprint, None, False)
        if fingerprint != operation.fingerprint:
            raise harness.MemoryOperationConflictError(f"the operation {operation.id!r} was another one before.")
        return harness.MemoryMutation(version=version, replayed=True, existed=existed) if stored else None

    def _mutate(self, path: str, text: str | None, expected: str | None, operation: Any, metadata: Any) -> Any:
        key, noted = _key(path), json.dumps(dict(metadata), sort_keys=True) if metadata else ""
        with self._memory.transaction():
            if operation is not None and (receipt := self._receipt(operation)) is not None:
                return receipt
            old, new = self._memory.inspect.current_fact(key), None
            if (old and old.id) != expected:
                raise harness.MemoryConflictError(f"{path} changed meanwhile: its version is {old and old.id}.")
            if text is not None:
                new = self._archive(key, text, operation.id if operation else None, noted)
            elif old is not None:
                self._memory.forget(old.id, "deleted", actor=NAME)
            if operation is not None:
                receipt = json.dumps([operation.fingerprint, new and new.id, old is not None])
                self._memory.save_value(f"{OPERATION}:{operation.id}", receipt)
        return harness.MemoryMutation(version=new and new.id, replayed=False, existed=old is not None)

    def _archive(self, key: str, text: str, operation: str | None, noted: str) -> Fact:
        tags = [f"{key.rpartition('/')[0]}/", *([] if text.strip() else [f"{BLANK}={json.dumps(text)}"])]
        tags += ([f"{OPERATION}={operation}"] if operation else []) + ([f"{METADATA}={noted}"] if noted else [])
        return self._memory.archive(
            text if text.strip() else NOTHING, key=key, tags=tags, actor=NAME, source=f"program:{NAME}"
        )


def _key(path: str) -> str:
    if not all(SEGMENT.fullmatch(part) and ".." not in part and part != "." for part in path.split("/")):
        raise ValueError(f"{path!r:.200} is no path of a memory file: letters, digits, _ . - and / between them.")
    return f"{PREFIX}{path}"
