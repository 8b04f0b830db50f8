"""What a trace is made of: plain, frozen, and the same for the terminal, the browser and `--json`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Told:
    """One moment in the life of a text. `step` is the newest step then, `text` a sentence for a person; `found` is set
    for a search: whether it came back."""

    at: datetime
    step: str
    event: str
    page_id: str | None
    text: str
    found: bool | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A piece of a request in which the text stands."""

    part: str
    title: str
    page_id: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the text was in a request: in the one that the reply `at` answered, or in the next one (None).
    `more_places`: how many others there are, which are not told."""

    at: str | None
    places: tuple[Standing, ...]
    reasons: tuple[str, ...]
    more_places: int = 0

    @property
    def present(self) -> bool:
        return bool(self.places)


@dataclass(frozen=True, slots=True)
class Near:
    """A page that does not hold the text, but is what a search for it would find."""

    page_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The life of a text, oldest moment first. `more`: it stands in more places than are told."""

    text: str
    pages: tuple[str, ...]
    core: tuple[str, ...]
    events: tuple[Told, ...]
    verdict: Verdict
    more: bool
    near: tuple[Near, ...]

    @property
    def known(self) -> bool:
        return bool(self.pages or self.core)
