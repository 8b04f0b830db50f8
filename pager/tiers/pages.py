"""Pages: what can be moved by its id. A fact `f12`, a step `s45`, a spilled part `x3`.

`page_in` reads a page verbatim, in pieces no larger than a part may be. A pin keeps a piece in the prompt across
evictions; all pins share a fifth of the window.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from pager import blocks, markup, tokens
from pager.arguments import whole_number
from pager.clock import Clock, to_micros
from pager.errors import NotFoundError, RejectedError
from pager.limits import PINNED_SHARE, Limits
from pager.store import Store
from pager.store.ledger import Ledger
from pager.tokens.counter import Counter
from pager.types import Json, PageText, Pin, read_page_id

PAGED_OUT = "paged out"
WORDS_AROUND_TOKENS = 60  # of what is told about a piece beside its text


class Pages:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        ledger: Ledger,
        limits: Callable[[], Limits],
        counter: Callable[[], Counter],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._limits = limits
        self._counter = counter

    def text(self, page_id: str) -> str:
        """The whole page, verbatim."""
        kind, number = read_page_id(page_id)
        if kind == "f":
            return self._fact_text(page_id, number)
        if kind == "s":
            return self._step_text(page_id, number)
        row = self._store.conversation.original(number)
        if row is None or row["kind"] != "said":
            raise NotFoundError(f"there is no page {page_id!r}; search_recall finds steps by their words.")
        if row["purged"] or self._ledger.movements(page=str(page_id), events=["purge"]):
            raise NotFoundError(f"the page {page_id} was purged; its text is gone for good.")
        return blocks.text_of(json.loads(row["block"]))

    def _fact_text(self, page_id: str, number: int) -> str:
        fact = self._store.archive.fact(number)
        if fact is None:
            raise NotFoundError(f"there is no fact {page_id!r}; search_archive finds facts by words and by meaning.")
        if fact.purged:
            raise NotFoundError(f"the fact {page_id} was purged; its text is gone for good.")
        return fact.text

    def _step_text(self, page_id: str, number: int) -> str:
        row = self._store.conversation.step(number)
        if row is None:
            raise NotFoundError(f"there is no step {page_id!r}; search_recall finds steps by their words.")
        if row["purged"]:
            raise NotFoundError(f"the step {page_id} was purged; its text is gone for good.")
        said = (b for b in self._store.conversation.originals(number) if b.get("type") not in blocks.THINKING)
        return "\n".join(blocks.text_of(block) for block in said)

    def _media(self, page_id: str) -> list[Json]:
        kind, number = read_page_id(page_id)
        row = self._store.conversation.original(number) if kind == "x" else None
        held = [json.loads(row["block"])] if row else self._store.conversation.originals(number) if kind == "s" else []
        return [item for block in held for item in blocks.media_in(block)]

    def piece(self, pin: Pin) -> str:
        return self.text(pin.page_id)[pin.offset : pin.offset + pin.length]

    def page_in(self, page_id: str, *, pin: bool, offset: int, actor: str, holder: int | None) -> PageText:
        """A page from a character on, at most a part's worth. `holder` is the step that will carry it, if any."""
        page_id = str(read_page_id(page_id))
        text = self.text(page_id)
        if whole_number(offset, "offset") < 0 or offset > len(text):
            raise RejectedError(f"offset {offset} is outside of {page_id}, which has {len(text)} characters from 0.")
        piece = self._at_most_a_part(text[offset:])
        end = offset + len(piece)
        here = PageText(
            page_id, piece, offset, end if end < len(text) else None, len(text), self._where(page_id, offset),
            () if offset else tuple(self._media(page_id)),
        )  # fmt: skip
        with self._store.transaction():
            size = self._counter().tokens(tokens.count(piece))
            step = self._store.conversation.last_step()
            if pin:
                self._pin(page_id, offset, len(piece), actor, unseen=actor != "agent")
            if holder is not None and not here.where:
                self._store.prompt.enter(page_id, "paged_in", step, holder)
            if page_id.startswith("f"):
                self._store.archive.used([int(page_id[1:])], to_micros(self._clock.now()))
            why = "read, to be pinned" if pin else "read"
            self._ledger.write("page_in", page_id, reason=why, actor=actor, tokens=size, offset=offset, pin=pin)
        return here

    def _at_most_a_part(self, text: str) -> str:
        limit = self._limits().max_part_tokens - WORDS_AROUND_TOKENS
        counter = self._counter()
        plain = max(8, int(limit / max(counter.ratios[:4])))
        piece = tokens.head(text, plain)
        if len(piece) < len(text):
            # The ratios of this text's kinds may be far below the highest one: use what room is left.
            used = max(1, counter.tokens(tokens.count(piece)))
            wider = tokens.head(text, int(plain * limit / used))
            piece = wider if counter.tokens(tokens.count(wider)) <= limit else piece
        return piece or text[:1]

    def _where(self, page_id: str, offset: int) -> str:
        """How the page is in view already, for a first piece."""
        how = self._store.prompt.how_resident(page_id) if not offset else set[str]()
        # A page that was paged out leaves when the next epoch opens; a pin that waits is told with the next request.
        pinned = not offset and page_id in {pin.page_id for pin in self._store.prompt.pins()}
        how = how - {"pinned"} | ({"pinned"} if pinned else set[str]())
        places = {
            "step": f"{page_id} is in view, as a step of this conversation",
            "request": f"{page_id} is in view, as the request that opens this conversation",
            "pinned": f"{page_id} is in view, pinned",
        }
        return next((place for way, place in places.items() if way in how), "")

    # pins

    def _pin(
        self, page_id: str, offset: int, length: int, actor: str, *, unseen: bool, why: str = "to stay in view"
    ) -> None:
        text = self.text(page_id)[offset : offset + length]
        if not text.strip():
            raise RejectedError(
                f"{page_id} holds no text from {offset} on, and only text can be pinned. Page it in when needed."
            )
        size = self._counter().tokens(tokens.count(markup.pinned(page_id, text)))
        others = [pin for pin in self._store.prompt.pins() if pin.page_id != page_id]
        limit = self._limits().of_usable(PINNED_SHARE)
        used = sum(pin.tokens for pin in others)
        if used + size > limit:
            names = ", ".join(f"{pin.page_id} ({pin.tokens})" for pin in others) or "nothing else"
            raise RejectedError(
                f"pinning {page_id} takes {size} tokens; pinned pages share {limit} and {used} are taken by {names}. "
                "Page one out first, or read this page without pin."
            )
        step = self._store.conversation.last_step()
        self._store.prompt.pin(page_id, offset, length, size, step, actor, unseen=unseen)
        if not unseen:
            self._enter(page_id, step)
        self._ledger.write("pin", page_id, reason=why, actor=actor, tokens=size)

    def _enter(self, page_id: str, step: int) -> None:
        if "pinned" not in self._store.prompt.how_resident(page_id):  # as one is that was just paged out
            self._store.prompt.enter(page_id, "pinned", step)

    def shown(self) -> None:
        """The pins that waited are in the prompt now, behind the newest step or in a new epoch."""
        step = self._store.conversation.last_step()
        for pin in self._store.prompt.pins():
            self._enter(pin.page_id, step)
        self._store.prompt.pins_seen()

    def release_unpinned(self) -> None:
        """What was unpinned stood in the prompt until this epoch opened."""
        pins, step = {pin.page_id for pin in self._store.prompt.pins()}, self._store.conversation.last_step()
        for stay in self._store.prompt.resident():
            if stay.how == "pinned" and stay.page_id not in pins:
                told = self._ledger.movements(page=stay.page_id, events=["unpin"], limit=1)
                self._store.prompt.leave(stay.page_id, "pinned", step, (told[0].reason if told else "") or PAGED_OUT)

    def unpin(self, page_id: str, actor: str, reason: str = PAGED_OUT) -> None:
        """The page leaves the prompt when the next epoch opens: what was sent stays as it is."""
        page_id = str(read_page_id(page_id))
        with self._store.transaction():
            sizes = {pin.page_id: pin.tokens for pin in self._store.prompt.pins()}
            if page_id not in sizes:
                names = ", ".join(sizes)
                raise NotFoundError(
                    f"{page_id} is not pinned; " + (f"pinned are {names}." if names else "nothing is pinned.")
                )
            self._store.prompt.unpin(page_id)
            self._ledger.write("unpin", page_id, reason=reason, actor=actor, tokens=sizes[page_id])

    def follow(self, old: int, new: int | None, reason: str) -> None:
        """A pinned fact that was superseded hands its pin to its successor; one that ended loses it."""
        page = f"f{old}"
        if page not in {pin.page_id for pin in self._store.prompt.pins()}:
            return
        self.unpin(page, "pager", reason)
        if new is not None:
            text = self.text(f"f{new}")
            # Storing a fact does not fail because its pin has become too large; the ledger says that it is unpinned.
            with suppress(RejectedError):
                self._pin(f"f{new}", 0, len(self._at_most_a_part(text)), "pager", unseen=True, why=f"as {page} was")

    def keep_within_limit(self) -> None:
        """A window that shrinks leaves less room for pins: what is too large by itself goes, then the oldest."""
        limit = self._limits().of_usable(PINNED_SHARE)
        pins = sorted(self._store.prompt.pins(), key=lambda pin: pin.tokens <= limit)
        while pins and sum(pin.tokens for pin in pins) > limit:
            self.unpin(pins.pop(0).page_id, "pager", f"pinned pages share {limit} tokens of a smaller window")
