"""How large things may be. Every default scales with the window; every fraction is of `usable_tokens`.

>>> limits = Limits.for_window(60_000)
>>> limits.usable_tokens, limits.max_part_tokens, limits.core_tokens
(52000, 6500, 4000)
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from pager.errors import RejectedError, WindowTooSmallError

LEAST_PART_TOKENS = 64
DIGEST_SHARE = 0.05
PINNED_SHARE = 0.20
CHANGES_NOTED = 100


@dataclass(frozen=True, slots=True)
class Limits:
    limit_tokens: int
    max_output_tokens: int
    max_part_tokens: int
    core_tokens: int
    notify_at: float = 0.70
    evict_at: float = 0.85
    evict_to: float = 0.50

    @classmethod
    def for_window(
        cls, limit_tokens: int = 100_000, *, max_output_tokens: int | None = None, max_part_tokens: int | None = None,
        core_tokens: int | None = None, notify_at: float = 0.70, evict_at: float = 0.85, evict_to: float = 0.50,
    ) -> Limits:  # fmt: skip
        """Limits for a window, with what is not given derived from it."""
        _check_number("limit_tokens", limit_tokens)
        _check_number("max_output_tokens", 0 if max_output_tokens is None else max_output_tokens)
        output = max_output_tokens if max_output_tokens is not None else min(8000, limit_tokens // 4)
        usable = limit_tokens - output
        part = max_part_tokens if max_part_tokens is not None else min(8000, usable // 8)
        core = core_tokens if core_tokens is not None else min(4000, usable // 8)
        limits = cls(limit_tokens, output, part, core, notify_at, evict_at, evict_to)
        limits.validate()
        return limits

    def validate(self) -> None:
        for name, value in asdict(self).items():
            _check_number(name, value, share=name.endswith(("_at", "_to")))
        if self.max_output_tokens < 1 or self.usable_tokens < 1:
            raise RejectedError(
                f"a window of {self.limit_tokens} tokens with {self.max_output_tokens} for the reply leaves nothing "
                "for the prompt; raise limit_tokens or lower max_output_tokens."
            )
        if self.core_tokens < 0:
            raise RejectedError(f"core_tokens is {self.core_tokens}; give 0 or more.")
        if self.max_part_tokens < LEAST_PART_TOKENS:
            raise RejectedError(
                f"max_part_tokens is {self.max_part_tokens}; at least {LEAST_PART_TOKENS} are needed to show both "
                "ends of a part. Raise it, or the window."
            )
        if self.max_part_tokens > self.usable_tokens:
            raise RejectedError(
                f"max_part_tokens is {self.max_part_tokens}, more than the {self.usable_tokens} usable; lower it."
            )
        if not 0 < self.evict_to < self.evict_at <= 1 or not 0 < self.notify_at <= self.evict_at:
            raise RejectedError(
                f"evict_to {self.evict_to}, notify_at {self.notify_at}, evict_at {self.evict_at}: needed are "
                "0 < evict_to < evict_at <= 1 and 0 < notify_at <= evict_at."
            )

    @property
    def usable_tokens(self) -> int:
        return self.limit_tokens - self.max_output_tokens

    def of_usable(self, share: float) -> int:
        return int(self.usable_tokens * share)

    def tightened(self, factor: float) -> Limits:
        """The same as if the window held `factor` times less, for a prompt that is so much larger than thought."""
        usable = min(self.usable_tokens, int(self.usable_tokens / factor))
        return replace(self, limit_tokens=self.max_output_tokens + usable)

    def fitted(self, fixed_tokens: int) -> Limits:
        """The same with max_part lowered until two parts fit beside the fixed parts and a full core."""
        room = self.usable_tokens - fixed_tokens - self.core_tokens
        part = min(self.max_part_tokens, room // 2)
        if part < LEAST_PART_TOKENS:
            raise WindowTooSmallError(
                f"tools and instructions ({fixed_tokens} tokens), a full core ({self.core_tokens}) and two parts "
                f"({self.max_part_tokens} each) do not fit into the {self.usable_tokens} usable tokens of a window of "
                f"{self.limit_tokens} less {self.max_output_tokens} for the reply. Shorten the instructions, lower "
                "the core's limit, drop tools, or take a larger window."
            )
        return self if part == self.max_part_tokens else replace(self, max_part_tokens=part)


def _check_number(name: str, value: Any, *, share: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float if share else int):
        raise RejectedError(
            f"{name} is {value!r:.100}; give a {'number between 0 and 1' if share else 'whole number'}."
        )


def noted(note: str | None, limits: Limits, step: int) -> str:
    """`note` with the limits that hold from `step` on; the same text when they hold already."""
    changes: list[Any] = json.loads(note) if note else []
    if changes and changes[-1][1] == asdict(limits):
        return note or ""
    return json.dumps([*changes, [step, asdict(limits)]][-CHANGES_NOTED:])


def read_noted(note: str | None, step: int | None = None) -> Limits | None:
    """The limits of the newest request, or of the one that `step` answered; None before the first."""
    changes = [values for since, values in json.loads(note or "[]") if step is None or since < step]
    return Limits(**changes[-1]) if changes else None
