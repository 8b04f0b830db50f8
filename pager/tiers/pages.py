"""Pages: what can be moved by its id. A fact `f12`, a step `s45`, a spilled part `x3`, a skill `k3`.

`page_in` reads a page verbatim, in pieces no larger than a part may be. A pin keeps a piece in the prompt across
evictions; all pins share a fifth of the window.
"""

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from pager import blocks, markup, tokens
from pager.arguments import require_int
from pager.clock import Clock, to_micros
from pager.errors import NotFoundError, RejectedError
from pager.limits import PINNED_SHARE
from pager.store import Store
from pager.store.rows import Pin
from pager.tokens.counter import Window
from pager.types import Json, PageText, number_of, read_page_id

PAGED_OUT = "paged out"
WORDS_AROUND_TOKENS = 60  # what an answer says about a piece beside its text
_WHERE = {
    "step": "as a step of this conversation",
    "request": "as the request that opens this conversation",
    "pinned": "pinned",
}


class Pages:
    """Reads pages, and keeps some of them in the prompt."""

    def __init__(self, store: Store, clock: Clock, window: Window) -> None:
        self._store = store
        self._clock = clock
        self._window = window

    def text(self, page_id: str) -> str:
        """Return the whole page, verbatim."""
        kind, number = read_page_id(page_id)
        if kind == "f":
            fact = self._store.archive.fact(number)
            if fact is None:
                raise NotFoundError(f"there is no fact {page_id!r}; search_archive finds facts by words and meaning.")
            if fact.purged:
                raise NotFoundError(f"the fact {page_id} was purged; its text is gone for good.")
            return fact.text
        if kind == "s":
            return self._step_text(page_id, number)
        if kind == "k":
            return self._skill_text(page_id, number)
        row = self._store.conversation.original(number)
        if row is None or row["kind"] != "said":
            raise NotFoundError(f"there is no page {page_id!r}; search_recall finds steps by their words.")
        if row["purged"] or self._store.ledger.movements(page=str(page_id), events=["purge"]):
            raise NotFoundError(f"the page {page_id} was purged; its text is gone for good.")
        return blocks.text_of(json.loads(row["block"]))

    def _skill_text(self, page_id: str, number: int) -> str:
        text = self._store.skills.text(number)
        if text is None:
            skills = ", ".join(f"{skill.id} ({skill.name})" for skill in self._store.skills.active())
            which = f"there are {skills}." if skills else "there is none."
            raise NotFoundError(f"there is no skill {page_id!r}; {which}")
        return text

    def _step_text(self, page_id: str, number: int) -> str:
        row = self._store.conversation.step(number)
        if row is None:
            raise NotFoundError(f"there is no step {page_id!r}; search_recall finds steps by their words.")
        if row["purged"]:
            raise NotFoundError(f"the step {page_id} was purged; its text is gone for good.")
        originals = self._store.conversation.originals(number)
        return "\n".join(blocks.text_of(block) for block in originals if block.get("type") not in blocks.THINKING)

    def read(self, page_id: str, offset: int = 0) -> PageText:
        """Return a piece of a page from a character on, no larger than a part may be. Writes nothing."""
        page_id = str(read_page_id(page_id))
        text = self.text(page_id)
        if require_int(offset, "offset") < 0 or offset > len(text):
            raise RejectedError(f"offset {offset} is outside of {page_id}, which has {len(text)} characters from 0.")
        piece = self._at_most_a_part(text[offset:])
        end = offset + len(piece)
        media = () if offset else self._media(page_id)
        on = end if end < len(text) else None
        return PageText(page_id, piece, offset, on, len(text), media=media, via=self.via(page_id))

    def via(self, page_id: str) -> tuple[str, ...]:
        """Return the names of the untrusted sources of a page; none if it is trusted."""
        kind, number = read_page_id(page_id)
        if kind == "f":
            fact = self._store.archive.fact(number)
            return fact.via if fact else ()
        if kind == "k":
            return ()  # a person wrote it
        table = self._store.conversation
        return tuple(sorted(table.sources_of(table.step_of(page_id))))

    def _media(self, page_id: str) -> tuple[Json, ...]:
        """Return the images and documents of a page, but for those that a provider refused: it would do so again."""
        media = tuple(item for block in self._blocks(page_id) for item in blocks.media_in(block))
        if not media:
            return ()
        dropped = [row.page_id or "" for row in self._store.ledger.movements(events=["drop"])]
        refused = {number_of(page) for page in dropped if page.startswith("x")}
        return tuple(item for block in self._blocks(page_id, without=refused) for item in blocks.media_in(block))

    def _blocks(self, page_id: str, *, without: Collection[int] = ()) -> list[Json]:
        kind, number = read_page_id(page_id)
        if kind == "s":
            return self._store.conversation.originals(number, without=without)
        row = self._store.conversation.original(number) if kind == "x" and number not in without else None
        return [json.loads(row["block"])] if row else []

    def _at_most_a_part(self, text: str) -> str:
        counter, limit = self._window.counter, self._window.limits.max_part_tokens - WORDS_AROUND_TOKENS
        plain = max(8, int(limit / max(counter.ratios[:4])))
        piece = tokens.head(text, plain)
        if len(piece) < len(text):
            # The ratios of this text's kinds may be far below the highest one: use what room is left.
            used = max(1, counter.tokens(tokens.count(piece)))
            wider = tokens.head(text, int(plain * limit / used))
            piece = wider if counter.tokens(tokens.count(wider)) <= limit else piece
        return piece or text[:1]

    def page_in(self, page_id: str, *, pin: bool, offset: int, actor: str, holder: int | None) -> PageText:
        """Read a piece for somebody, and pin it if asked. `holder` is the step whose result will carry it, if any."""
        page = self.read(page_id, offset)
        page = replace(page, where=self._where(page.page_id, offset))
        with self._store.transaction():
            size = self._window.counter.tokens(tokens.count(page.text))
            step = self._store.conversation.last_step()
            if pin:
                self._pin(page.page_id, offset, len(page.text), actor, "to stay in the prompt", unseen=actor != "agent")
            if holder is not None and not page.where:
                self._store.prompt.enter(page.page_id, "paged_in", step, holder)
            if page.page_id.startswith("f"):
                self._store.archive.used([int(page.page_id[1:])], to_micros(self._clock.now()))
            reason, about = "read, to be pinned" if pin else "read", {"offset": offset, "pin": pin}
            self._store.ledger.write("page_in", page.page_id, reason=reason, actor=actor, tokens=size, **about)
        return page

    def _where(self, page_id: str, offset: int) -> str:
        """Say how the first piece of a page is in the prompt already; an empty text if it is not."""
        if offset:
            return ""
        # A page that was paged out leaves when the next epoch opens; an unseen pin enters with the next request.
        pinned = {"pinned"} if page_id in {pin.page_id for pin in self._store.prompt.pins()} else set[str]()
        ways = self._store.prompt.how_resident(page_id) - {"pinned"} | pinned
        return next((f"{page_id} is in the prompt, {words}" for way, words in _WHERE.items() if way in ways), "")

    def piece(self, pin: Pin) -> str:
        """Return the text of a pin."""
        return self.text(pin.page_id)[pin.offset : pin.offset + pin.length]

    def _pin(self, page_id: str, offset: int, length: int, actor: str, reason: str, *, unseen: bool) -> None:
        text = self.text(page_id)[offset : offset + length]
        if not text.strip():
            raise RejectedError(f"{page_id} holds no text from {offset} on, and only text can be pinned. Page it in.")
        size = self._window.counter.tokens(tokens.count(markup.pinned(page_id, text)))
        others = [pin for pin in self._store.prompt.pins() if pin.page_id != page_id]
        limit, used = self._window.limits.share_in_tokens(PINNED_SHARE), sum(pin.tokens for pin in others)
        if used + size > limit:
            names = ", ".join(f"{pin.page_id} ({pin.tokens})" for pin in others) or "nothing else"
            taken = f"pinned pages share {limit} and {used} are taken by {names}"
            way = "Page one out first, or read this page without pin"
            raise RejectedError(f"pinning {page_id} takes {size} tokens; {taken}. {way}.")
        step = self._store.conversation.last_step()
        self._store.prompt.pin(page_id, offset, length, size, step, actor, unseen=unseen)
        if not unseen:
            self._enter(page_id, step)
        self._store.ledger.write("pin", page_id, reason=reason, actor=actor, tokens=size)

    def _enter(self, page_id: str, step: int) -> None:
        if "pinned" not in self._store.prompt.how_resident(page_id):  # it is, if it was just paged out
            self._store.prompt.enter(page_id, "pinned", step)

    def mark_shown(self) -> None:
        """Record that unseen pins are in the prompt now, behind the newest step or in a new epoch."""
        step = self._store.conversation.last_step()
        for pin in self._store.prompt.pins():
            self._enter(pin.page_id, step)
        self._store.prompt.pins_seen()

    def release_unpinned(self) -> None:
        """Record that unpinned pages, which stayed until this epoch opened, are gone."""
        pins, step = {pin.page_id for pin in self._store.prompt.pins()}, self._store.conversation.last_step()
        for stay in self._store.prompt.resident():
            if stay.how == "pinned" and stay.page_id not in pins:
                rows = self._store.ledger.movements(page=stay.page_id, events=["unpin"], limit=1)
                reason = (rows[0].reason if rows else "") or PAGED_OUT
                self._store.prompt.end_residency(stay.page_id, "pinned", step, reason)

    def unpin(self, page_id: str, actor: str, reason: str = PAGED_OUT) -> None:
        """Let a page leave the prompt when the next epoch opens: what was sent stays as it is."""
        page_id = str(read_page_id(page_id))
        with self._store.transaction():
            sizes = {pin.page_id: pin.tokens for pin in self._store.prompt.pins()}
            if page_id not in sizes:
                which = f"pinned are {', '.join(sizes)}." if sizes else "nothing is pinned."
                raise NotFoundError(f"{page_id} is not pinned; {which}")
            self._store.prompt.unpin(page_id)
            self._store.ledger.write("unpin", page_id, reason=reason, actor=actor, tokens=sizes[page_id])

    def move_pin(self, old: str, new: str | None, reason: str) -> None:
        """Move the pin of a superseded fact to its successor, or renew a pin; unpin what ended."""
        if old not in {pin.page_id for pin in self._store.prompt.pins()}:
            return
        self.unpin(old, "pager", reason)
        if new is not None:
            length = len(self._at_most_a_part(self.text(new)))
            # Storing a fact does not fail because its pin has become too large; the ledger says that it is unpinned.
            with suppress(RejectedError):
                self._pin(new, 0, length, "pager", f"as {old} was", unseen=True)

    def restore_pin(self, page_id: str, offset: int, length: int, reason: str) -> None:
        """Pin a piece as it was before, if there is room."""
        with suppress(RejectedError, NotFoundError):
            self._pin(page_id, offset, length, "pager", reason, unseen=True)

    def renew_pins(self, skills: Sequence[str]) -> None:
        """Show pinned skills that were changed anew, and unpin those that are gone."""
        for page_id in skills:
            is_there = self._store.skills.text(number_of(page_id)) is not None
            reason = "the skill was changed" if is_there else "the agent does not have this skill any more"
            self.move_pin(page_id, page_id if is_there else None, reason)

    def pin_again(self, page_id: str, reason: str) -> None:
        """Pin a page as it was pinned last, if it is there and there is room."""
        read = [row for row in self._store.ledger.movements(page=page_id, events=["page_in"]) if row.detail.get("pin")]
        offset = int(read[-1].detail.get("offset", 0)) if read else 0
        with suppress(RejectedError):
            length = len(self._at_most_a_part(self.text(page_id)[offset:]))
            self._pin(page_id, offset, length, "pager", reason, unseen=True)

    def unpin_expired(self) -> None:
        """Unpin facts that have expired since they were pinned."""
        facts = [number_of(pin.page_id) for pin in self._store.prompt.pins() if pin.page_id.startswith("f")]
        now = self._clock.now()
        for fact in self._store.archive.facts(facts).values() if facts else ():
            if fact.valid_until is not None and fact.valid_until <= now and fact.valid_until == fact.expires:
                [pinned] = self._store.ledger.movements(page=fact.id, events=["pin"], limit=1)
                if pinned.at < fact.valid_until:
                    self.unpin(fact.id, "pager", "it has expired")

    def fit_pins(self) -> None:
        """Unpin what a smaller window has no room for: first what is too large by itself, then the oldest."""
        limit = self._window.limits.share_in_tokens(PINNED_SHARE)
        pins = sorted(self._store.prompt.pins(), key=lambda pin: pin.tokens <= limit)
        while pins and sum(pin.tokens for pin in pins) > limit:
            self.unpin(pins.pop(0).page_id, "pager", f"pinned pages share {limit} tokens of a smaller window")
