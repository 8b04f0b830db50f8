"""The past of a memory: versions of blocks and facts, steps by day, earlier prompts and requests byte for byte."""

from collections.abc import Collection
from datetime import tzinfo

from pager.arguments import normalized
from pager.call_lock import CallLock, locked_class
from pager.clock import Moment, from_micros, span_end, span_start, to_micros
from pager.errors import NotFoundError
from pager.limits import Limits
from pager.prompt.prompt import rebuild, stored_limits
from pager.store import Store
from pager.store.rows import CoreVersion, StepRow
from pager.tokens.counter import Counter
from pager.types import Block, Fact, Json, Residency, read_page_id, read_step_id


@locked_class
class History:
    """Read-only. A facade has one as `history`, and its calls take the facade's lock."""

    def __init__(self, store: Store, call_lock: CallLock, zone: tzinfo) -> None:
        self._store = store
        self._call_lock = call_lock
        self._zone = zone

    def core_versions(self, block: str) -> list[CoreVersion]:
        """Return every version of a core block, oldest first."""
        versions = self._store.lists.core_versions(block)
        if not versions:
            raise NotFoundError(f"there never was a core block {block!r}.")
        return versions

    def core_version_number(self, block: Block) -> int:
        """Return which version of its block this is, counted from 1."""
        return self._store.core.count_versions(block.name, block.version)

    def fact_versions(self, key: str) -> list[Fact]:
        """Return all facts of a key, by the time from which they were true."""
        return [fact for fact, _ in self._store.archive.versions(normalized(key))]

    def blocks_of(self, step: str) -> list[Json]:
        """Return the content blocks of a step exactly as they came."""
        number = read_step_id(step)
        if self._store.conversation.step(number) is None:
            raise NotFoundError(f"there is no step {step!r}.")
        return self._store.conversation.originals(number)

    def stop_reason(self, step: str) -> str:
        """Return why the model stopped in a reply, as it said; "" for a step that is no reply."""
        row = self._store.conversation.step(read_step_id(step))
        return str(row["stop_reason"] or "") if row is not None else ""

    def days(self, *, without: Collection[str] = ()) -> dict[str, int]:
        """Return the days on which something was said, oldest first, with its bytes; some steps may be left out."""
        days: dict[str, int] = {}
        for step, at, count in self._store.conversation.moments():
            if f"s{step}" not in without:
                day = from_micros(at, self._zone).date().isoformat()
                days[day] = days.get(day, 0) + count
        return days

    def steps_on(self, day: Moment) -> list[StepRow]:
        """Return the steps of a day, in their order."""
        start, end = to_micros(span_start(day, self._zone)), to_micros(span_end(day, self._zone))
        return self._store.lists.steps_between(start, end)

    def resident(self, at: str | None = None) -> list[Residency]:
        """Return what is in the prompt now, or was when step `at` was written."""
        return self._store.prompt.resident(None if at is None else read_step_id(at))

    def residencies(self, page_id: str) -> list[Residency]:
        """Return when a page was in the prompt, how, and why it left."""
        return self._store.prompt.residencies(str(read_page_id(page_id)))

    def counter(self, model: str) -> Counter:
        """Return the counter of a model, with what was learned so far."""
        return Counter(self._store.prompt.tokenizer(model))

    def limits_at(self, at: str | None = None) -> Limits | None:
        """Return the limits of the newest request, or of the one that the reply `at` answered; None without one."""
        return stored_limits(self._store, None if at is None else read_step_id(at))

    def rebuild(self, step: str) -> Json:
        """Return the request that the reply `step` answered, byte for byte."""
        return rebuild(self._store, read_step_id(step))
