"""Postgres and the workers, each of which reaches it through a proxy of its own.

A worker is in the hands of one fault at a time: `borrow`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Condition, Event, Lock
from typing import IO
from urllib.parse import quote

from agents.serve.keys import Keys
from pager.clock import SystemClock
from pager.home import Home
from tests.chaos.tools import WITNESS
from tests.support.cli import ROOT, environment
from tests.support.ports import hold_port
from tests.support.proxy import Proxy
from tests.support.standby import Pair

CONFIG = """\
name: clerk
model: {{id: m, base_url: "{base_url}", api_key: none, max_output_tokens: 1000}}
window: {{limit_tokens: 20000}}
archival: {{embedder: none, prefetch: {{budget_tokens: 0}}}}
tools:
  - use: tests.chaos.tools:charge
  - use: tests.chaos.tools:look
    idempotent: true
"""
# Who claims an agent, and of which format the agent is then; and who commits to one that is another's: the judge looks.
WATCH = """
    CREATE TABLE public.claims (name text, format int, owner text);
    CREATE FUNCTION public.note_claim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.claims VALUES (NEW.name, NEW.format, NEW.owner); RETURN NULL; END $$;
    CREATE TRIGGER note_claim AFTER UPDATE OF claim ON selfpager.agents
        FOR EACH ROW EXECUTE FUNCTION public.note_claim();
    CREATE TABLE public.strangers (name text, seq bigint, owner text, port text);
    CREATE FUNCTION public.note_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.strangers SELECT name, NEW.seq, owner, current_setting('chaos.port') FROM selfpager.agents
            WHERE id = NEW.agent AND owner::json ->> 'url' <> 'http://127.0.0.1:' || current_setting('chaos.port');
        RETURN NULL; END $$;
    CREATE TRIGGER note_commit AFTER INSERT ON selfpager.commits FOR EACH ROW
        WHEN (current_setting('chaos.port', true) <> '') EXECUTE FUNCTION public.note_commit()"""
LEASE_SECONDS, LIMIT_SECONDS = 1.5, 3
START_SECONDS = 120.0
DATABASE = "fleet"


class Story:
    """What happened, with times, in a file."""

    def __init__(self, file: Path) -> None:
        self._file: IO[str] = file.open("a", encoding="utf-8", buffering=1)
        self._begin = time.monotonic()
        self._lock = Lock()

    def tell(self, text: str) -> None:
        with self._lock:
            if not self._file.closed:  # some client may still wait for an answer
                self._file.write(f"{time.monotonic() - self._begin:9.3f} {text}\n")

    def close(self) -> None:
        with self._lock:
            self._file.close()


class Worker:
    """A place for a worker: one process after the other, at the same proxy."""

    def __init__(self, fleet: Fleet, slot: int) -> None:
        self.slot = slot
        self.url: str | None = None  # while it is up
        self.pid = 0
        self.proxy = Proxy(fleet.postgres.socket)
        self.moments = fleet.folder / f"moments{slot}"
        self._fleet = fleet
        self._process: subprocess.Popen[str] | None = None
        self._log = (fleet.folder / f"worker{slot}.log").open("a")

    def start(self) -> None:
        """Start a process of the newest format, as often as it takes: Postgres may be down."""
        end = time.monotonic() + START_SECONDS
        while not self._fleet.is_over.is_set() and time.monotonic() < end:
            with hold_port() as held:
                if self._started(held.getsockname()[1]):
                    return
            time.sleep(0.2)

    def _started(self, port: int) -> bool:
        fleet = self._fleet
        own = quote(f"-c chaos.port={port}")
        options = f"lease_seconds={LEASE_SECONDS}&limit_seconds={LIMIT_SECONDS}&sslmode=disable&options={own}"
        address = f"postgresql://postgres@127.0.0.1:{self.proxy.port}/{DATABASE}?{options}"
        command = [
            sys.executable, "-m", "tests.chaos.worker", str(fleet.formats), str(self.moments), fleet.mutant,
            "serve", str(fleet.config), "--home", address, "--port", str(port), "--json",
            "--advertise", f"http://127.0.0.1:{port}", "--open", str(fleet.open_agents), "--threads", "8",
            "--grace", "2",
        ]  # fmt: skip
        environ = environment(**{WITNESS: str(fleet.witness)})
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environ,
            start_new_session=True,
        )  # fmt: skip
        self.pid = self._process.pid
        fleet.formats_of[self.pid] = fleet.formats
        assert self._process.stdout
        if line := self._process.stdout.readline():
            self.url = json.loads(line)["address"]
            fleet.story.tell(f"worker {self.slot} is up: process {self.pid}, {self.url}, format +{fleet.formats}")
            return True
        fleet.story.tell(f"worker {self.slot} did not start: process {self.pid}, exit {self._process.wait()}")
        self._process.stdout.close()
        return False

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.url = None
        self.end(signal.SIGKILL)

    def end(self, number: signal.Signals, seconds: float = 30.0) -> None:
        """Send a signal that ends the process, and wait for its end; then kill it."""
        self.url = None
        if self._process is None:
            return
        self.signal(number)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.signal(signal.SIGCONT)
            self.kill()
        self.proxy.close()
        self._log.close()


class Fleet:
    def __init__(self, folder: Path, workers: int, open_agents: int, base_url: str, *, mutant: str = "none") -> None:
        self.folder, self.mutant, self.open_agents = folder, mutant, open_agents
        self.story = Story(folder / "story.log")
        self.formats = 0  # how many more than there are the newest worker knows
        self.formats_of = dict[int, int]()
        self.is_over = Event()
        self.witness = folder / "witness"
        self.witness.touch()
        self.config = folder / "clerk.yaml"
        self.config.write_text(CONFIG.format(base_url=base_url), encoding="utf-8")
        self.postgres = Pair(own_disks=True)
        self.postgres.make_database(DATABASE)
        self.home = Home(self.address)
        self.key = Keys(self.home, SystemClock()).add("chaos", "", "admin", None)[1]
        self.postgres.run(WATCH, DATABASE)
        self.workers = [Worker(self, slot) for slot in range(workers)]
        self._free = set(self.workers)
        self._returned = Condition()
        with ThreadPoolExecutor() as pool:
            list(pool.map(Worker.start, self.workers))

    @property
    def address(self) -> str:
        """Return the address at which Postgres is reached without a proxy."""
        return self.postgres.address(DATABASE)

    @contextmanager
    def borrow(self, random: Random) -> Generator[Worker]:
        """Take a worker that no other fault has."""
        with self._returned:
            self._returned.wait_for(lambda: self._free)
            worker = random.choice(sorted(self._free, key=lambda each: each.slot))
            self._free.remove(worker)
        try:
            yield worker
        finally:
            with self._returned:
                self._free.add(worker)
                self._returned.notify()

    def close(self) -> None:
        self.is_over.set()
        for worker in self.workers:
            worker.close()
        self.postgres.close()
        self.story.close()


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait for what others do. Return False if it does not come about."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True
