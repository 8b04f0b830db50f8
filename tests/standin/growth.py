"""Law 3 as a witness: within an epoch the prompt only grows."""

from __future__ import annotations

import json
import marshal
from typing import Any

from tests.standin.facts import frozen, remembered

FRAME = ("tools", "system")
_NO_EPOCH = object()


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_marks(each) for name, each in value.items() if name != "cache_control"}
    return [_without_marks(each) for each in value] if isinstance(value, list) else value


@remembered
def _text(raw: bytes) -> str:
    """Byte for byte: the order of keys counts, and a null is not a missing field."""
    return json.dumps(_without_marks(marshal.loads(raw)), ensure_ascii=False)


class GrowthWatch:
    """Shown every request with the epoch it belongs to, fails when an epoch's earlier part has changed.

    Tools, system and every message of the previous request, its last one included, must be what they were; cache
    marks may move. `forget_tail` says once that the end of the previous request may be gone, as after a refusal.
    An epoch that has ended does not come back.
    """

    def __init__(self) -> None:
        self._epoch: Any = _NO_EPOCH
        self._ended: set[Any] = set()
        self._parts: list[str] = []
        self._fixed = 0  # how many of them may not go

    def see(self, params: dict[str, Any], epoch_id: Any) -> None:
        parts = [_text(frozen(part)) for part in (*map(params.get, FRAME), *params["messages"])]
        if epoch_id == self._epoch:
            self._compare(parts)
        else:
            assert epoch_id not in self._ended, f"epoch {epoch_id!r} had ended and is back"
            self._ended.add(self._epoch)
        self._epoch, self._parts, self._fixed = epoch_id, parts, len(parts)

    def forget_tail(self) -> None:
        """The next request may lack any number of the last messages of the previous one."""
        self._fixed = len(FRAME)

    def _compare(self, parts: list[str]) -> None:
        for place, before in enumerate(self._parts[: self._fixed]):
            name = FRAME[place] if place < len(FRAME) else f"messages.{place - len(FRAME)}"
            assert place < len(parts), f"epoch {self._epoch!r}: {name} is gone: {before[:300]}"
            if before != parts[place]:
                raise AssertionError(f"epoch {self._epoch!r}: {name} changed\n{_difference(before, parts[place])}")


def _difference(before: str, now: str) -> str:
    place = next((at for at, (one, two) in enumerate(zip(before, now, strict=False)) if one != two), 0)
    start = max(0, place - 60)
    return f"  before: …{before[start : place + 160]}\n  now:    …{now[start : place + 160]}"
