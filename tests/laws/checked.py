"""What must hold of every request, and after every step of the state machine."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis.stateful import invariant

from pager import Request, markup
from pager.limits import DIGEST_SHARE
from tests.laws import texts
from tests.laws.opened import Opened
from tests.laws.witness import Prompt, armed, body_text


class Checked(Opened):
    def inspect(self, request: Request, *, resent: bool) -> Prompt:
        """The request against the model: law 5, and who is in it."""
        stays = self.memory.history.resident()
        resident = [stay.page_id for stay in stays if stay.how == "step"]
        prompt = self.witness.read(request.params, [(page, self.plain.steps[page]) for page in resident])
        in_preamble = {stay.page_id for stay in stays if stay.how == "request"}
        assert set(prompt.requests) == in_preamble
        for page, blocks in prompt.requests.items():
            for original, block in zip(self.plain.steps[page].said, blocks, strict=True):
                self.witness.carries(original, block, prompt)
        wanted = self.plain.requests_of_turn()
        missing = {*wanted[:1], *wanted[1:][-4:]} - {*resident, *prompt.requests}
        assert not missing, f"{missing}, which the turn is about, is not in the prompt"
        gone = {page for page, step in self.plain.steps.items() if step.kind != "record" and not step.dropped}
        gone -= {*resident}
        for page in gone:
            number = int(page[1:])
            assert any(first <= number <= last for first, last in prompt.digest), f"{page} is not in the digest"
        if not resent and not self.plain.paused:
            self.inspect_what_was_told(prompt)
        return prompt

    def inspect_what_was_told(self, prompt: Prompt) -> None:
        assert prompt.core.keys() == self.plain.core.keys()
        for name, value in self.told.items():
            assert prompt.core[name] == armed(value), f"what was done to {name} is not in view"
        for page, piece in self.plain.pins.items():
            assert armed(piece) in (prompt.pinned.get(page), *self.held(page)), f"{page} is pinned and not in view"

    def held(self, page: str) -> Iterator[str]:
        """What stands in results: a page that the agent has pinned by itself."""
        for stay in self.memory.history.resident():
            if stay.how == "step":
                for result in self.plain.steps[stay.page_id].results:
                    yield armed(body_text(result))

    def least_tokens(self) -> int:
        """What the smallest prompt would have: fixed parts, and of everything else the ids."""
        nothing = [{"role": "user", "content": [texts.text_block("x")]}]
        core = "\n".join(f"<block>{value}</block>" for value in self.plain.core.values())
        system = [
            texts.text_block(self.instructions + markup.HOW_MEMORY_WORKS),
            texts.text_block(f"<core>{core}</core>"),
        ]
        params = {"model": self.model, "system": system, "tools": self.tools, "messages": nothing}
        count, bare = self.api.tokenizer.text, '<spilled page_id="x999" characters="99999"/>'
        last = self.plain.steps[self.plain.last_live()]
        pieces = [bare] * (
            len(last.results) + sum(len(self.plain.steps[p].said) for p in self.plain.requests_of_turn()[-5:])
        )
        pieces += [json.dumps(block)[:300] for block in last.said if last.kind == "assistant"]
        pieces += self.plain.pins.values()
        share = DIGEST_SHARE * self.limits.usable_tokens
        return self.api.count_tokens(params) + sum(count(piece) + 12 for piece in pieces) + int(share)

    @invariant()
    def the_laws_hold(self) -> None:
        if not hasattr(self, "memory"):
            return
        assert self.memory.check() == []
        assert [call.id for call in self.memory.open_calls] == self.plain.open_calls
        assert {block.name: block.value for block in self.memory.core()} == self.plain.core
        assert self.memory.turn_is_open == bool(self.plain.turn or self.plain.open_calls)
        for page in self.some(self.plain.steps):
            step = self.plain.steps[page]
            assert self.memory.history.blocks_of(page) == step.said + step.results
        for page in self.some(self.accepted):
            assert json.dumps(self.memory.history.rebuild(page)) == self.accepted[page]
            assert self.resident(page) == self.stays[page]
        for page in self.some(self.plain.facts):
            known, fact = self.plain.facts[page], self.memory.fact(page)
            assert (fact.text, fact.key, list(fact.tags)) == (known.text, known.key, known.tags)
            assert (fact.valid_from, fact.valid_until) == (known.start, known.end)
        assert self.pins() == self.plain.pins.keys()
