"""Law 3 as a witness: within an epoch the prompt only grows."""

from __future__ import annotations

import json
from typing import Any

from tests.standin.facts import Memo, digest

_plain: Memo[bytes] = Memo()
_NO_EPOCH = object()


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_marks(each) for name, each in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_without_marks(each) for each in value]
    return value


def _text(value: Any) -> str:
    """Byte for byte: the order of keys counts, and a null is not a missing field."""
    return json.dumps(_without_marks(value), ensure_ascii=False)


def _digest(value: Any) -> bytes:
    return _plain.get(value, lambda: digest(_text(value).encode("utf-8", "surrogatepass")))


class GrowthWatch:
    """Shown every request with the epoch it belongs to, fails when an epoch's earlier part has changed.

    Tools, system and every message of the previous request, its last one included, must be what they were; cache
    marks may move. `forget_tail` says once that the end of the previous request may be gone, as after a refusal.
    An epoch that has ended does not come back.
    """

    def __init__(self) -> None:
        self._epoch: Any = _NO_EPOCH
        self._ended: set[Any] = set()
        self._frame: dict[str, Any] = {}
        self._messages: list[Any] = []
        self._digests: list[bytes] = []
        self._may_go: int = 0

    def see(self, params: dict[str, Any], epoch_id: Any) -> None:
        messages = params["messages"]
        digests = [_digest(message) for message in messages]
        if epoch_id != self._epoch:
            assert epoch_id not in self._ended, f"epoch {epoch_id!r} had ended and is back"
            self._ended.add(self._epoch)
        else:
            for name in ("tools", "system"):
                before, now = _text(self._frame.get(name)), _text(params.get(name))
                assert before == now, f"epoch {epoch_id!r}: {name} changed\n{_difference(before, now)}"
            self._compare(messages, digests)
        self._epoch = epoch_id
        self._frame = {name: json.loads(json.dumps(params.get(name))) for name in ("tools", "system")}
        self._messages, self._digests, self._may_go = list(messages), digests, 0

    def forget_tail(self) -> None:
        """The next request may lack any number of the last messages of the previous one."""
        self._may_go = len(self._digests)

    def _compare(self, messages: list[Any], digests: list[bytes]) -> None:
        same = 0
        while same < min(len(digests), len(self._digests)) and digests[same] == self._digests[same]:
            same += 1
        if same >= len(self._digests) - self._may_go:
            return
        assert same < len(digests), (
            f"epoch {self._epoch!r}: {len(self._digests)} messages became {len(digests)};"
            f" gone is messages.{same}: {_text(self._messages[same])[:300]}"
        )
        difference = _difference(_text(self._messages[same]), _text(messages[same]))
        raise AssertionError(f"epoch {self._epoch!r}: messages.{same} of {len(self._digests)} changed\n{difference}")


def _difference(before: str, now: str) -> str:
    place = next((i for i, (one, two) in enumerate(zip(before, now, strict=False)) if one != two), 0)
    start = max(0, place - 60)
    return f"  before: …{before[start : place + 160]}\n  now:    …{now[start : place + 160]}"
