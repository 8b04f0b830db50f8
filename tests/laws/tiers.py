"""Rules for core, archive and pages: what is moved, and whether it is found."""

import json
import re
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from pager import MemoryReader, NotFoundError, RejectedError, tokens
from tests.laws import texts
from tests.laws.opened import CORE, CORE_TOKENS, Opened
from tests.laws.plain import PlainFact, cleaned

KEYS = ["seat", "city"]
TAGS = ["travel", "Home", "été"]


class Tiers(Opened):
    # core

    def appended(self, block: str, text: str) -> str | None:
        """Return a block with a line more, None when there is nothing to append."""
        value = self.plain.core[block]
        if not text.strip():
            return None
        return f"{value}\n{cleaned(text)}" if value else cleaned(text)

    def core_reads(self, block: str, value: str | None, *, actor: str) -> bool:
        if value is None:
            return False
        others = sum(tokens.total(text) for name, text in self.plain.core.items() if name != block)
        used = tokens.total(value)
        if CORE[block].read_only or used > CORE[block].limit_tokens or others + used > CORE_TOKENS:
            return False
        if value != self.plain.core[block]:
            self.plain.core[block] = value
            if actor == "agent":
                self.told.pop(block, None)
            else:
                self.told[block] = value
        return True

    @rule(block=st.sampled_from([*CORE, "nothing"]), text=texts.small)
    def core_append(self, block: str, text: str) -> None:
        try:
            found = self.memory.core_append(block, text)
        except RejectedError as error:
            assert str(error)
            assert block not in CORE or not self.core_reads(block, self.appended(block, text), actor="person")
        else:
            assert self.core_reads(block, self.appended(block, text), actor="person")
            assert found.value == self.plain.core[block]

    @rule(block=st.sampled_from(["human", "notes", "persona"]), data=st.data(), new=st.one_of(st.just(""), texts.small))
    def core_replace(self, block: str, data: st.DataObject, new: str) -> None:
        value = self.plain.core[block]
        lines = [line for line in value.split("\n") if line]
        old = data.draw(st.sampled_from([*lines, "not there", "", "e"]))
        unique = bool(old) and len(re.findall(f"(?={re.escape(old)})", value)) == 1
        try:
            found = self.memory.core_replace(block, old, new)
        except RejectedError:
            expected = value.replace(old, cleaned(new)) if unique else ""
            assert not unique or not self.core_reads(block, expected, actor="person")
        else:
            assert unique
            assert found.value == value.replace(old, cleaned(new)) or not new
            assert found.value.replace("\n", "") == value.replace(old, cleaned(new)).replace("\n", "")
            assert self.core_reads(block, found.value, actor="person")

    # archive

    @rule(text=texts.small, key=st.sampled_from([None, None, *KEYS]), tags=st.lists(st.sampled_from(TAGS), max_size=2),
          days=st.sampled_from([None, None, -400, -40, -1, 1]))  # fmt: skip
    def archive(self, text: str, key: str | None, tags: list[str], days: int | None) -> None:
        text = f"fact{len(self.plain.facts)}word {text}"
        start = self.clock.now() + timedelta(days=days) if days else None
        fact = self.memory.archive(text, key=key, tags=tags, valid_from=start)
        current = [page for page, known in self.plain.facts.items() if known.key == key and key and not known.over]
        beginning = start or self.clock.now()
        self.plain.facts.archive(fact.id, PlainFact(cleaned(text), key, tags, beginning, start is not None))
        self.pins_follow(current, fact.id)

    def pins_follow(self, before: list[str], new: str | None) -> None:
        """A pinned fact that is over hands its pin on to the one that supersedes it."""
        for page in before:
            if not self.plain.facts[page].over or self.plain.pins.pop(page, None) is None or new is None:
                continue
            # What is pinned of it reads the same when it is read without a pin.
            self.plain.pins[new] = self.memory.page_in(new).text
            self.pins_may_not_fit()

    @precondition(lambda self: self.plain.facts)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.plain.facts)))
        try:
            self.memory.forget(page, "no longer so")
        except RejectedError:
            assert self.memory.fact(page).forgotten is not None
        else:
            self.plain.facts.forget(page, self.clock.now())
            self.pins_follow([page], None)

    @rule(block=st.sampled_from(["notes", "human"]), data=st.data(), key=st.sampled_from([None, *KEYS]))
    def move_to_archive(self, block: str, data: st.DataObject, key: str | None) -> None:
        value = self.plain.core[block]
        lines = [
            line for line in value.split("\n") if line.strip() and len(re.findall(f"(?={re.escape(line)})", value)) == 1
        ]
        if not lines:
            return
        line = data.draw(st.sampled_from(lines))
        current = [page for page, known in self.plain.facts.items() if known.key == key and key and not known.over]
        fact = self.memory.move_to_archive(block, line, key=key)
        self.plain.facts.archive(fact.id, PlainFact(line, key, [], self.clock.now(), stated=False))
        self.pins_follow(current, fact.id)
        held = next(each.value for each in self.memory.core() if each.name == block)
        assert held.replace("\n", "") == value.replace(line, "").replace("\n", "")
        self.core_reads(block, held, actor="person")

    @precondition(lambda self: self.plain.facts)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """Every fact is found then and only then when it is true, by the word that no other has."""
        moment = data.draw(st.sampled_from([self.clock.now(), *self.moments]))
        true = self.plain.facts.true_at(moment)
        for page in data.draw(st.lists(st.sampled_from(sorted(self.plain.facts)), max_size=6, unique=True)):
            fact = self.plain.facts[page]
            hits = self.memory.search_archive(fact.text.split(" ")[0], as_of=moment, limit=3)
            found = page in {hit.page_id for hit in hits}
            if fact.text.startswith("fact"):
                assert found == (page in true), f"{page} at {moment}: {fact}"

    # pages

    def any_page(self) -> st.SearchStrategy[str]:
        spilled = [f"x{number}" for number in range(1, 30)]
        known = [*self.plain.steps, *self.plain.facts, *spilled, "s999", "f999", "nonsense"]
        return st.sampled_from(known)

    @rule(data=st.data(), pin=st.booleans(), offset=st.sampled_from([0, 0, 0, 1, 10**9]))
    def page_in(self, data: st.DataObject, pin: bool, offset: int) -> None:
        page = data.draw(self.any_page())
        self.is_pinned(page, offset, actor="person", pin=pin)

    def is_pinned(self, page: str, offset: int, *, actor: str, pin: bool = True, done: bool = False) -> None:
        """Page in, and remember what is pinned; `done` when the inbox has done it."""
        if done:
            # What the inbox pinned reads the same when it is read without a pin.
            if page not in self.pins():
                return
            self.plain.pins[page] = self.memory.page_in(page).text
            return
        try:
            piece = self.memory.page_in(page, pin=pin, offset=offset, actor=actor)
        except RejectedError as error:
            assert str(error)
            return
        if pin:
            self.plain.pins[page] = piece.text

    @precondition(lambda self: self.plain.pins)
    @rule(data=st.data())
    def page_out(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.plain.pins)))
        self.memory.page_out(page)
        del self.plain.pins[page]
        try:
            self.memory.page_out(page)
        except NotFoundError:
            return
        raise AssertionError(f"{page} was paged out twice")

    @precondition(lambda self: self.plain.steps)
    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        """From offset to offset a page is read whole, and no piece is larger than a part may be."""
        page = data.draw(st.sampled_from([*self.plain.steps, *self.plain.facts]))
        whole, offset, pieces = self.memory.page_text(page), 0, list[str]()
        while len(pieces) < 20:
            piece = self.memory.page_in(page, offset=offset)
            pieces.append(piece.text)
            assert piece.offset == offset
            assert piece.length == len(whole)
            if piece.next_offset is None:
                break
            assert piece.next_offset > offset
            offset = piece.next_offset
        assert whole.startswith("".join(pieces))
        assert len(pieces) == 20 or whole == "".join(pieces)

    @precondition(lambda self: self.accepted)
    @rule()
    def read_along(self) -> None:
        with MemoryReader.open(self.directory, clock=self.clock) as reader:
            newest = next(reversed(self.accepted))
            assert json.dumps(reader.history.rebuild(newest)) == self.accepted[newest]
            for page in self.some(self.plain.steps):
                assert reader.page_text(page) == self.memory.page_text(page)

    @precondition(lambda self: self.plain.steps)
    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        """A step is found by a word that was said in it, also when it has left the prompt."""
        page = data.draw(st.sampled_from(sorted(self.plain.steps)))
        step = self.plain.steps[page]
        words = [word for block in step.said if block["type"] == "text" for word in block["text"].split()]
        for word in [word for word in words if word.isascii() and word.isalpha()][:1]:
            hits = self.memory.search_recall(word, limit=100_000)
            assert page in {hit.page_id for hit in hits}
