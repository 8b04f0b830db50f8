"""An agent in a folder for tests of the command line: its model is a rehearsal in this process, reached over HTTP.

with shop_in(folder) as shop:
    shop.rehearsal.script("Hello.")
    assert shop.chat("hello").out == "Hello.\\n"
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from agents.rehearsal import Rehearsal, Reply
from agents.rehearsal.wire import Json
from pager import Memory
from tests.support.cli import TIMEOUT_S, Done, selfpager, write_agent

TOOLS = '''
import subprocess
from pathlib import Path

def refund(order: int) -> str:
    """Give the money back."""
    return f"order {order} was refunded"


def talk() -> str:
    """Say what you do."""
    print("I am at work.")
    subprocess.run(["echo", "so am I"], check=True)
    return "said"


def wait_for(path: str) -> str:
    """Wait until nobody reads."""
    Path(path).read_text()
    return "it is there"
'''


@dataclass
class Shop:
    """`more` are lines of the agent's YAML."""

    folder: Path
    rehearsal: Rehearsal
    more: str = "archival: {embedder: none}\n"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def file(self) -> Path:
        (self.folder / "shop.py").write_text(TOOLS, encoding="utf-8")
        model = f"id: m, base_url: '{self.rehearsal.base_url}'"
        return write_agent(self.folder, self.more, model=model)

    def chat(self, *lines: str, options: tuple[str, ...] = ()) -> Done:
        return selfpager("chat", self.file, "--home", self.home, *options, said="".join(f"{line}\n" for line in lines))

    def run(self, *arguments: str, options: tuple[str, ...] = ()) -> Done:
        return selfpager("run", self.file, *arguments, "--home", self.home, *options)

    def memory(self, name: str = "x") -> Memory:
        return Memory.open(self.home / name, embedder=None)


@contextmanager
def shop_in(folder: Path) -> Generator[Shop]:
    """All that is scripted has to be said in the end."""
    with Rehearsal() as rehearsal:
        yield Shop(folder, rehearsal)
    assert not rehearsal.errors
    assert rehearsal.unsaid == 0


class Gate:
    """A line of a script: tells that the request has come, and answers when it may."""

    def __init__(self, *blocks: str | Json) -> None:
        self._reply = Reply(*blocks)
        self.asked, self.may = Event(), Event()

    def __call__(self, _: Json) -> Reply:
        self.asked.set()
        assert self.may.wait(TIMEOUT_S)
        return self._reply
