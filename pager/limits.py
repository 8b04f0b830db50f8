"""The size limits of a memory. Every default scales with the window; every fraction is of `usable_tokens`.

>>> limits = Limits.for_window(60_000)
>>> limits.usable_tokens, limits.max_part_tokens, limits.core_tokens
(52000, 6500, 4000)
"""

import json
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pager.errors import RejectedError, WindowTooSmallError, brief

MIN_PART_TOKENS = 64
DIGEST_SHARE = 0.05
PINNED_SHARE = 0.20
NOTIFY_AT, EVICT_AT, EVICT_TO = 0.70, 0.85, 0.50
MAX_LOGGED_CHANGES = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one window. The last four follow from the others."""

    limit_tokens: int
    max_output_tokens: int
    max_part_tokens: int
    core_tokens: int
    notify_at: float = NOTIFY_AT
    evict_at: float = EVICT_AT
    evict_to: float = EVICT_TO
    usable_tokens: int = field(init=False, compare=False)  # what a request may hold
    notify_tokens: int = field(init=False, compare=False)  # from here on the agent is told that the window fills
    evict_tokens: int = field(init=False, compare=False)  # from here on the oldest steps leave ...
    target_tokens: int = field(init=False, compare=False)  # ... until the prompt is as small as this

    def __post_init__(self) -> None:
        for name in _GIVEN:
            _check_number(name, getattr(self, name), share=name.endswith(("_at", "_to")))
        usable = self.limit_tokens - self.max_output_tokens
        shares = {"notify_tokens": self.notify_at, "evict_tokens": self.evict_at, "target_tokens": self.evict_to}
        object.__setattr__(self, "usable_tokens", usable)
        for name, share in shares.items():
            object.__setattr__(self, name, int(usable * share))

    @classmethod
    def for_window(
        cls, limit_tokens: int = 100_000, *, max_output_tokens: int | None = None, max_part_tokens: int | None = None,
        core_tokens: int | None = None, notify_at: float = NOTIFY_AT, evict_at: float = EVICT_AT,
        evict_to: float = EVICT_TO,
    ) -> "Limits":  # fmt: skip
        """Return limits for a window; what is not given is derived from it."""
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
        """Raise RejectedError if the limits contradict each other."""
        if self.max_output_tokens < 1 or self.usable_tokens < 1:
            window = f"a window of {self.limit_tokens} tokens with {self.max_output_tokens} for the reply"
            way = "raise limit_tokens or lower max_output_tokens"
            raise RejectedError(f"{window} leaves nothing for the prompt; {way}.")
        if self.core_tokens < 0:
            raise RejectedError(f"core_tokens is {self.core_tokens}; give 0 or more.")
        if self.max_part_tokens < MIN_PART_TOKENS:
            needed = f"at least {MIN_PART_TOKENS} are needed to show both ends of a part"
            raise RejectedError(f"max_part_tokens is {self.max_part_tokens}; {needed}. Raise it, or the window.")
        if self.max_part_tokens > self.usable_tokens:
            usable = self.usable_tokens
            raise RejectedError(f"max_part_tokens is {self.max_part_tokens}, more than the {usable} usable; lower it.")
        if not 0 < self.evict_to < self.evict_at <= 1 or not 0 < self.notify_at <= self.evict_at:
            given = f"evict_to {self.evict_to}, notify_at {self.notify_at}, evict_at {self.evict_at}"
            needed = "0 < evict_to < evict_at <= 1 and 0 < notify_at <= evict_at"
            raise RejectedError(f"{given}: needed are {needed}.")

    def share_in_tokens(self, share: float) -> int:
        """Return a share of the usable tokens."""
        return int(self.usable_tokens * share)

    def tightened(self, factor: float) -> "Limits":
        """Return the limits of a window `factor` times smaller, for a prompt that is larger than estimated."""
        usable = min(self.usable_tokens, int(self.usable_tokens / factor))
        return replace(self, limit_tokens=self.max_output_tokens + usable)

    def fitted(self, fixed_tokens: int) -> "Limits":
        """Return the limits with max_part_tokens lowered until two parts fit beside a full core and the fixed parts."""
        room = self.usable_tokens - fixed_tokens - self.core_tokens
        part = min(self.max_part_tokens, room // 2)
        if part < MIN_PART_TOKENS:
            raise WindowTooSmallError(
                f"tools and instructions ({fixed_tokens} tokens), a full core ({self.core_tokens}) and two parts "
                f"({self.max_part_tokens} each) do not fit into the {self.usable_tokens} usable tokens of a window of "
                f"{self.limit_tokens} less {self.max_output_tokens} for the reply. Shorten the instructions, lower "
                "the core's limit, drop tools, or take a larger window."
            )
        return self if part == self.max_part_tokens else replace(self, max_part_tokens=part)

    def given(self) -> dict[str, Any]:
        """Return the values from which the others follow."""
        return {name: getattr(self, name) for name in _GIVEN}


_GIVEN = tuple(each.name for each in fields(Limits) if each.init)


def _check_number(name: str, value: Any, *, share: bool = False) -> None:
    kind = int | float if share else int
    if isinstance(value, bool) or not isinstance(value, kind) or not abs(value) < 1 << 63:  # NaN is not, either
        wanted = "number between 0 and 1" if share else "whole number of at most 63 bits"
        raise RejectedError(f"{name} is {brief(value)}; give a {wanted}.")


def add_to_log(log: str | None, limits: Limits, step: int) -> str:
    """Return the log of limits, with those that hold from `step` on; unchanged if they hold already."""
    changes: list[Any] = json.loads(log) if log else []
    if changes and changes[-1][1] == limits.given():
        return log or ""
    return json.dumps([*changes, [step, limits.given()]][-MAX_LOGGED_CHANGES:])


def read_log(log: str | None, step: int | None = None) -> Limits | None:
    """Return the limits of the newest request, or of the one that `step` answered; None before the first request."""
    changes = [values for since, values in json.loads(log or "[]") if step is None or since < step]
    return Limits(**changes[-1]) if changes else None
