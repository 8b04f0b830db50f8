"""An agent with a past: some of everything, over several epochs and two windows, and what a witness noted meanwhile."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pager import BlockSpec, Limits, Memory, Prefetch
from tests.standin import Reply, Standin, call, thinking
from tests.support import Talk, Words

CORE = {"human": BlockSpec(limit_tokens=900), "rules": BlockSpec(value="be kind", read_only=True)}
TURNS = 36


@dataclass
class Life:
    """`steps` are the replies to requests. For each of them: core, the number of facts, and the counted tokens."""

    talk: Talk
    markers: dict[str, str] = field(default_factory=dict[str, str])  # what only this step says -> its page id
    core: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    facts: dict[str, int] = field(default_factory=dict[str, int])
    size: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def memory(self) -> Memory:
        return self.talk.memory

    @property
    def steps(self) -> list[str]:
        return list(self.size)

    def live(self) -> None:
        for word in ("bus", "hat", "boat", "lamp", "tree", "cup"):  # among others a fact that fits stands out
            self.memory.archive(f"the {word} is red")
        for number in range(TURNS):
            if number % 3 == 0:
                self.memory.core_append("human", f"noted before turn {number}", actor="person")
            if number % 4 == 0:
                self.memory.archive(f"In turn {number} it was sunny in Porto.", key=f"k{number % 8}")
            if number == 6:
                self.memory.page_in("f1", pin=True)
            if number == 30:
                self.talk.reopen(limits=Limits.for_window(8_000))
            self.turn(number)
        assert len(self.memory.ledger(events=["epoch"])) > 3, "too few epochs: the window is too large for these tests"

    def turn(self, number: int) -> None:
        asked = "In which turn was it sunny in Porto? " if number % 5 == 2 else "and so the story went on " * 12
        self.markers[f"[u{number}]"] = self.memory.append_user(f"{asked}[u{number}]")
        self._reply(thinking("let me think " * 8), call("weather", {"city": "Porto"}))
        self.talk.answer("sunny " * (900 if number == 17 else 3), is_error=number == 9)
        self.memory.core_append("human", f"told in turn {number}", actor="agent")
        if number == 21:
            self._reply(Reply.refusal())
            self.talk.watch.forget_tail()
        else:
            self.markers[f"[a{number}]"] = self._reply(f"It is sunny. [a{number}]")

    def _reply(self, *blocks: Any) -> str:
        reply = blocks[0] if isinstance(blocks[0], Reply) else Reply(*blocks)
        response = self.talk.send(reply)
        core = {block.name: block.value for block in self.memory.core()}
        facts = len(self.memory.inspect.newest_facts(1_000))
        step = self.memory.append_assistant(response)
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self.core[step], self.facts[step] = core, facts
        self.size[step] = sum(response["usage"][name] for name in names)
        return step


@contextmanager
def lived(directory: Path) -> Generator[Life]:
    """A life, its memory still open for writing."""
    prefetch = Prefetch(k=2, budget_tokens=120)
    standin = Standin(limit_tokens=8_000)
    life = Life(Talk(directory, window=6_000, standin=standin, core=CORE, embedder=Words(), prefetch=prefetch))
    life.live()
    yield life
    life.memory.close()
