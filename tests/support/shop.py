"""An agent in a folder for tests of the command line: its model is scripted in this process, reached over HTTP.

with shop_in(folder) as shop:
    shop.model.script("Hello.")
    assert shop.chat("hello").out == "Hello.\\n"
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from agents.testing import Reply, ScriptedServer
from pager import Memory
from pager.types import Json
from tests.support.cli import TIMEOUT_S, Done, command_line, write_agent

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
    model: ScriptedServer
    more: str = "archival: {embedder: none}\n"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def file(self) -> Path:
        (self.folder / "shop.py").write_text(TOOLS, encoding="utf-8")
        return write_agent(self.folder, self.more, model=f"id: m, base_url: '{self.model.base_url}'")

    def chat(self, *lines: str, options: tuple[str, ...] = ()) -> Done:
        said = "".join(f"{line}\n" for line in lines)
        return command_line("chat", self.file, "--home", self.home, *options, said=said)

    def run(self, *arguments: str, options: tuple[str, ...] = ()) -> Done:
        return command_line("run", self.file, *arguments, "--home", self.home, *options)

    def memory(self, name: str = "x") -> Memory:
        return Memory.open(self.home / name, embedder=None)


@contextmanager
def shop_in(folder: Path) -> Generator[Shop]:
    """All that is scripted has to be said in the end."""
    with ScriptedServer() as model:
        yield Shop(folder, model)
    sys.modules.pop("shop", None)  # the next folder has a module of that name, too
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    assert not model.errors
    assert model.unused == 0


class Gate:
    """A line of a script: tells that the request has come, and answers when it may."""

    def __init__(self, *blocks: str | Json) -> None:
        self._reply = Reply(*blocks)
        self.asked, self.may = Event(), Event()

    def __call__(self, _: Json) -> Reply:
        self.asked.set()
        assert self.may.wait(TIMEOUT_S)
        return self._reply
